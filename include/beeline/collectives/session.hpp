// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A session: the state with which one group of each member communicates, in rounds. Algorithms are written on it.
///
/// A round is a barrier, or an exchange of packets: 8 bytes of data with a flag, the round's number, in one store.
/// There are two areas for packets, used alternately: round n + 1 reuses the area of round n - 1. If every member sends
/// to every other member in round n, the reuse needs no acknowledgement. A member that has ended round n has received
/// packets of all members. So all members have entered round n, and have read the packets of round n - 1 before (each
/// group synchronizes in `finish`). The area of round n - 1 is therefore free. A round in which only one member sends
/// gives no such guarantee. In such a round each member announces that it has read (`finish_one_way`), and the next
/// round waits for these announcements. In other kinds of rounds all members wait for one member, which waits for no
/// member (`follow`), or each member waits for the member before it (`pass_on`, `pass_through`).
///
/// *Which call.* Members wait for a value that consists of the round's number and the signature of its call:
///
///     flags of lines and vectors, words of barriers   | round: 48 bits                   | signature: 16 |
///     flags of packets                                                | round: its low 16 | signature: 16 |
///
/// The signature of a call includes the signature of the previous call. So a member accepts data of a call that differs
/// from its own, or that comes after a call that differed, only with a probability of 2^-16 (operation.hpp).
/// Announcements that a round's packets have been read carry signatures, too: two members that have only sent in a
/// round (two roots of a broadcast) find the difference in the next round in which one of them waits for the other, at
/// the latest before the second round after the broadcast. A member that waits for long compares the calls themselves
/// (impl/session_wait.hpp). This also finds calls that differ so much that their members poll different memory.
///
/// *Flags of 16 bits repeat* every 2^16 rounds, so no packet in an area may be that old. Of every 2^15 rounds, the
/// first two end with a refresh: the member sets all flags in the area of this round to the round's own flag. The data
/// stay, and may still be read (`heard_word`). No member sends to this member in round n + 2, the next round with that
/// area, before it has ended round n. A packet seen in round n with another round's flag is therefore at most 2^15 + 2
/// rounds old, and none of those rounds equals n modulo 2^16. Memory is zero at first, and no round before 2^16 has the
/// flag 0.
///
/// A call that a time-out has ended continues when it is made again with the same arguments: the round, its stage and
/// its offset stay in the session. Data that were sent are not sent again, or are sent again with the same bits.

#include <cstdint>

#include "beeline/collectives/channel.hpp"
#include "beeline/collectives/impl/barrier_steps.hpp"
#include "beeline/collectives/impl/session_wait.hpp"
#include "beeline/core/registry.hpp"
#include "beeline/core/transfer.hpp"
#include "beeline/device/bulk.hpp"
#include "beeline/device/grid.hpp"
#include "beeline/device/packets.hpp"
#include "beeline/device/signal.hpp"

