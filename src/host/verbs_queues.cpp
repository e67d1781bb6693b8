// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/verbs_queues.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/host/world.hpp"
#include "control/adapters/verbs_assistant.hpp"
#include "control/adapters/verbs_server.hpp"
#include "host/adapter_rings.hpp"
#include "host/channel_agreement.hpp"
#include "host/world/engines.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"

namespace beeline {

namespace {

constexpr std::uint32_t most_queue_pairs = 1024, most_ring_entries = 1u << 15;

Heap ring_heap(const VerbsOptions& options) {
  return options.engine == EngineKind::host ? Heap::pinned : Heap::symmetric;
}
Heap poster_heap(const VerbsOptions& options) {
  return options.posts_from_cpu || options.assisted ? Heap::pinned : Heap::symmetric;
}

bool is_depth(std::uint32_t depth) { return depth >= 2 && depth <= most_ring_entries && std::has_single_bit(depth); }

/// Options that must be the same on all members.
struct QueueShape {
  VerbsOptions options;
  std::size_t pairs;

  bool operator==(const QueueShape&) const = default;
};

/// Collective. The options with all defaults filled in. Throws for options that differ or are not valid.
VerbsOptions checked(Team& team, std::size_t pairs, VerbsOptions options) {
  detail::require_same_options(team, "VerbsQueues", "verbs-style queue pairs", QueueShape{options, pairs});
  require(pairs > 0 && pairs <= most_queue_pairs, Status::invalid_argument,
          fmt::format("{} verbs-style queue pairs; valid: 1 to {}", pairs, most_queue_pairs));
  require(is_depth(options.depth), Status::invalid_argument,
          fmt::format("rings of verbs-style queue pairs with {} entries; valid: powers of two from 2 to {}",
                      options.depth, most_ring_entries));
  if (options.completion_queues == 0) options.completion_queues = static_cast<std::uint32_t>(pairs);
  require(
      options.completion_queues <= pairs, Status::invalid_argument,
      fmt::format("{} completion queues for {} queue pairs: at most one for each", options.completion_queues, pairs));
  const std::size_t sharing = (pairs + options.completion_queues - 1) / options.completion_queues;
  if (options.completion_depth == 0)
    options.completion_depth = static_cast<std::uint32_t>(std::bit_ceil(4 * sharing * options.depth));
  else
    require(is_depth(options.completion_depth), Status::invalid_argument,
            fmt::format("completion queues with {} entries; valid: powers of two from 2 to {}",
                        options.completion_depth, most_ring_entries));
  require(options.engine == EngineKind::host || (!options.posts_from_cpu && !options.assisted),
          Status::invalid_argument, "CPU threads post to verbs-style rings in host memory, which a host engine serves");
  require(options.engine == EngineKind::host || options.engine_threads == 0, Status::invalid_argument,
          "verbs-style rings that a device engine serves have no threads of the host");
  require_reach_of_adapter(team, options.engine, "a verbs-style queue pair");
  return options;
}

/// Completions that may be read before their number is published to engines: at most the entries that stay free when
/// all rings are full.
std::uint32_t completion_lag(std::uint32_t pairs, const VerbsOptions& options) {
  const std::uint32_t sharing = (pairs + options.completion_queues - 1) / options.completion_queues;
  const std::uint64_t most = std::uint64_t{2} * sharing * options.depth;
  const std::uint64_t room = options.completion_depth > most ? options.completion_depth - most : 1;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(room, options.completion_depth / 4 + 1));
}

}  // namespace

/// The CPU thread that posts for kernels, and its mailboxes.
class VerbsQueues::Assistance {
 public:
  Assistance(Team& team, const VerbsQueuesView& queues)
      : mailboxes_(team, std::size_t{2} * queues.pairs * queues.depth, Heap::pinned),
        asked_(team, std::size_t{2} * queues.pairs),
        asleep_(team, 1, Heap::pinned), view_{mailboxes_.data(), asked_.data(), asleep_.data(), queues.pairs,
                                              queues.depth},
        assistant_(queues, view_), engine_(world_part<Engines>(team.world()).make_host_engine(1, false)) {
    engine_->add(assistant_);
  }
  [[nodiscard]] const VerbsAssistedView& view() const { return view_; }
  /// Stops the thread, lets `change` reset the pair, and starts the thread again.
  void reset(std::uint32_t pair, const std::function<void()>& change) {
    engine_->remove(assistant_);
    assistant_.reset(pair);
    change();
    engine_->add(assistant_);
  }

 private:
  const SymmetricArray<VerbsMailbox> mailboxes_;
  const SymmetricArray<VerbsAsked> asked_;
  const SymmetricArray<std::uint64_t> asleep_;
  const VerbsAssistedView view_;
  VerbsAssistant assistant_;
  const std::unique_ptr<HostEngine> engine_;
};

