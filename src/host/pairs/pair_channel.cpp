// SPDX-License-Identifier: Apache-2.0
#include "host/pairs/pair_channel.hpp"

#include <cstring>

#include "beeline/device/put_get.hpp"
#include "beeline/device/signal.hpp"
#include "host/world/membership.hpp"
#include "host/world/part.hpp"

namespace beeline::detail {

namespace {

using Word = SystemAtomic<std::uint64_t>;

/// Divides the memory into parts, one after the other.
class Cutter {
 public:
  explicit Cutter(std::byte* memory) : at_(memory) {}
  template <class T>
  T* cut(std::size_t count) {
    static_assert(sizeof(T) % 64 == 0 || sizeof(T) == 1);
    return reinterpret_cast<T*>(std::exchange(at_, at_ + count * sizeof(T)));
  }
  [[nodiscard]] std::byte* end() const { return at_; }

 private:
  std::byte* at_;
};

PairChannel cut(Cutter& memory, std::size_t members, const PairSizes& sizes) {
  PairChannel channel{};
  channel.members = static_cast<std::uint32_t>(members), channel.depth = sizes.depth;
  channel.box_bytes = sizeof(ChunkHead) + sizes.chunk_bytes;
  channel.arrived = memory.cut<PaddedWord>(members);
  channel.consumed = memory.cut<PaddedWord>(members);
  channel.shown = memory.cut<ShownCall>(members);
  channel.counts = memory.cut<PairCounts>(members);
  channel.state = memory.cut<PairState>(1);
  channel.boxes = memory.cut<std::byte>(members * sizes.depth * channel.box_bytes);
  channel.outbox = memory.cut<std::byte>(members * sizes.depth * channel.box_bytes);
  return channel;
}

std::size_t bytes_for(std::size_t members, const PairSizes& sizes) {
  Cutter none(nullptr);
  static_cast<void>(cut(none, members, sizes));
  return reinterpret_cast<std::uintptr_t>(none.end());
}

/// The word that a member publishes for a call: its number, in the low bits its signature.
std::uint64_t shown_number(std::uint64_t call, std::uint64_t packed, std::uint64_t count) {
  return call << signature_bits | unpacked_call(packed, count).signature();
}

}  // namespace

PairMemory::PairMemory(Team& team, const PairSizes& sizes)
    : memory_(team, bytes_for(static_cast<std::size_t>(team.size()), sizes),
              world_part<Membership>(team.world()).has_gpus() ? Heap::pinned : Heap::symmetric) {
  Cutter memory(memory_.data());
  channel_ = cut(memory, static_cast<std::size_t>(team.size()), sizes);
}

PairProgress PairLinks::progress_of(std::uint32_t peer) const {
  return PairProgress::of_word(Word(channel_.arrived[peer].value).load(std::memory_order_acquire));
}

bool PairLinks::has_room(std::uint32_t peer) const {
  const std::uint64_t sent = channel_.counts[peer].sent;
  if (sent - progress_of(peer).all_consumed(sent) < channel_.depth) return true;
  return sent - Word(channel_.consumed[peer].value).load(std::memory_order_acquire) < channel_.depth;
}

std::byte* PairLinks::next_box(std::uint32_t peer) const {
  const std::uint64_t number = channel_.counts[peer].sent;
  const AccessToPeer to = ctx_.access_to(peer);
  return to.access == PeerAccess::direct ? ctx_.translate(channel_.box(channel_.boxes, ctx_.rank, number), to.place)
                                         : channel_.box(channel_.outbox, peer, number);
}

std::byte* PairLinks::place_for(std::uint32_t peer) const { return next_box(peer) + sizeof(ChunkHead); }

Status PairLinks::put(std::uint32_t peer, const ChunkHead& head, const void* data) const {
  PairCounts& counts = channel_.counts[peer];
  std::byte* const written = next_box(peer);
  const std::uint64_t received = Word(counts.received).load(std::memory_order_acquire);
  ChunkHead sent = head;
  sent.call = channel_.state->number;
  std::memcpy(written, &sent, sizeof sent);
  Word(counts.told).store(received, std::memory_order_relaxed);
  if (head.bytes != 0 && data != written + sizeof head) std::memcpy(written + sizeof head, data, head.bytes);
  std::byte* const box = channel_.box(channel_.boxes, ctx_.rank, counts.sent);  // at the same offset on the peer
  std::uint64_t* const arrived = &channel_.arrived[ctx_.rank].value;
  const PairProgress progress{static_cast<std::uint32_t>(++counts.sent), static_cast<std::uint32_t>(received)};
  if (ctx_.access_to(peer).access == PeerAccess::direct) return signal(Thread{}, ctx_, arrived, progress.word(), peer);
  return put_signal(Thread{}, ctx_, box, static_cast<const std::byte*>(written), sizeof head + head.bytes, arrived,
                    progress.word(), peer);
}

const ChunkHead* PairLinks::next(std::uint32_t peer) const {
  const std::uint64_t received = channel_.counts[peer].received;
  if (progress_of(peer).all_put(received) == received) return nullptr;
  return reinterpret_cast<const ChunkHead*>(channel_.box(channel_.boxes, peer, received));
}

Status PairLinks::release(std::uint32_t peer) const {
  PairCounts& counts = channel_.counts[peer];
  const std::uint64_t received = counts.received + 1;
  Word(counts.received).store(received, std::memory_order_release);
  const Word told(counts.told);
  if (received - told.load(std::memory_order_relaxed) < channel_.depth / 2) return Status::ok;
  told.store(received, std::memory_order_relaxed);
  return signal(Thread{}, ctx_, &channel_.consumed[ctx_.rank].value, received, peer);
}

bool PairLinks::work_for(std::uint32_t peer) const {
  return ctx_.access_to(peer).access != PeerAccess::direct && do_wait_work();
}

Status PairLinks::refuse(std::uint32_t peer, CallDifference what, std::uint64_t packed, std::uint64_t count) const {
  const CallWords mine{channel_.state->packed, channel_.state->count};
  return refuse_call(ctx_, {what, peer, mine, {packed, count}});
}

Status PairLinks::check_taken() const {
  const std::uint64_t calls = channel_.state->calls();
  for (std::uint32_t peer = 0; peer < ctx_.size; ++peer)
    if (const ChunkHead* const chunk = next(peer); chunk != nullptr && chunk->call >> signature_bits < calls)
      return refuse(peer, CallDifference::order, chunk->packed, chunk->count);
  return Status::ok;
}

Status PairLinks::check_call(std::uint32_t peer, const ChunkHead& head) const {
  const PairState& mine = *channel_.state;
  const bool are_same = head.packed == mine.packed && head.count == mine.count;
  if (are_same && head.call == mine.number) return Status::ok;
  const bool is_now = !are_same && head.call >> signature_bits == mine.calls();
  return refuse(peer, is_now ? CallDifference::call : CallDifference::order, head.packed, head.count);
}

Status PairLinks::compare_calls(std::uint32_t peer) const {
  const PairState& mine = *channel_.state;
  ShownCall& own = channel_.shown[ctx_.rank];  // on peers: this call; here: the last one published, and to whom
  const std::uint64_t number = shown_number(mine.calls(), mine.packed, mine.count);
  if (own.number != number || own.count != peer) {
    own = {mine.packed, peer, number};
    const std::uint64_t words[] = {mine.packed, mine.count};
    std::uint64_t* const theirs = &channel_.shown[ctx_.rank].packed;
    for (const std::size_t word : {0, 1})
      if (const Status put = put_value(ctx_, theirs + word, words[word], peer); put != Status::ok) return put;
    if (const Status told = signal(Thread{}, ctx_, &own.number, number, peer); told != Status::ok) return told;
  }
  for (std::uint32_t other = 0; other < ctx_.size; ++other) {
    if (other == ctx_.rank) continue;
    // A member that is ahead may have sent a chunk of its next call.
    if (const ChunkHead* const chunk = next(other); chunk != nullptr && chunk->call >> signature_bits <= mine.calls())
      if (const Status status = check_call(other, *chunk); status != Status::ok) return status;
    ShownCall& shown = channel_.shown[other];
    const std::uint64_t theirs = Word(shown.number).load(std::memory_order_acquire);
    const std::uint64_t packed = Word(shown.packed).load(std::memory_order_relaxed);
    const std::uint64_t count = Word(shown.count).load(std::memory_order_relaxed);
    // While a later call is being written, the signature does not match these words.
    if (theirs == number || theirs >> signature_bits != mine.calls()) continue;
    if (shown_number(mine.calls(), packed, count) == theirs) return refuse(other, CallDifference::call, packed, count);
  }
  return Status::ok;
}

WaitState look(const Context& ctx, PairWait wait, Timeout timeout, std::uint64_t observed, std::uint64_t start_ns) {
  const std::uint64_t now = machine::clock_ns();
  WaitState state = state_of_wait(ctx, now, timeout, start_ns);
  const std::uint64_t waited = state.waited_ns(now);
  if (state.status == Status::ok && wait.compared != nullptr && waited >= patience_ns)
    state.status = wait.compared->compare_calls(wait.peer);
  else if (state.is_over())
    give_up(ctx, Awaited{wait.operation, wait.peer, wait.number, wait.number}, observed, waited, state.status);
  return state;
}

}  // namespace beeline::detail