namespace beeline {

namespace detail {

/// Packets get new flags in the first two of this many rounds; see the top of this file.
inline constexpr std::uint64_t refresh_period = std::uint64_t{1} << 15;

/// Sets the flag of `count` pairs of packets. Rarely called, so it is out of line, with arguments by value: see
/// packets.hpp.
template <class Group>
BEELINE_COLD BEELINE_HOST_DEVICE void refresh_flags(Group group, machine::PacketPair* pairs, std::uint32_t count,
                                                    std::uint32_t flag) {
  BEELINE_NO_UNROLL
  for (std::uint32_t i = group.thread_rank(); i < count; i += group.size()) machine::store_flags(pairs + i, flag);
  machine::fence_system();  // before any store that permits other members to send to this area again
  group.sync();
}

/// The peer at `distance` (at most the number of members) after this member, on a ring, so that members begin with
/// different peers.
[[nodiscard]] BEELINE_HOST_DEVICE inline std::uint32_t peer_ahead(const Context& ctx, std::uint32_t distance) {
  return ctx.rank + distance < ctx.size ? ctx.rank + distance : ctx.rank + distance - ctx.size;
}

}  // namespace detail

/// Whether a session's group may have written to memory before its first call in the kernel. `of_kernel`: the group has
/// not written. The kernel's start has then made the earlier work of its stream visible to all, so that the first
/// synchronization needs no fence. This is also true for a kernel with an early start, which waits for the kernels
/// before it: their writes are in the second-level cache of the memory's GPU, or at its owner, where peers read them.
/// Host ranks always need a fence. A kernel with `of_kernel` makes a whole call: the call has no time-out, and does not
/// continue a call that a time-out has ended.
enum class SessionStart : std::uint32_t { anywhere, of_kernel };

/// Options of all calls in kernels; the same on all members, except the buffer.
struct SessionCall {
  Timeout timeout = Timeout::none();           ///< the call's own limit; after `timeout` the same call continues
  Algorithm algorithm = Algorithm::automatic;  ///< an algorithm of the operation
  BulkBuffer* buffer = nullptr;                ///< for `bulk` on a GPU: a buffer in the block's shared memory
                                               ///< (device/bulk.hpp)
};

/// The session on which one group takes part in the collectives of a team, in a kernel:
///
///   Session session(grid.block(), ctx, channel);  // made by one group of each member
///   Session session(grid, ctx, channel);          // made by every member's grid: each block takes a slice of a call
///   if (allreduce(session, destination, source, count, Reduction::sum) != Status::ok) return;
///
/// Every thread of the group makes it, and calls its functions with the same arguments; all members make the same calls
/// in the same order. Loops keep one session over many calls, since the state of its rounds is then in registers.
template <class Group>
class Session {
 public:
  /// Session `index` of the channel, for one group. At most one group of a rank uses a session at a time.
  BEELINE_HOST_DEVICE Session(const Group& group, const Context& ctx, const CollectiveChannel& channel,
                              std::uint32_t index = 0, SessionStart start = SessionStart::anywhere)
      : group_(group), ctx_(ctx), channel_(channel), index_(index), state_(&channel.states[index]),
        starts_kernel_(start == SessionStart::of_kernel),
        has_worked_(!starts_kernel_ || detail::executor == DeviceKind::host) {
    open();
  }
  /// For each block, the session with the block's number. All members have grids of the same number of blocks. If a
  /// grid has more blocks than the channel has sessions, every call that gives each block a slice returns
  /// invalid_argument. In each block, a call returns the status of the block's slice. Data that other blocks have
  /// received are visible after `grid.sync`, and at the end of the kernel; sources must not change before. A block
  /// whose call returned `timeout` makes the call again.
  BEELINE_HOST_DEVICE Session(const Grid<Group>& grid, const Context& ctx, const CollectiveChannel& channel)
      : group_(grid.block()), ctx_(ctx), channel_(channel), index_(grid.block_rank()), slices_(grid.blocks()),
        state_(&channel.states[grid.block_rank()]), starts_kernel_(false), has_worked_(true) {
    is_taken_ = index_ >= channel.sessions;  // there is no session to open or to close
    if (!is_taken_) open();
  }
  BEELINE_HOST_DEVICE ~Session() {
    if (group_.thread_rank() != 0 || is_taken_) return;
    state_->round = round_, state_->offset = offset_, state_->signatures = signatures_;
    state_->entered = entered_ ? 1 : 0, state_->went_one_way = went_one_way_ ? 1 : 0, state_->stage = stage_;
    if constexpr (detail::executor == DeviceKind::host) state_->vectors = vectors_;
    // The end of a kernel releases the kernel's writes.
    is_open().store(0, detail::executor == DeviceKind::host ? std::memory_order_release : std::memory_order_relaxed);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] BEELINE_HOST_DEVICE const Group& group() const { return group_; }
  [[nodiscard]] BEELINE_HOST_DEVICE const Context& context() const { return ctx_; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t index() const { return index_; }
  [[nodiscard]] BEELINE_HOST_DEVICE SessionState* state() const { return state_; }
  /// The index of this group's slice of a call, and the number of slices.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t slice() const { return slices_ == 1 ? 0 : index_; }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t slices() const { return slices_; }
  /// Whether the channel has a session for every block.
  [[nodiscard]] BEELINE_HOST_DEVICE bool exists() const { return slices_ <= channel_.sessions; }
  /// Whether members are on several nodes; the channel with this session's index of `pair_channels` then carries the
  /// calls.
  [[nodiscard]] BEELINE_HOST_DEVICE bool spans_nodes() const { return channel_.across != nullptr; }
  [[nodiscard]] BEELINE_HOST_DEVICE const detail::PairChannel* pair_channels() const { return channel_.across; }
  /// Whether a CPU has refused the session, since another one of this rank is open.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_refused() const {
    return detail::executor == DeviceKind::host && is_taken_;
  }