class VerbsQueues::Implementation {
 public:
  Implementation(Team& team, std::span<const int> peers, const VerbsOptions& options)
      : team_(team), options_(checked(team, peers.size(), options)), pairs_(static_cast<std::uint32_t>(peers.size())),
        requests_(team, std::size_t{2} * pairs_ * options_.depth, ring_heap(options_)),
        doorbells_(team, pairs_, ring_heap(options_)),
        completions_(team, std::size_t{options_.completion_queues} * options_.completion_depth, ring_heap(options_)),
        words_(team, options_.completion_queues, ring_heap(options_)), keys_(team, max_verbs_keys, ring_heap(options_)),
        withdrawn_(team, static_cast<std::size_t>(team.size()), ring_heap(options_)),
        posted_(team, pairs_, poster_heap(options_)), polled_(team, options_.completion_queues, poster_heap(options_)),
        ends_(team, pairs_, Heap::pinned), rings_(team, pairs_, ring_heap(options_)),
        pending_(team, std::size_t{pairs_} * options_.depth, ring_heap(options_)) {
    connect(peers);
    if (options_.engine_threads != 0)
      own_engine_ = world_part<Engines>(team.world()).make_host_engine(options_.engine_threads, false);
    served_.emplace(team, rings_.data(), pairs_, engine(), "engine of verbs-style queue pairs (1 block)");
    view_ = {requests_.data(),
             requests_.data() + std::size_t{pairs_} * options_.depth,
             doorbells_.data(),
             posted_.data(),
             completions_.data(),
             words_.data(),
             polled_.data(),
             pairs_,
             options_.depth,
             options_.completion_queues,
             options_.completion_depth,
             completion_lag(pairs_, options_),
             served_->wanted()};
    if (options_.assisted) assistance_.emplace(team, view_);
    team.barrier();
  }

  [[nodiscard]] const VerbsQueuesView& view() const { return view_; }

  [[nodiscard]] VerbsKey register_memory(const void* address, std::size_t bytes) {
    const std::span<const std::byte> piece = world_part<Engines>(team_.world()).client().piece_at(address);
    const auto* const first = static_cast<const std::byte*>(address);
    const Context& ctx = team_.host_context();
    require(bytes > 0 && ctx.owner_of(address) == ctx.own_world_rank && !piece.empty() && first >= piece.data() &&
                bytes <= piece.size() - static_cast<std::size_t>(first - piece.data()),
            Status::invalid_argument,
            fmt::format("rank {}: {} bytes at {} are not in its symmetric memory: they cannot be registered",
                        team_.rank(), bytes, address));
    const std::lock_guard lock(mutex_);
    const auto free = std::find_if(entries_.begin(), entries_.end(), [](const auto& entry) { return entry.key == 0; });
    require(free != entries_.end() || entries_.size() < max_verbs_keys, Status::no_resource,
            fmt::format("rank {} has registered {} ranges of memory for its queue pairs, which is the limit",
                        team_.rank(), max_verbs_keys));
    const auto index = static_cast<std::uint32_t>(free - entries_.begin());
    if (free == entries_.end()) entries_.emplace_back();
    Registered& entry = entries_[index];
    entry.generation = entry.generation % 4095 + 1;
    entry.key = detail::verbs_key(ctx.own_world_rank, index, entry.generation);
    publish(index, {entry.key, 0, ctx.offset_in_slot(address), bytes});
    return VerbsKey::of(entry.key);
  }

  void deregister_memory(VerbsKey key) {
    const std::lock_guard lock(mutex_);
    const std::uint32_t index = detail::entry_of_key(key.value);
    require(key.value != 0 && index < entries_.size() && entries_[index].key == key.value, Status::invalid_argument,
            fmt::format("rank {}: {:#x} is no key of memory that it has registered", team_.rank(), key.value));
    entries_[index].key = 0;
    publish(index, {});
    ++withdrawals_;
    for (int member = 0; member < team_.size(); ++member)
      store(withdrawn_.at(member)[team_.rank()].value, withdrawals_, member);
  }

  [[nodiscard]] VerbsKey key_of(VerbsKey mine, int peer) const {
    VerbsKeyEntry entry{};
    team_.world().copy(&entry, keys_.at(peer) + detail::entry_of_key(mine.value), sizeof entry);
    require(mine.value != 0 && entry.key != 0, Status::invalid_argument,
            fmt::format("rank {} has registered no memory that corresponds to key {:#x} of rank {}", peer, mine.value,
                        team_.rank()));
    return VerbsKey::of(entry.key);
  }

