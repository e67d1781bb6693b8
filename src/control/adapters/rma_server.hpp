// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The server (adapter_source.hpp) of one port of an RMA-style adapter: decodes the descriptors in its requester page,
/// and writes the notifications of all units, since it works for the requester, the responder and the completer.

#include <cstdint>

#include "beeline/control/rma_format.hpp"
#include "beeline/device/impl/route.hpp"
#include "beeline/device/impl/verbs.hpp"

namespace beeline {

/// A member of the team, as a target of requests.
struct RmaMember {
  RmaPortMemory* ports;     ///< [ports] at the address that this rank uses
  RmaNotification* queues;  ///< [ports, depth]
  std::uint64_t world_rank;
};

/// A port as its server finds it; in memory of the engine's device.
struct RmaServed {
  RmaPortMemory* memory;
  RmaNotification* queue;    ///< [depth]
  const RmaMember* members;  ///< [nodes]
  std::uint32_t node, nodes, vpid;
  std::uint32_t ports, depth, locks;  ///< the same on every rank
  std::uint32_t slot_shift;
  std::uint64_t locks_offset;  ///< of the lock address space, in a rank's slot
  std::byte* range;            ///< see `Context`

  RmaRequest request;  ///< the request in flight, or the last one
  RmaError error;
  bool is_logical, in_flight;
  std::uint64_t taken;  ///< number of taken requests that became commands
  std::uint64_t lock_value;
};

/// One thread uses it.
class RmaServer {
 public:
  using Ring = RmaServed;
  BEELINE_HOST_DEVICE RmaServer() = default;
  BEELINE_HOST_DEVICE explicit RmaServer(RmaServed& served) : served_(&served) {}
  BEELINE_HOST_DEVICE static void save() {}