  // --- Where an interrupted call continues ------------------------------------------------------------------------

  /// 0 in a new call; in a continued call the last value of `set_stage`. The end of the call resets it to 0.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t stage() const { return stage_; }
  BEELINE_HOST_DEVICE void set_stage(std::uint32_t stage) { stage_ = stage; }
  /// The progress of a call in chunks, in units that the algorithm defines; kept like `stage`.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t offset() const { return offset_; }
  BEELINE_HOST_DEVICE void set_offset(std::uint64_t offset) { offset_ = offset; }
  /// Whether a kernel makes a whole call with the session: see `SessionStart`.
  [[nodiscard]] BEELINE_HOST_DEVICE bool starts_kernel() const { return starts_kernel_; }
  /// Whether a time-out has ended the call in a round that it has entered.
  [[nodiscard]] BEELINE_HOST_DEVICE bool has_entered() const { return entered_; }

  /// Whether a member also sends a round's data to itself. This is needed if the call may be interrupted, or was
  /// interrupted: the source may then already hold results. `is_new`: see `enter`.
  [[nodiscard]] BEELINE_HOST_DEVICE bool sends_to_itself(Timeout timeout, bool is_new) const {
    return !starts_kernel_ && (!is_new || timeout.ns != Timeout::none().ns);
  }

  /// Records how the vectors of this call travel, for `last_transfer`.
  BEELINE_HOST_DEVICE void note(Transfer transfer) {
    if (group_.thread_rank() == 0) state_->transfer = static_cast<std::uint32_t>(transfer);
  }

  /// Begins a call, unless it continues after a time-out: its rounds carry its signature, and other members can read
  /// its description. At least one round follows. Returns invalid_argument on a CPU if another session of this rank is
  /// open; kernels on GPUs detect that while they wait.
  [[nodiscard]] BEELINE_HOST_DEVICE Status begin(const CallDescription& call) {
    if (is_refused()) return Status::invalid_argument;
    if (!starts_kernel_ && (entered_ || stage_ != 0 || offset_ != 0)) return Status::ok;
    // The last round's signature is the signature of the previous call, also if a time-out has ended this call before
    // its first round.
    round_ = detail::unsigned_round(round_) | call.signature(detail::signature_of(signatures_));
    // The last thread has the least work if little is sent.
    if (group_.thread_rank() == group_.size() - 1)
      detail::show_call(state_, static_cast<std::uint32_t>((round_ + detail::one_round) >> detail::signature_bits),
                        call);
    return Status::ok;
  }

  /// Whether the group may have written data that other members do not see yet, so that a fence is needed. Only the
  /// first call of this function may return false.
  [[nodiscard]] BEELINE_HOST_DEVICE bool has_worked() {
    const bool worked = has_worked_;
    has_worked_ = true;
    return worked;
  }

  // --- Memory of the channel ------------------------------------------------------------------------------------