  void reset(std::uint32_t index) {
    require_pair(index);
    const auto change = [&] { served_->change(index, [&] { drop_requests(index); }); };
    if (assistance_)
      assistance_->reset(index, change);
    else
      change();
  }
  [[nodiscard]] const VerbsAssistedView& assisted() const {
    require(assistance_.has_value(), Status::invalid_argument,
            "queue pairs have mailboxes only if they were made with VerbsOptions::assisted");
    return assistance_->view();
  }

  [[nodiscard]] std::string refusal(std::uint32_t index) const {
    require_pair(index);
    return served_->refusal(index);
  }

 private:
  struct Registered {
    std::uint32_t key = 0, generation = 0;  ///< key 0: the entry is free
  };

  /// Connects each pair with its counterpart. Throws the same error on all members.
  void connect(std::span<const int> peers) {
    bool is_valid = true;
    for (std::uint32_t i = 0; i < pairs_; ++i) {
      is_valid &= peers[i] >= 0 && peers[i] < team_.size();
      ends_.data()[i] = peers[i];
    }
    require(team_.allreduce(is_valid ? 1 : 0, Reduction::minimum) == 1, Status::invalid_argument,
            fmt::format("a verbs-style queue pair is connected to a rank that is not in the team of {}", team_.size()));
    std::vector<std::optional<std::uint32_t>> counterparts;
    for (std::uint32_t i = 0; i < pairs_; ++i) counterparts.push_back(counterpart(peers, i));
    const bool all =
        std::all_of(counterparts.begin(), counterparts.end(), [](const auto& of) { return of.has_value(); });
    require(team_.allreduce(all ? 1 : 0, Reduction::minimum) == 1, Status::invalid_argument,
            "a verbs-style queue pair has no counterpart: each member needs as many pairs to another as that one has "
            "to it");
    for (std::uint32_t i = 0; i < pairs_; ++i) {
      const VerbsRing ring{{end(team_.rank(), i), end(peers[i], *counterparts[i]),
                            requests_.data() + std::size_t{i} * options_.depth, slot(), options_.depth},
                           {},
                           {},
                           pending_.data() + std::size_t{i} * options_.depth};
      team_.world().copy(&rings_.data()[i], &ring, sizeof ring);
      const VerbsPosted posted{0, 0, 0, 0, ring.connection.own.number, static_cast<std::uint32_t>(peers[i])};
      team_.world().copy(&posted_.data()[i], &posted, sizeof posted);
    }
  }
  /// The peer's pair to which `pair` is connected.
  [[nodiscard]] std::optional<std::uint32_t> counterpart(std::span<const int> peers, std::uint32_t pair) const {
    if (peers[pair] == team_.rank()) return pair;
    const std::int32_t* const theirs = ends_.at(peers[pair]);
    auto before = std::count(peers.begin(), peers.begin() + pair, peers[pair]);
    for (std::uint32_t i = 0; i < pairs_; ++i)
      if (theirs[i] == team_.rank() && before-- == 0) return i;
    return std::nullopt;
  }
  [[nodiscard]] VerbsEnd end(int rank, std::uint32_t pair) const {
    const std::uint32_t queue = pair % options_.completion_queues;
    return {static_cast<std::uint32_t>(rank) * most_queue_pairs + pair,
            static_cast<std::uint32_t>(team_.world_rank(rank)),
            requests_.at(rank) + std::size_t{pairs_ + pair} * options_.depth,
            doorbells_.at(rank) + pair,
            keys_.at(rank),
            {completions_.at(rank) + std::size_t{queue} * options_.completion_depth, words_.at(rank) + queue,
             options_.completion_depth},
            withdrawn_.data() + rank};
  }
  [[nodiscard]] std::byte* slot() const {
    const Context& ctx = team_.host_context();
    return ctx.range + (std::uint64_t{ctx.own_world_rank} << ctx.slot_shift);
  }

  void require_pair(std::uint32_t index) const {
    require(index < pairs_, Status::invalid_argument, fmt::format("queue pair {} of {}", index, pairs_));
  }
  /// Frees all entries of a pair's send ring; the pair is not served meanwhile. Later requests have later indices, so
  /// that completions of earlier requests, if not yet polled, are not taken for theirs.
  void drop_requests(std::uint32_t index) {
    World& world = team_.world();
    VerbsPosted posted{};
    world.copy(&posted, &posted_.data()[index], sizeof posted);
    posted.sends_done = posted.sends;
    world.copy(&posted_.data()[index], &posted, sizeof posted);
    // The peer's engine may read the receives' doorbell at any time.
    store(doorbells_.data()[index].send.value, detail::big_endian(posted.sends));
    store(doorbells_.data()[index].receive.value, detail::big_endian(posted.receives));
    VerbsServed served{};
    world.copy(&served, &rings_.data()[index].served, sizeof served);
    served = served.behind(posted.sends);
    world.copy(&rings_.data()[index].served, &served, sizeof served);
  }

