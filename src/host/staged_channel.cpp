// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/staged_channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "host/channel_agreement.hpp"
#include "host/ranges.hpp"
#include "host/world/failures.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"
#include "host/world/streams.hpp"
#include "runtime/deadline.hpp"
#include "transport/staged.hpp"

namespace beeline {

namespace {

/// The arguments of a call. A peer of -1: the call does not have this side.
struct Call {
  const void* source;
  int to;
  void* destination;
  int from;
  std::size_t bytes;

  bool operator==(const Call&) const = default;
};

std::string describe(const Call& call) {
  const std::string out = fmt::format("from {} to rank {}", call.source, call.to);
  const std::string in = fmt::format("from rank {} to {}", call.from, call.destination);
  if (call.from < 0) return fmt::format("a send of {} bytes {}", call.bytes, out);
  if (call.to < 0) return fmt::format("a receive of {} bytes {}", call.bytes, in);
  return fmt::format("a send_receive of {} bytes {}, and {}", call.bytes, out, in);
}

/// Describes an arriving message whose length differs from the expected one; empty if no difference is known.
std::string other_length(const StagedReceiver* receiver, const Call& call) {
  if (receiver == nullptr || !receiver->other_length()) return {};
  return fmt::format(
      "a receive of {0} bytes from rank {1}, whose next message has {2}: it stays for a receive of {2} bytes",
      call.bytes, call.from, *receiver->other_length());
}

/// The constructor's arguments, which ranks compare.
struct ChannelShape {
  std::uint64_t chunk_bytes, slots;

  bool operator==(const ChannelShape&) const = default;
};

}  // namespace

struct StagedChannel::Implementation {
  /// One direction between this rank and a peer.
  template <class End>
  struct Side {
    End end;
    std::optional<Call> call;  ///< the pending call

    void begin(const Call& next) {
      end.begin(next.bytes);
      call = next;
    }
  };

  Implementation(World& world, std::size_t chunk_bytes, std::uint32_t slots);

  /// The ring from `sender` to `receiver`, with addresses for this rank.
  [[nodiscard]] StagedRing ring(int sender, int receiver) const;
  void check_peer(int peer, int least) const;
  /// Throws invalid_argument or unreachable for memory that this rank's streams cannot copy.
  void check_memory(const void* address, std::size_t bytes) const;
  /// Begins a call, or continues a pending one. Checks both sides before it changes either.
  void enter(const Call& call);
  void leave(const Call& call);
  /// Waits, after a failure, until the copies in flight have ended: the caller catches the error, and frees the memory.
  void end_copies() const;
  /// nullptr: the call has no such side.
  [[nodiscard]] Side<StagedSender>* sending(const Call& call) {
    return call.to < 0 ? nullptr : &senders[static_cast<std::size_t>(call.to)];
  }
  [[nodiscard]] Side<StagedReceiver>* receiving(const Call& call) {
    return call.from < 0 ? nullptr : &receivers[static_cast<std::size_t>(call.from)];
  }