  /// Half `half` of this session's staging memory, at the same offset on every member.
  [[nodiscard]] BEELINE_HOST_DEVICE std::byte* staging(std::uint32_t half) const {
    return channel_.staging + (std::size_t{index_} * 2 + half) * channel_.staging_bytes;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t staging_bytes() const { return channel_.staging_bytes; }

  // --- Barrier rounds -------------------------------------------------------------------------------------------

  /// A round without data: waits for every member. `Order::memory`: writes before it are visible to all members after
  /// it.
  [[nodiscard]] BEELINE_HOST_DEVICE Status barrier(Order order, Timeout timeout) {
    if (!entered_) {
      next_round();
      group_.sync();  // the rest of the group has done its work
      detail::tell_members(group_, ctx_, arrived(), round_, order);
    }
    return end_round(detail::await_members(group_, ctx_, arrived(), round_, order, timeout));
  }

  /// As above, with a choice of algorithm. All members pass the same algorithm; it may change from round to round.
  [[nodiscard]] BEELINE_HOST_DEVICE Status barrier(Algorithm algorithm, Order order, Timeout timeout) {
    if (algorithm != Algorithm::flat && algorithm != Algorithm::dissemination) return barrier(order, timeout);
    if (!entered_) next_round();
    group_.sync();  // the rest of the group has done its work
    const Status status = algorithm == Algorithm::flat
                              ? detail::meet_flat(group_, ctx_, arrived(), round_, order, timeout)
                              : detail::meet_by_dissemination(group_, ctx_, arrived(), round_, order, timeout);
    return end_round(status);
  }

  /// A round in which `leader` signals all members without waiting for any: a member that has received the signal sees
  /// the leader's earlier writes. A sequence of such rounds ends with a round in which all members synchronize.
  [[nodiscard]] BEELINE_HOST_DEVICE Status follow(std::uint32_t leader, Timeout timeout) {
    if (!entered_) {
      next_round();
      group_.sync();  // the rest of the group has done its work
    }
    Status status = Status::ok;
    if (ctx_.rank == leader) {  // threads that do not signal need not wait for the fences of threads that signal
      detail::tell_members(group_, ctx_, arrived(), round_, Order::memory);
    } else {
      if (group_.thread_rank() == 0)
        status = detail::await_member(ctx_, arrived(), leader, round_, Order::memory, timeout);
      status = agree(group_, status);
    }
    if (status == Status::ok) leave_round();
    return status;
  }

  /// A round along a chain of members: waits for `previous` (`no_peer`: for no member), works, and signals `next`
  /// (`no_peer`: no member), which then sees that work. A sequence of such rounds ends with a round in which all
  /// members synchronize.
  template <class Work>
  [[nodiscard]] BEELINE_HOST_DEVICE Status pass_on(std::uint32_t previous, std::uint32_t next, Timeout timeout,
                                                   const Work& work) {
    if (!entered_) next_round();
    Status status = Status::ok;
    if (previous != no_peer && group_.thread_rank() == 0)
      status = detail::await_member(ctx_, arrived(), previous, round_, Order::memory, timeout);
    status = agree(group_, status);
    if (status != Status::ok) return status;
    work();
    group_.sync();  // the rest of the group has done its work
    if (next != no_peer && group_.thread_rank() == 0) detail::tell_member(ctx_, arrived(), next, round_, Order::memory);
    leave_round();
    return status;
  }

  /// As `pass_on`, for work on memory of `next` that this member uses again after `rounds` rounds: in round n it also
  /// waits until `next` has ended round n - `rounds` (unless `rounds` is 0), and also signals `previous`. Must not be
  /// interrupted by a time-out.
  template <class Work>
  [[nodiscard]] BEELINE_HOST_DEVICE Status pass_through(std::uint32_t previous, std::uint32_t next,
                                                        std::uint32_t rounds, Timeout timeout, const Work& work) {
    next_round();
    Status status = Status::ok;
    if (group_.thread_rank() == 0 && previous != no_peer)
      status = detail::await_member(ctx_, arrived(), previous, round_, Order::memory, timeout);
    if (group_.thread_rank() == 0 && next != no_peer && rounds != 0 && status == Status::ok)
      status = detail::await_member(ctx_, arrived(), next, round_ - rounds * detail::one_round, Order::memory, timeout);
    status = agree(group_, status);
    if (status != Status::ok) return status;
    work();
    group_.sync();  // the rest of the group has done its work
    const std::uint32_t last = group_.size() - 1;
    if (next != no_peer && group_.thread_rank() == 0) detail::tell_member(ctx_, arrived(), next, round_, Order::memory);
    if (previous != no_peer && group_.thread_rank() == last)
      detail::tell_member(ctx_, arrived(), previous, round_, Order::memory);
    leave_round();
    return status;
  }

  /// A round that publishes the group's earlier writes to all members without waiting for them; `await_round` waits
  /// later. A sequence of such rounds ends with a round in which all members synchronize.
  BEELINE_HOST_DEVICE void tell_round() {
    next_round();
    group_.sync();  // the rest of the group has done its work
    detail::tell_members(group_, ctx_, arrived(), round_, Order::memory);
    leave_round();
  }
  /// Waits until all members have entered the round that this member entered by `tell_round` `rounds` rounds ago; their
  /// writes before it are then visible. Not for calls with a time-out, since a continued call would count rounds
  /// differently.
  [[nodiscard]] BEELINE_HOST_DEVICE Status await_round(std::uint32_t rounds, Timeout timeout) {
    return detail::await_members(group_, ctx_, arrived(), round_ - rounds * detail::one_round, Order::memory, timeout);
  }

  // --- Packet rounds --------------------------------------------------------------------------------------------

  /// Enters a round of packets. `is_new`: whether this call has entered the round, and therefore sends; false if an
  /// earlier, interrupted call has already sent.
  [[nodiscard]] BEELINE_HOST_DEVICE Status enter(Timeout timeout, bool& is_new) {
    is_new = !entered_;
    if (entered_) return Status::ok;
    if (went_one_way_) {
      // The next round uses the areas of the last round but one.
      const Status status = detail::await_leaving(group_, ctx_, finished(), round_, signatures_, timeout);
      if (status != Status::ok) return status;
    }
    next_round();
    return Status::ok;
  }
  /// Ends a round in which every member has received from every other member. Every thread passes its status, and gets
  /// the group's status. Called at one place in the code, since it is a barrier.
  [[nodiscard]] BEELINE_HOST_DEVICE Status finish(Status mine) { return end_round(agree(group_, mine)); }
  /// Ends a round in which members have received from some members only: acknowledges to all members that their packets
  /// have been read.
  [[nodiscard]] BEELINE_HOST_DEVICE Status finish_one_way(Status mine) {
    const Status status = agree(group_, mine);
    if (status != Status::ok) return status;
    leave_round();
    detail::tell_members(group_, ctx_, finished(), round_, Order::memory);
    went_one_way_ = true;
    return status;
  }

  /// Number of 8-byte words in an area.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t area_words() const { return channel_.area_pairs; }

  /// The flag of this round's packets; see the top of this file.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t flag() const { return static_cast<std::uint32_t>(round_); }
  /// The area at `peer` (which may be this rank) for the packets that this rank sends in this round.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* area_at(std::uint32_t peer) const {
    return ctx_.translate(area(ctx_.rank), peer);
  }
  /// Sends word `place` of the area at `peer`.
  BEELINE_HOST_DEVICE void send_word(std::uint32_t peer, std::uint32_t place, std::uint64_t word) const {
    machine::store_packets(ctx_.translate(area(ctx_.rank) + place, peer), detail::packets_of(word, flag()));
  }

