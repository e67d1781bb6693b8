// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Many puts and signals to one peer with one completion. By loads and stores a batch saves the search for a route and
/// the signal of each put. An engine gets it as one command, and a rank on another node as one message, in place of a
/// command or a message for each put.

#include <cstdint>
#include <type_traits>

#include "beeline/control/post.hpp"

namespace beeline {

inline namespace BEELINE_CALLS {

/// A batch of puts, for one group: every thread of the group has a copy, and calls each function with the same
/// arguments.
///
///     PutBatch batch(ctx, entries, 256);
///     batch.begin(group, peer);
///     for (...) batch.put(group, destination, source, count);
///     batch.signal(group, arrived, round);
///     if (batch.end(group) != Status::ok) return;
///
/// **Order.** The puts of a batch have no order among each other. A signal of the batch is set once all puts before it
/// are in place, and follows the earlier operations of its queue towards this peer.
///
/// **Completion.** Nothing has to take effect before `end`. Then the batch is an operation of its queue: `flush` and
/// `quiet` cover it. Sources of up to 16 bytes, and all sources if loads and stores reach the peer, may be reused when
/// `put` returns, others after `flush`.
///
/// **Refusals.** A put or signal with a bad address is refused as outside of a batch (access.hpp). This call and all
/// later calls of the batch do nothing, and `end` returns the status of this call, so that no other status need be
/// tested. An engine checks all entries of a command or message before it carries out the first: if it refuses one, it
/// carries out none, and the error has the index of the bad entry.
///
/// **Memory.** The entries are used until `flush` of the queue. A batch of more than `capacity` or `most_batch_entries`
/// operations is split into several commands, and waits for `flush` when all entries are in use. Puts of more than
/// `most_batched_bytes`, puts of more than 16 bytes by kernels on GPUs, and puts to GPUs of other nodes travel by
/// themselves, with the same order and completion.
///
/// Source: NVSHMEM 3.8, aggregation of operations on one peer; seed 002, conclusions.
class PutBatch {
 public:
  ///   entries  [capacity] memory of the batch; for a kernel on a GPU, in host memory (`Heap::pinned`); on a host rank,
  ///            in any memory, where checks of symmetric memory take less time. May be nullptr if loads and stores
  ///            reach the peers
  BEELINE_HOST_DEVICE explicit PutBatch(const Context& ctx, BatchEntry* entries = nullptr, std::uint32_t capacity = 0)
      : ctx_(&ctx), entries_(entries), capacity_(entries == nullptr ? 0 : capacity) {}

  /// Begins a batch to `peer`, by the route of `put`.
  ///   queue  queue of the puts, if an engine carries them
  /// Returns ok; invalid_argument for a bad peer, a batch that has not ended, or a missing `entries`; unreachable.
  template <class Group>
  BEELINE_HOST_DEVICE Status begin(const Group& group, std::uint32_t peer, QueueId queue = {}) {
    const Status status = open(group, peer);
    if (status != Status::ok) return status;
    const AccessToPeer to = ctx_->access_to(peer);
    place_ = to.place;
    if (to.access == PeerAccess::direct) return Status::ok;
    if (to.access != PeerAccess::engine)
      return status_ =
                 group.thread_rank() == 0 ? detail::refuse_route(*ctx_, Operation::batch, peer) : Status::unreachable;
    return use(group, ctx_->routes->queue(queue.index), Carrier::route);
  }
  /// Begins a batch to `peer` that is posted to a command queue (control `proxy`), as `post_put` is. Returns as above;
  /// also unreachable for CPU threads of a GPU rank.
  template <class Group>
  BEELINE_HOST_DEVICE Status begin(const Group& group, std::uint32_t peer, CommandQueue queue) {
    const Status status = open(group, peer);
    return status == Status::ok ? use(group, queue, Carrier::queue) : status;
  }

  /// Copies `count` elements from local `source` to `destination` on the peer; parameters as of the function `put`.
  /// Returns ok; invalid_argument or unreachable (both refused); by an engine also deadline or aborted; the status of
  /// an earlier call of the batch that failed.
  template <class Group, class T>
  BEELINE_HOST_DEVICE Status put(const Group& group, T* destination, const T* source, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
    const detail::Reach reach = detail::reach_of(destination, count);
    if (!is_checked(reach, source)) {
      Status status = check<Access::load_store>(group, Operation::put, reach);
      if (status == Status::ok)
        status = detail::check_own_end(group, *ctx_, Operation::put, source, reach.bytes, peer_);
      if (status != Status::ok) return fail(status);
      checked_ = {unit_of(destination), unit_of(source)};
    }
    if (carrier_ != Carrier::stores) return kept(put_by_engine(group, destination, source, reach.bytes));
    detail::copy_bytes(group, ctx_->translate(destination, place_), source, reach.bytes);
    return Status::ok;
  }

  /// Sets `signal` on the peer to `value` once all earlier puts of the batch are in place; parameters as of the
  /// function `signal`. Returns as `put`.
  template <class Group>
  BEELINE_HOST_DEVICE Status signal(const Group& group, std::uint64_t* signal, std::uint64_t value) {
    const Status status = check<Access::load_store>(group, Operation::signal, detail::reach_of_word(signal));
    if (status != Status::ok) return fail(status);
    if (carrier_ != Carrier::stores) return kept(add_word(group, Verb::store, signal, value));
    detail::set_signal(group, *ctx_, signal, value, place_, Order::memory);
    return Status::ok;
  }
  /// As `signal`, and adds `value` as the function `signal_add` does.
  template <class Group>
  BEELINE_HOST_DEVICE Status signal_add(const Group& group, std::uint64_t* signal, std::uint64_t value) {
    const Status status = check<Access::atomic>(group, Operation::signal_add, detail::reach_of_word(signal));
    if (status != Status::ok) return fail(status);
    if (carrier_ != Carrier::stores) return kept(add_word(group, Verb::add, signal, value));
    group.sync();
    if (group.thread_rank() == 0) detail::add_to_signal(ctx_->translate(signal, place_), value, Order::memory);
    return Status::ok;
  }

  /// Ends the batch: from now on an engine carries it out. Does not wait for the peer. An empty batch posts nothing.
  /// Returns ok; the first other status of a call since `begin`; invalid_argument for a batch that has not begun; by an
  /// engine also deadline (its queue stays full) or aborted. Then the object may begin another batch.
  template <class Group>
  [[nodiscard]] BEELINE_HOST_DEVICE Status end(const Group& group) {
    if (!is_open_) return refuse_closed(group, Operation::batch);
    if (status_ == Status::ok && count_ > 0) status_ = post_entries(group);
    count_ = 0;
    is_open_ = false;
    checked_ = {};
    return status_;
  }

 private:
  enum class Carrier : std::uint8_t { stores, route, queue };
  /// The unit of allocations that holds an address.
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint64_t unit_of(std::uint64_t address) {
    return address / detail::AllocationMap::unit;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint64_t unit_of(const void* address) {
    return unit_of(reinterpret_cast<std::uintptr_t>(address));
  }
  /// The units of both ends of the last put that was checked.
  struct CheckedUnits {
    std::uint64_t destination = ~std::uint64_t{0}, source = ~std::uint64_t{0};
  };
  /// Whether a put is in the units of the last one, so that its checks would have the same result. The checks take most
  /// of the time of a CPU's short put; kernels on GPUs check little.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_checked(const detail::Reach& reach, const void* source) const {
    if constexpr (detail::executor == DeviceKind::gpu) return false;
    const std::uint64_t first = detail::address_bits(reach), last = first + reach.bytes - 1;
    return reach.bytes != 0 && unit_of(first) == checked_.destination && unit_of(last) == checked_.destination &&
           unit_of(source) == checked_.source;
  }

  /// Later calls of the batch do nothing.
  BEELINE_HOST_DEVICE Status fail(Status status) {
    checked_ = {};
    return status_ = status;
  }
  BEELINE_HOST_DEVICE Status kept(Status status) { return status == Status::ok ? status : fail(status); }
  template <class Group>
  BEELINE_HOST_DEVICE Status refuse(const Group& group, Operation operation, const detail::Finding& found) const {
    return detail::refuse_where_checked(*ctx_, operation, peer_, found, group.thread_rank() == 0);
  }
  template <class Group>
  BEELINE_COLD BEELINE_HOST_DEVICE Status refuse_closed(const Group& group, Operation operation) const {
    return refuse(group, operation, {CallFault::batch_is_closed});
  }

  template <class Group>
  BEELINE_HOST_DEVICE Status open(const Group& group, std::uint32_t peer) {
    if (is_open_) return refuse(group, Operation::batch, {CallFault::batch_is_open});
    is_open_ = true;
    peer_ = peer;
    carrier_ = Carrier::stores;
    status_ = peer < ctx_->size ? Status::ok : refuse(group, Operation::batch, {CallFault::peer, ctx_->size, peer});
    return status_;
  }
  template <class Group>
  BEELINE_HOST_DEVICE Status use(const Group& group, CommandQueue queue, Carrier carrier) {
    carrier_ = carrier;
    if (capacity_ == 0) return status_ = refuse(group, Operation::batch, {CallFault::no_entries});
    if (carrier == Carrier::queue) {
      const Status status =
          group.thread_rank() == 0 ? detail::check_poster(*ctx_, queue, request_of(Verb::batch)) : Status::ok;
      status_ = agree(group, status);
    }
    // `free_entries` waits for one queue.
    if (status_ == Status::ok && first_ > 0 && queue_.ring != queue.ring) status_ = free_entries(group);
    queue_ = queue;
    return status_;
  }

  /// Checks the state and the address of a put or signal before anything is touched.
  template <Access access, class Group>
  BEELINE_HOST_DEVICE Status check(const Group& group, Operation operation, const detail::Reach& reach) const {
    if (!is_open_) [[unlikely]]
      return refuse_closed(group, operation);
    if (status_ != Status::ok) [[unlikely]]
      return status_;
    const Status status = detail::check_call(group, *ctx_, operation, reach, peer_);
    if (status != Status::ok || carrier_ != Carrier::stores) return status;
    return detail::check_access<access>(group, *ctx_, operation, reach, place_);
  }

  [[nodiscard]] BEELINE_HOST_DEVICE detail::Request request_of(Verb verb) const {
    return {Operation::batch, verb, 0, 0, 0, peer_};
  }

  /// Whether the engine of a GPU rank stores a payload as words. Any other payload needs a separate buffer, so it is no
  /// entry.
  [[nodiscard]] BEELINE_HOST_DEVICE static bool is_of_words(const void* destination, std::size_t bytes) {
    const auto bits = reinterpret_cast<std::uintptr_t>(destination) | bytes;
    return (bits & 7u) == 0 || ((bits & 3u) == 0 && bytes == 4);
  }

  template <class Group>
  BEELINE_HOST_DEVICE Status put_by_engine(const Group& group, void* destination, const void* source,
                                           std::size_t bytes) {
    if (bytes == 0) return Status::ok;
    group.sync();
    const bool is_host = detail::executor == DeviceKind::host && ctx_->kind_of(ctx_->rank) == DeviceKind::host;
    if (bytes <= max_inline_bytes_in_batch && (is_host || is_of_words(destination, bytes))) {
      const bool writes = group.thread_rank() == 0;
      const auto word = [&](std::size_t index) {
        return writes ? detail::word_of_payload(static_cast<const std::byte*>(source), bytes, index) : 0;
      };
      return add(group, BatchEntry::of(Verb::put_inline, bytes, ctx_->offset_in_slot(destination), word(0), word(1)));
    }
    if (is_host && bytes <= most_batched_bytes)
      return add(group, BatchEntry::of(Verb::put, 0, ctx_->offset_in_slot(destination),
                                       reinterpret_cast<std::uintptr_t>(source), bytes));
    return post(group, [&] {
      return detail::fields_of(*ctx_, detail::move_request(true, peer_), destination, {source, 1, bytes, 0, 0});
    });
  }
  template <class Group>
  BEELINE_HOST_DEVICE Status add_word(const Group& group, Verb verb, const std::uint64_t* word, std::uint64_t operand) {
    group.sync();
    return add(group, BatchEntry::of(verb, sizeof operand, ctx_->offset_in_slot(word), operand, 0));
  }

  template <class Group>
  BEELINE_HOST_DEVICE Status add(const Group& group, const BatchEntry& entry) {
    if (count_ == most_batch_entries || first_ + count_ == capacity_) {
      const Status status = make_room(group);
      if (status != Status::ok) return status;
    }
    if (group.thread_rank() == 0) entries_[first_ + count_] = entry;
    ++count_;
    return Status::ok;
  }
  /// Posts the entries. If none is left, waits until the engine no longer uses them.
  template <class Group>
  BEELINE_COLD BEELINE_HOST_DEVICE Status make_room(const Group& group) {
    const Status status = count_ == 0 ? Status::ok : post_entries(group);
    return status != Status::ok || first_ < capacity_ ? status : free_entries(group);
  }
  /// Waits until the engine no longer uses posted entries. The queue reports refused entries.
  template <class Group>
  BEELINE_HOST_DEVICE Status free_entries(const Group& group) {
    first_ = 0;
    return agree(
        group, group.thread_rank() == 0 ? detail::drain_queue(*ctx_, Operation::flush, queue_, {}).status : Status::ok);
  }
  template <class Group>
  BEELINE_HOST_DEVICE Status post_entries(const Group& group) {
    const detail::LocalRows entries{entries_ + first_, count_, sizeof(BatchEntry), 0, 0};
    first_ += count_;
    count_ = 0;
    return post(group, [&] {
      return detail::CommandFields{request_of(Verb::batch), ctx_->world_rank(peer_), 0, entries};
    });
  }
  /// One thread posts the command `fields()`, after all earlier writes of the group.
  template <class Group, class Fields>
  BEELINE_HOST_DEVICE Status post(const Group& group, Fields fields) const {
    group.sync();
    Status status = Status::ok;
    if (group.thread_rank() == 0)
      status = carrier_ == Carrier::queue ? detail::command_engine<false>(*ctx_, queue_, fields()).status
                                          : detail::command_engine(*ctx_, queue_, fields()).status;
    return agree(group, status);
  }

  const Context* ctx_;
  BatchEntry* entries_;
  std::uint32_t capacity_;
  std::uint32_t first_ = 0, count_ = 0;  ///< the entries that are not posted: index of the first, and their number
  std::uint32_t peer_ = 0, place_ = 0;
  Status status_ = Status::ok;  ///< of the batch so far
  Carrier carrier_ = Carrier::stores;
  bool is_open_ = false;
  CommandQueue queue_{};
  CheckedUnits checked_;  ///< see `is_checked`
};

}  // namespace BEELINE_CALLS

}  // namespace beeline