  /// Writes an entry of the table of keys, which engines may read at any time.
  void publish(std::uint32_t index, const VerbsKeyEntry& entry) {
    VerbsKeyEntry& to = keys_.data()[index];
    store(to.key, std::uint32_t{0});
    store(to.offset, entry.offset);
    store(to.bytes, entry.bytes);
    store(to.key, entry.key);
  }
  template <class T>
  void store(T& to, T value) const {
    store(to, value, team_.rank());
  }
  template <class T>
  void store(T& to, T value, int member) const {
    if (options_.engine == EngineKind::host || !team_.world().device(team_.world_rank(member)).is_gpu())
      detail::SystemAtomic<T>(to).store(value, std::memory_order_release);
    else
      team_.world().copy(&to, &value, sizeof value);
  }

  [[nodiscard]] HostEngine* engine() const {
    if (options_.engine == EngineKind::device) return nullptr;
    return own_engine_ != nullptr ? own_engine_.get() : &world_part<Engines>(team_.world()).of_queues();
  }

  Team& team_;
  const VerbsOptions options_;
  const std::uint32_t pairs_;
  std::unique_ptr<HostEngine> own_engine_;      ///< nullptr: the rank's host engine serves the pairs
  SymmetricArray<VerbsRequestEntry> requests_;  ///< send rings, then receive rings
  SymmetricArray<VerbsDoorbells> doorbells_;
  SymmetricArray<VerbsCompletionEntry> completions_;
  SymmetricArray<VerbsCompletionWords> words_;
  SymmetricArray<VerbsKeyEntry> keys_;
  SymmetricArray<PaddedWord> withdrawn_;  ///< [members] number of keys that each member has withdrawn
  SymmetricArray<VerbsPosted> posted_;
  SymmetricArray<VerbsPolled> polled_;
  SymmetricArray<std::int32_t> ends_;  ///< the peer of each pair
  SymmetricArray<VerbsRing> rings_;
  SymmetricArray<VerbsPending> pending_;  ///< [pairs][depth]
  std::optional<AdapterRings<VerbsServer>> served_;
  VerbsQueuesView view_{};
  std::optional<Assistance> assistance_;
  std::mutex mutex_;  ///< guards the members below
  std::vector<Registered> entries_;
  std::uint64_t withdrawals_ = 0;
};

VerbsQueues::VerbsQueues(Team& team, std::span<const int> peers, const VerbsOptions& options)
    : implementation_(new Implementation(team, peers, options), {team.life()}) {}
VerbsQueues::~VerbsQueues() = default;

const VerbsQueuesView& VerbsQueues::view() const { return implementation_->view(); }
const VerbsAssistedView& VerbsQueues::assisted() const { return implementation_->assisted(); }
VerbsKey VerbsQueues::register_memory(const void* address, std::size_t bytes) {
  return implementation_->register_memory(address, bytes);
}
void VerbsQueues::deregister_memory(VerbsKey key) { implementation_->deregister_memory(key); }
VerbsKey VerbsQueues::key_of(VerbsKey mine, int peer) const { return implementation_->key_of(mine, peer); }
void VerbsQueues::reset(std::uint32_t pair) { implementation_->reset(pair); }
std::string VerbsQueues::refusal(std::uint32_t pair) const { return implementation_->refusal(pair); }

const char* describe(VerbsStatus status) noexcept {
  switch (status) {
    case VerbsStatus::ok:
      return "ok";
    case VerbsStatus::bad_opcode:
      return "the request has no opcode of its ring";
    case VerbsStatus::wrong_byte_order:
      return "the request is written in little-endian order";
    case VerbsStatus::no_request:
      return "the doorbell was rung for an entry that holds no new request";
    case VerbsStatus::bad_index:
      return "the request's index is not that of its entry";
    case VerbsStatus::bad_length:
      return "the request's lengths differ, or it has too many segments, or its word is not aligned";
    case VerbsStatus::bad_local_key:
      return "a local key names no registered memory, or less";
    case VerbsStatus::bad_remote_key:
      return "the remote key names no registered memory of the peer, or less";
    case VerbsStatus::no_receive:
      return "the peer has posted no receive";
    case VerbsStatus::short_receive:
      return "the receive has less memory than the message";
    case VerbsStatus::bad_receive:
      return "the peer's receive is not valid";
    case VerbsStatus::refused:
      return "the engine refused it";
    case VerbsStatus::doorbell_too_far:
      return "the doorbell was rung for more requests than the ring holds";
    case VerbsStatus::flushed:
      return "an earlier request of the queue pair failed";
    case VerbsStatus::completions_full:
      return "the completion queue is full";
  }
  return "no status";
}

}  // namespace beeline