  [[nodiscard]] BEELINE_HOST_DEVICE bool has_next() const {
    return !served_->in_flight && (is_posted(page().logical) || is_posted(page().physical));
  }
  /// A page holds one descriptor at a time.
  [[nodiscard]] BEELINE_HOST_DEVICE static bool has_known() { return false; }
  /// Takes the descriptor in the page. A request that is refused or moves no data is complete at once.
  [[nodiscard]] BEELINE_HOST_DEVICE bool take(Command& command) {
    if (!has_next()) return false;
    served_->is_logical = is_posted(page().logical);
    const RmaDescriptor& held = descriptor();
    const DecodedRma decoded = decode({{detail::load_acquired(held.words[0]), held.words[1], held.words[2]}});
    served_->request = decoded.request;
    served_->error = decoded.error;
    command = {};
    if (decoded.error == RmaError::none) served_->error = set_command(command);
    if (served_->error != RmaError::none || decoded.request.command == RmaCommand::notify) return end(), false;
    served_->in_flight = true;
    command.sequence = ++served_->taken;
    return true;
  }
  BEELINE_HOST_DEVICE void answer(const Command&, std::uint64_t value) { served_->lock_value = value; }
  BEELINE_HOST_DEVICE void refused(const Command&) { served_->error = RmaError::address; }
  BEELINE_HOST_DEVICE void complete(std::uint64_t commands) {
    if (served_->in_flight && commands == served_->taken) end();
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* asleep() const { return &served_->memory->asleep.value; }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE RmaPage& page() const { return served_->memory->page; }
  [[nodiscard]] BEELINE_HOST_DEVICE RmaDescriptor& descriptor() const {
    return served_->is_logical ? page().logical : page().physical;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static bool is_posted(const RmaDescriptor& descriptor) {
    return detail::load_acquired(descriptor.words[0]) != 0;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE RmaError set_command(Command& command) const {
    const RmaRequest& request = served_->request;
    if (request.node >= served_->nodes || request.vpid >= served_->ports) return RmaError::port;
    if (request.command == RmaCommand::notify) return RmaError::none;
    command.peer = static_cast<std::uint32_t>(served_->members[request.node].world_rank);
    return request.command == RmaCommand::lock ? set_lock(command) : set_move(command);
  }
  /// Makes a lock the verb compare_swap, whose new value is the sum.
  [[nodiscard]] BEELINE_HOST_DEVICE RmaError set_lock(Command& command) const {
    const RmaRequest& request = served_->request;
    if (request.source >= served_->locks) return RmaError::address;
    const auto compare = static_cast<std::uint32_t>(request.destination);
    const auto add = static_cast<std::uint32_t>(request.destination >> 32);
    command.verb = Verb::compare_swap, command.width = rma_lock_bytes, command.answers = true;
    command.remote = served_->locks_offset + request.source * rma_lock_bytes;
    command.local = compare + add;
    command.rows = compare;
    return RmaError::none;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE RmaError set_move(Command& command) const {
    const std::uint64_t bytes = served_->request.bytes, local = own_end(), remote = other_end();
    command.verb = served_->request.command == RmaCommand::put ? Verb::put : Verb::get;
    command.rows = 1, command.row_bytes = bytes;
    command.remote = remote;
    command.local = served_->is_logical ? slot_of(served_->members[served_->node].world_rank) + local : local;
    const std::uint64_t slot = SlotLayout{served_->slot_shift}.slot_bytes();
    const bool fits = remote < slot && (!served_->is_logical || (local < slot && bytes <= slot - local));
    return fits ? RmaError::none : RmaError::address;
  }
  /// Address of the start of a rank's slot.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t slot_of(std::uint64_t world_rank) const {
    return reinterpret_cast<std::uintptr_t>(served_->range) + (world_rank << served_->slot_shift);
  }
  /// The address of a put or get in memory of the rank that posted it, as posted.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t own_end() const {
    return served_->request.command == RmaCommand::get ? served_->request.destination : served_->request.source;
  }
  /// The address at the target, as an offset in the target's slot.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t other_end() const {
    const RmaRequest& request = served_->request;
    const std::uint64_t end = request.command == RmaCommand::get ? request.source : request.destination;
    return served_->is_logical ? end : end - slot_of(served_->members[request.node].world_rank);
  }

  /// Writes the notifications of the request, the target's first, and frees the page.
  BEELINE_HOST_DEVICE void end() {
    const RmaRequest& request = served_->request;
    const RmaUnit local = local_unit(request.command), remote = remote_unit(request.command);
    if (served_->error == RmaError::none && (request.notifications & remote) != 0) {
      const RmaMember& target = served_->members[request.node];
      const std::uint64_t word = notification_word(request, remote, RmaError::none, served_->node, served_->vpid);
      if (!notify(target.ports[request.vpid], target.queues + std::uint64_t{request.vpid} * served_->depth,
                  {address_for(false), word}))
        served_->error = RmaError::overflow;
    }
    if (served_->error != RmaError::none || (request.notifications & local) != 0) {
      const std::uint64_t word = notification_word(request, local, served_->error, request.node, request.vpid);
      static_cast<void>(notify(*served_->memory, served_->queue, {address_for(true), word}));
    }
    served_->in_flight = false;
    detail::SystemAtomic<std::uint64_t>(descriptor().words[0]).store(0, std::memory_order_release);
  }
  /// Word 0 of a notification.
  ///   is_own  whether the notification is for the rank that posted the request
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t address_for(bool is_own) const {
    const RmaRequest& request = served_->request;
    if (request.command == RmaCommand::notify) return request.destination;
    if (request.command == RmaCommand::lock)
      return request.source << 32 | static_cast<std::uint32_t>(served_->lock_value);
    return is_own ? own_end() : other_end();
  }

  /// Writes a notification into a port's next entry. Counts it as lost, and returns false, if the entry is not free.
  /// Ports of several ranks may write to the queue.
  [[nodiscard]] BEELINE_HOST_DEVICE bool notify(RmaPortMemory& port, RmaNotification* queue,
                                                const RmaNotification& notification) const {
    using Word = detail::SystemAtomic<std::uint64_t>;
    const Word written(port.written.value);
    std::uint64_t number = written.load(std::memory_order_relaxed);
    do {
      const std::uint64_t occupied = number - detail::load_acquired(port.freed.value);
      if (static_cast<std::int64_t>(occupied) >= static_cast<std::int64_t>(served_->depth)) {
        Word(port.overflowed.value).fetch_add(1, std::memory_order_release);
        return false;
      }
    } while (!written.compare_exchange_strong(number, number + 1, std::memory_order_relaxed));
    RmaNotification& entry = queue[number % served_->depth];
    entry.address = notification.address;
    Word(entry.word).store(notification.word, std::memory_order_release);
    return true;
  }

  RmaServed* served_ = nullptr;
};

}  // namespace beeline