  /// Receives word `place` from each of `count` peers, starting with `first`, except `silent`, whose word is unchanged.
  /// One thread waits for all of them.
  template <unsigned count>
  [[nodiscard]] BEELINE_HOST_DEVICE Status receive_words(std::uint32_t first, std::uint32_t place,
                                                         std::uint64_t (&words)[count], Timeout timeout,
                                                         std::uint32_t silent = no_peer) const {
    const machine::PacketPair* pairs = area(first) + place;
    const std::uint32_t stride = channel_.area_pairs, sequence = flag();
    detail::SessionWait awaited{first, Compare::equal, state_, sequence};
    const auto ready = [&](std::uint64_t& observed) {
      machine::PacketPair pair[count] = {};
      BEELINE_UNROLL
      for (unsigned k = 0; k < count; ++k)
        if (first + k != silent) pair[k] = machine::load_packets(pairs + k * stride);
      bool all = true;
      BEELINE_UNROLL
      for (unsigned k = 0; k < count; ++k) {
        if (first + k == silent) continue;
        words[k] = detail::payload_of(pair[k]);
        if (detail::has_flags(pair[k], sequence)) continue;
        observed = pair[k].low >> 32, awaited.peer = first + k;  // the late peer, for the error
        all = false;
      }
      return all;
    };
    if constexpr (detail::executor == DeviceKind::host)  // threads of a host rank have many words, most of which have
                                                         // arrived
      if (std::uint64_t observed = 0; ready(observed)) return Status::ok;
    return poll_until(ctx_, awaited, timeout, ready);
  }