  World& world;
  const std::size_t chunk_bytes;
  const std::uint32_t slots;
  const Segment& segment;
  SymmetricArray<std::uint64_t> lengths;           ///< [ranks, slots] lengths of messages from each peer
  SymmetricArray<PaddedWord> published, consumed;  ///< [ranks] numbers of chunks, from or to each peer
  std::unique_ptr<Stream> out, in;
  std::vector<Side<StagedSender>> senders;      ///< [ranks]
  std::vector<Side<StagedReceiver>> receivers;  ///< [ranks]
};

StagedChannel::Implementation::Implementation(World& on, std::size_t chunk, std::uint32_t count)
    : world(on), chunk_bytes(chunk), slots(count),
      segment(on.create_segment(MemoryKind::pinned, detail::array_bytes(static_cast<std::size_t>(on.size()),
                                                                        detail::array_bytes(count, chunk_bytes)))),
      lengths(on, detail::array_bytes(static_cast<std::size_t>(on.size()), count), Heap::pinned),
      published(on, static_cast<std::size_t>(on.size()), Heap::pinned),
      consumed(on, static_cast<std::size_t>(on.size()), Heap::pinned), out(on.make_stream()), in(on.make_stream()) {
  for (int peer = 0; peer < world.size(); ++peer) {
    senders.push_back({StagedSender(*out, ring(world.rank(), peer)), {}});
    receivers.push_back({StagedReceiver(*in, ring(peer, world.rank())), {}});
  }
}

StagedRing StagedChannel::Implementation::ring(int sender, int receiver) const {
  std::byte* rings = segment.parts[static_cast<std::size_t>(receiver)].address;
  const std::size_t first = static_cast<std::size_t>(sender) * slots;
  const int peer = sender == world.rank() ? receiver : sender;
  const bool is_carried = world_part<Routes>(world).to(peer).kind == RouteKind::engine;
  const auto at = [&](const auto& words, int owner) { return is_carried ? words.data() : words.at(owner); };
  return {rings + first * chunk_bytes,
          &at(lengths, receiver)[first],
          &at(published, receiver)[sender].value,
          &at(consumed, sender)[receiver].value,
          chunk_bytes,
          slots,
          is_carried ? &world.host_context() : nullptr,
          static_cast<std::uint32_t>(peer)};
}

void StagedChannel::Implementation::check_peer(int peer, int least) const {
  require(peer >= least && peer < world.size(), Status::invalid_argument,
          fmt::format("peer {} of a world of {}", peer, world.size()));
}

void StagedChannel::Implementation::check_memory(const void* address, std::size_t bytes) const {
  require(address != nullptr || bytes == 0, Status::invalid_argument, fmt::format("{} bytes at a null address", bytes));
  detail::require_mapped(world.host_context(), "memory of a message", address);
  if (const GpuReach* const reach = world_part<Streams>(world).gpu_reach())
    static_cast<void>(reach->needed({address}));
  else
    static_cast<void>(world_part<Routes>(world).of_kernel(address));
}

void StagedChannel::Implementation::enter(const Call& call) {
  Side<StagedSender>* const sender = sending(call);
  Side<StagedReceiver>* const receiver = receiving(call);
  // The sides of a call begin and end together, so the first pending side represents both.
  const Call* pending = sender && sender->call ? &*sender->call : nullptr;
  if (pending == nullptr && receiver && receiver->call) pending = &*receiver->call;
  if (pending != nullptr) {
    if (*pending == call) return;
    throw Error(
        Status::invalid_argument,
        fmt::format("{} while {} is to be continued, which timed out or failed: only the same call continues it",
                    describe(call), describe(*pending)),
        world.rank());
  }
  if (sender) check_memory(call.source, call.bytes);
  if (receiver) check_memory(call.destination, call.bytes);
  if (sender) sender->begin(call);
  if (receiver) receiver->begin(call);
}

void StagedChannel::Implementation::leave(const Call& call) {
  if (auto* const sender = sending(call)) sender->call.reset();
  if (auto* const receiver = receiving(call)) receiver->call.reset();
}

void StagedChannel::Implementation::end_copies() const {
  const detail::Deadline deadline(world.config().stream_deadline_ns);
  while (!(out->drained() && in->drained()) && !deadline.passed()) std::this_thread::yield();
}

StagedChannel::StagedChannel(World& world, std::size_t chunk_bytes, std::uint32_t slots) {
  static_cast<void>(world_part<Routes>(world).to_members(world, "StagedChannel"));
  require(slots > 0, Status::invalid_argument, "a staged channel needs at least one slot");
  const ChannelShape shape{chunk_bytes == 0 ? world.config().chunk_bytes : chunk_bytes, slots};
  // Senders whose shape differs from the receiver's would write beyond the ends of its rings.
  detail::require_same(world, "StagedChannel", shape,
                       [](std::size_t, const ChannelShape& first, std::size_t rank, const ChannelShape& theirs) {
                         return fmt::format("staged channels differ: {} bytes in {} slots, and on rank {} {} in {}",
                                            first.chunk_bytes, first.slots, rank, theirs.chunk_bytes, theirs.slots);
                       });
  implementation_ = detail::TeamOwned<Implementation>(new Implementation(world, shape.chunk_bytes, slots),
                                                      detail::DeleteWithTeam{world.life()});
}

StagedChannel::~StagedChannel() {
  if (implementation_ == nullptr || !implementation_.get_deleter().life->is_usable()) return;
  World& world = implementation_->world;
  const std::uint32_t segment = implementation_->segment.id;
  try {
    implementation_.reset();
    if (!world.failed() && std::uncaught_exceptions() == 0) world.destroy_segment(segment);
  } catch (const std::exception& error) {
    log(LogLevel::warning, error.what(), world.rank());
  }
}

Status StagedChannel::send(const void* source, std::size_t bytes, int peer, Timeout timeout) {
  implementation_->check_peer(peer, 0);
  return send_receive(source, peer, nullptr, -1, bytes, timeout);
}

Status StagedChannel::receive(void* destination, std::size_t bytes, int peer, Timeout timeout) {
  implementation_->check_peer(peer, 0);
  return send_receive(nullptr, -1, destination, peer, bytes, timeout);
}

Status StagedChannel::send_receive(const void* source, int to, void* destination, int from, std::size_t bytes,
                                   Timeout timeout) {
  Implementation& channel = *implementation_;
  channel.check_peer(to, -1);
  channel.check_peer(from, -1);
  const Call call{to < 0 ? nullptr : source, to, from < 0 ? nullptr : destination, from, bytes};
  channel.enter(call);
  StagedSender* const sender = to < 0 ? nullptr : &channel.sending(call)->end;
  StagedReceiver* const receiver = from < 0 ? nullptr : &channel.receiving(call)->end;
  const auto finished = [&] { return (sender ? sender->finished() : 0) + (receiver ? receiver->finished() : 0); };
  const auto over = [&] { return (!sender || sender->over()) && (!receiver || receiver->over()); };
  const std::uint64_t start = machine::clock_ns();
  while (!over()) {  // each chunk has the full deadline, since long messages may take longer than one deadline
    const bool receiving = receiver != nullptr && !receiver->over();
    const std::uint64_t before = finished(), elapsed = machine::clock_ns() - start;
    const Awaited awaited{receiving ? Operation::staged_receive : Operation::staged_send,
                          static_cast<std::uint32_t>(receiving ? from : to), before, before + 1};
    const Timeout left{timeout.ns - std::min(timeout.ns, elapsed)};
    const Status status = poll_until(channel.world.host_context(), awaited, left, [&](std::uint64_t& observed) {
      if (sender != nullptr) sender->progress(static_cast<const std::byte*>(source));
      if (receiver != nullptr) receiver->progress(static_cast<std::byte*>(destination));
      observed = finished();
      return observed != before || over();
    });
    if (status == Status::timeout) return status;
    if (status == Status::ok) continue;
    channel.end_copies();
    world_part<Failures>(channel.world).fail(status, channel.world.host_context().team, other_length(receiver, call));
  }
  channel.leave(call);
  const std::string refusal = other_length(receiver, call);
  if (!refusal.empty()) throw Error(Status::invalid_argument, refusal, channel.world.rank());
  return Status::ok;
}

std::uint64_t StagedChannel::waited_ns() const {
  std::uint64_t sum = 0;
  for (const auto& side : implementation_->senders) sum += side.end.waited_ns();
  for (const auto& side : implementation_->receivers) sum += side.end.waited_ns();
  return sum;
}

}  // namespace beeline
