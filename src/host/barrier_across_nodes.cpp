// SPDX-License-Identifier: Apache-2.0
// The barrier of CPU threads of a team with members on several nodes, and their reads from other nodes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "beeline/device/impl/deadline_extension.hpp"
#include "beeline/device/put_get.hpp"
#include "host/node_map.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

namespace {

/// One member's part of a barrier.
class NodesRound {
 public:
  ///   steps  number of words that this member has stored in this barrier
  NodesRound(const Context& among, Timeout timeout, std::uint32_t& steps)
      : among_(among), timeout_(timeout), epoch_(among.sync->entered.value), steps_(steps) {}

  /// Each member stores its epoch at every other member, as `Barrier` does.
  [[nodiscard]] Status enter() const {
    return for_others([this](std::uint32_t peer) { return store(arrived_from(among_.rank), peer); });
  }
  [[nodiscard]] Status await_all() const {
    return for_others([this](std::uint32_t peer) { return await(among_, arrived_from(peer), peer); });
  }

  /// The barrier of many members. Each member notifies the first member of its node. After all members of the node have
  /// done so, this first member synchronizes with the first members of the other nodes, then notifies its node. After a
  /// time-out the call may be repeated.
  [[nodiscard]] Status meet(const detail::NodeMap& nodes) {
    const std::uint32_t here = nodes.node_of(among_.rank), first = nodes.first_of(here);
    if (first != among_.rank) {
      const Status stored = store_once(arrived_from(place_of(among_.rank)), first);
      return stored == Status::ok ? await(detail::extend_deadline(among_, detail::most_extension_steps),
                                          arrived_from(place_of(first)), first)
                                  : stored;
    }
    const auto await_local = [this](std::uint32_t peer) { return await(among_, arrived_from(place_of(peer)), peer); };
    const auto notify_local = [this](std::uint32_t peer) {
      return store_once(arrived_from(place_of(among_.rank)), peer);
    };
    const auto others = nodes.members_of(here).subspan(1);
    Status status = for_each(others, await_local);
    if (status == Status::ok) status = meet_firsts(nodes);
    return status == Status::ok ? for_each(others, notify_local) : status;
  }

 private:
  /// Dissemination barrier: in round r each node notifies the node 2^r further on, so after the last round every node
  /// knows that all have arrived.
  [[nodiscard]] Status meet_firsts(const detail::NodeMap& nodes) {
    const std::uint32_t here = nodes.node_of(among_.rank), count = nodes.nodes();
    for (std::uint32_t round = 0, ahead = 1; ahead < count; ++round, ahead *= 2) {
      PaddedWord& word = among_.sync->rounds[round];
      const Status stored = store_once(word, nodes.first_of((here + ahead) % count));
      if (stored != Status::ok) return stored;
      const Status status = await(detail::extend_deadline(among_, most_steps_of_first + round), word,
                                  nodes.first_of((here + count - ahead) % count));
      if (status != Status::ok) return status;
    }
    return Status::ok;
  }

  /// Extension steps of a first member that waits for another first member, which itself waits for its node.
  static constexpr std::uint32_t most_steps_of_first = 10;
  [[nodiscard]] std::uint32_t place_of(std::uint32_t member) const { return among_.access_to(member).place; }
  [[nodiscard]] PaddedWord& arrived_from(std::uint32_t place) const { return among_.sync->arrived_from[place]; }

  /// Stores the next word, unless an earlier call that timed out has stored it.
  [[nodiscard]] Status store_once(PaddedWord& word, std::uint32_t peer) {
    if (step_++ < steps_) return Status::ok;
    ++steps_;
    return store(word, peer);
  }
  /// Stores the epoch in a word of a peer. If the engine stores it, its earlier commands are complete before.
  [[nodiscard]] Status store(PaddedWord& word, std::uint32_t peer) const {
    if (const AccessToPeer to = among_.access_to(peer); to.access == PeerAccess::direct) {
      detail::store_signal(among_.translate(&word.value, to.place), epoch_, Order::memory);
      return Status::ok;
    }
    const detail::Request request{Operation::barrier, Verb::store, sizeof epoch_, 0, 0, peer};
    const detail::CommandFields fields = detail::word_fields(among_, request, &word.value, epoch_);
    return detail::command_engine(among_, among_.routes->queue(0), fields).status;
  }
  [[nodiscard]] Status await(const Context& ctx, PaddedWord& word, std::uint32_t peer) const {
    const detail::SystemAtomic<std::uint64_t> flag(word.value);
    return detail::await_word(ctx, Awaited{Operation::barrier, peer, epoch_, epoch_}, timeout_, flag, Order::memory,
                              [this](std::uint64_t seen) { return seen >= epoch_; });
  }
  template <class Action>
  [[nodiscard]] Status for_others(const Action& action) const {
    for (std::uint32_t peer = 0; peer < among_.size; ++peer)
      if (peer != among_.rank)
        if (const Status status = action(peer); status != Status::ok) return status;
    return Status::ok;
  }
  template <class Action>
  [[nodiscard]] static Status for_each(std::span<const std::uint16_t> members, const Action& action) {
    for (const std::uint32_t member : members)
      if (const Status status = action(member); status != Status::ok) return status;
    return Status::ok;
  }