  /// Number of lines (LL128 packets: device/packets.hpp) in an area: even, and 0 if the members cannot send lines.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t area_lines() const { return channel_.area_lines; }

  /// Line `place` of the area in which every member receives from `sender` in this round. Its flag is `line_flag`.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* line(std::uint32_t sender, std::uint32_t place) const {
    const std::size_t area = std::size_t{index_ * 2 + parity_of(round_)} * ctx_.size + sender;
    return channel_.lines + (area * channel_.area_lines + place) * line_threads;
  }
  /// The flag of lines and vectors. It has enough bits not to wrap, so lines and vectors need no refresh of flags.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t line_flag() const { return round_; }

  /// Bytes of a vector that a host rank can send to another host rank with a single flag; 0 for GPU ranks.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t vector_bytes() const {
    return channel_.vector_bytes == 0 ? 0 : channel_.vector_bytes - sizeof(std::uint64_t);
  }
  /// Counts the current round of this call as the next vector round. Vector rounds alternate between their two areas
  /// independently of other rounds: a member stores into an area again two vector rounds later, and the flags of the
  /// vector round between show that the area has been read. The parity of rounds cannot choose the areas, since rounds
  /// of packets may lie between vector rounds.
  BEELINE_HOST_DEVICE void enter_vectors() { ++vectors_; }
  /// The address at which every member receives the flag of `sender`'s vector in this round; the flag's value is
  /// `line_flag`. The vector follows the flag. The vector of the next sender is `vector_step` further.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* vector_flag(std::uint32_t sender) const {
    const auto parity = static_cast<std::uint32_t>(vectors_ & 1u);
    const std::size_t area = std::size_t{index_ * 2 + parity} * ctx_.size + sender;
    return reinterpret_cast<std::uint64_t*>(channel_.vectors + area * channel_.vector_bytes);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t vector_step() const { return channel_.vector_bytes; }

  /// Word `place` that `peer` sent `rounds` rounds ago, in a packet round that the group has completed. Every thread
  /// may read it until the next packet round.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t heard_word(std::uint32_t peer, std::uint32_t place,
                                                             std::uint32_t rounds) const {
    return detail::payload_of(machine::load_packets(area(peer, round_ - rounds * detail::one_round) + place));
  }

  /// Makes data visible to this thread that `peer` wrote before a fence and before it sent word `place` of this round.
  /// This thread, or a thread with which it has since synchronized, has received the word. A fence in place of this
  /// load would also wait for this thread's own stores.
  BEELINE_HOST_DEVICE void acquire_word(std::uint32_t peer, std::uint32_t place) const {
    static_cast<void>(detail::SystemAtomic<std::uint64_t>((area(peer) + place)->low).load(std::memory_order_acquire));
  }

 private:
  BEELINE_HOST_DEVICE void open() {
    if constexpr (detail::executor == DeviceKind::host) {
      is_taken_ = group_.any(group_.thread_rank() == 0 && is_open().exchange(1, std::memory_order_acquire) != 0);
      if (is_taken_) return refuse();
    } else {
      group_.sync();  // the state that an earlier session of this group wrote is visible
    }
    round_ = state_->round, offset_ = state_->offset, stage_ = state_->stage, signatures_ = state_->signatures;
    entered_ = state_->entered != 0, went_one_way_ = state_->went_one_way != 0;
    if constexpr (detail::executor == DeviceKind::host) vectors_ = state_->vectors;
    group_.sync();  // every thread has read the state before thread 0 changes it
    // This is no atomic operation, since that would delay every call. So two sessions that open at the same time may
    // not detect each other; waits check this word again.
    if (detail::executor == DeviceKind::gpu && group_.thread_rank() == 0)
      is_open().store(is_open().load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE detail::DeviceAtomic<std::uint32_t> is_open() const {
    return detail::DeviceAtomic<std::uint32_t>(state_->is_open);
  }
  /// Refuses a call because another call uses the session.
  BEELINE_HOST_DEVICE void refuse() const {
    if (group_.thread_rank() != 0) return;
    const detail::CallWords other = detail::words_of(state_, detail::last_call(state_));
    static_cast<void>(detail::refuse_call(ctx_, {detail::CallDifference::session_in_use, ctx_.rank, other, {}}));
  }

  BEELINE_HOST_DEVICE void next_round() { round_ += detail::one_round, entered_ = true; }
  BEELINE_HOST_DEVICE void leave_round() {
    entered_ = false;
    signatures_ = signatures_ << detail::signature_bits | detail::signature_of(round_);
    if ((round_ & (detail::refresh_period - 2) * detail::one_round) == 0) [[unlikely]]
      detail::refresh_flags(group_, area(0), ctx_.size * channel_.area_pairs, flag());
  }
  /// Ends a round in which all members have synchronized.
  [[nodiscard]] BEELINE_HOST_DEVICE Status end_round(Status status) {
    if (status != Status::ok) return status;
    leave_round();
    went_one_way_ = false;
    return status;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t parity_of(std::uint64_t round) {
    return static_cast<std::uint32_t>(round) >> detail::signature_bits & 1u;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE detail::MemberWords arrived() const {
    return {channel_.arrived + index_ * max_node_ranks, state_};
  }
  [[nodiscard]] BEELINE_HOST_DEVICE detail::MemberWords finished() const {
    return {channel_.finished + index_ * max_node_ranks, state_};
  }
  /// The area in which this rank receives the packets of `sender` in this round.
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* area(std::uint32_t sender) const {
    return area(sender, round_);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE machine::PacketPair* area(std::uint32_t sender, std::uint64_t round) const {
    return channel_.packets + (std::size_t{index_ * 2 + parity_of(round)} * ctx_.size + sender) * channel_.area_pairs;
  }

  Group group_;
  const Context& ctx_;
  CollectiveChannel channel_;
  std::uint32_t index_;
  std::uint32_t slices_ = 1;
  SessionState* state_;
  std::uint64_t round_ = 0;  ///< number of the round times `one_round`, plus the signature of its call
  std::uint64_t offset_ = 0, vectors_ = 0;
  std::uint32_t stage_ = 0;
  std::uint32_t signatures_ = 0;  ///< signature of the last round that this rank has left, and in the high bits that of
                                  ///< the round before
  bool entered_ = false, went_one_way_ = false, is_taken_ = false;
  const bool starts_kernel_;
  bool has_worked_;
};

namespace detail {

/// Processes `count` units, at most `most` in each `round(done, some)`. A call that was interrupted continues at that
/// point.
template <class Group, class Round>
[[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status in_rounds(Session<Group>& session, std::size_t count,
                                                                  std::size_t most, const Round& round) {
  for (std::size_t done = session.offset(); done < count;) {
    const std::size_t some = count - done < most ? count - done : most;
    if (const Status status = round(done, some); status != Status::ok) return status;
    done += some;
    session.set_offset(done);
  }
  session.set_offset(0);
  return Status::ok;
}

}  // namespace detail

}  // namespace beeline