  const Context& among_;
  const Timeout timeout_;
  const std::uint64_t epoch_;
  std::uint32_t& steps_;
  std::uint32_t step_ = 0;  ///< words stored or skipped in this call
};

}  // namespace

Status World::Implementation::drain_engine(const Context& among, Timeout timeout) {
  HostAreaHeader& header = *memory->areas().host_header();
  std::array<CommandTickets, command_rings> of_kernels{};  // a GPU rank's tickets are in its memory
  CommandTickets* kernels = memory->areas().heap_header()->tickets;
  if (membership->device().is_gpu()) {
    write(of_kernels.data(), kernels, sizeof of_kernels);
    kernels = of_kernels.data();
  }
  CommandTickets* const tickets[] = {kernels, header.host_tickets};
  for (std::size_t posters = 0; posters < std::size(tickets); ++posters)
    for (std::uint32_t queue = 0; queue < command_rings; ++queue) {
      const CommandQueue drained{&header.rings[posters][queue], &tickets[posters][queue]};
      const Status status = detail::drain_queue(among, Operation::quiet, drained, {true, timeout}).status;
      if (status != Status::ok) return status;
    }
  return Status::ok;
}

void World::Implementation::collect_cells(const Context& among, std::span<const std::byte> own, std::byte* all) {
  const detail::NodeMap nodes = membership->node_map(among);
  const std::byte* const base = reinterpret_cast<std::byte*>(memory->areas().host_header());
  const auto read = [&](std::uint32_t member, std::byte* to, const std::byte* at, std::size_t bytes) {
    const int other = static_cast<int>(among.world_rank(member));
    const auto* const there = reinterpret_cast<const std::byte*>(memory->areas().host_header(other));
    read_from(other, to, there + (at - base), bytes);
  };
  if (nodes.nodes() == 1 || nodes.nodes() == among.size) {
    for (std::uint32_t member = 0; member < among.size; ++member)
      read(member, all + member * own.size(), own.data(), own.size());
    return;
  }
  std::byte* const collected = memory->areas().host_header()->node_cells[among.team];
  const std::uint32_t here = nodes.node_of(among.rank);
  if (std::byte* to = collected; nodes.first_of(here) == among.rank)
    for (const std::uint32_t member : nodes.members_of(here))
      read(member, std::exchange(to, to + own.size()), own.data(), own.size());
  static_cast<void>(barrier(among, Timeout::none()));
  std::array<std::byte, sizeof(HostAreaHeader::node_cells[0])> of_node;
  for (std::uint32_t node = 0; node < nodes.nodes(); ++node) {
    const auto members = nodes.members_of(node);
    read(nodes.first_of(node), of_node.data(), collected, members.size() * own.size());
    for (std::size_t i = 0; i < members.size(); ++i)
      std::memcpy(all + members[i] * own.size(), of_node.data() + i * own.size(), own.size());
  }
}

Status World::Implementation::barrier_across_nodes(const Context& among, Timeout timeout) {
  TeamSync& sync = *among.sync;
  const bool is_new = sync.entered.value == sync.completed.value;
  if (is_new) {
    if (const Status drained = drain_engine(among, timeout); drained != Status::ok) return drained;
    ++sync.entered.value;
  }
  HostAreaHeader& header = *memory->areas().host_header();
  std::uint32_t& steps = header.barrier_steps[among.sync - header.teams];
  if (is_new) steps = 0;
  NodesRound round(among, timeout, steps);
  Status status = Status::ok;
  if (among.size > max_node_ranks) {
    status = round.meet(membership->node_map(among));
  } else {
    if (is_new) status = round.enter();
    if (status == Status::ok) status = round.await_all();
  }
  if (status == Status::ok) sync.completed.value = sync.entered.value;
  return status;
}

}  // namespace beeline
