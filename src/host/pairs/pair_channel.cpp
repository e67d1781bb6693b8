// SPDX-License-Identifier: Apache-2.0
#include "host/pairs/pair_channel.hpp"

#include <utility>

#include "host/world/membership.hpp"
#include "host/world/part.hpp"

namespace beeline::detail {

namespace {

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

std::size_t bytes_for(std::size_t members, std::span<const PairSizes> sizes) {
  Cutter none(nullptr);
  for (const PairSizes& each : sizes) static_cast<void>(cut(none, members, each));
  return reinterpret_cast<std::uintptr_t>(none.end());
}

/// The word that a member publishes for a call: its number, in the low bits its signature.
std::uint64_t shown_number(std::uint64_t call, std::uint64_t packed, std::uint64_t count) {
  return call << signature_bits | unpacked_call(packed, count).signature();
}

}  // namespace

bool kernels_share_links(const Team& team) { return !world_part<Membership>(team.world()).has_gpus(); }

PairMemory::PairMemory(Team& team, std::span<const PairSizes> sizes)
    : memory_(team, bytes_for(static_cast<std::size_t>(team.size()), sizes),
              world_part<Membership>(team.world()).has_gpus() ? Heap::pinned : Heap::symmetric) {
  Cutter memory(memory_.data());
  for (const PairSizes& each : sizes) channels_.push_back(cut(memory, static_cast<std::size_t>(team.size()), each));
}

Status PairLinks::compare_calls(std::uint32_t peer) const {
  const PairState& mine = *channel_.state;
  ShownCall& own = channel_.shown[ctx_.rank];  // on peers: this call; here: the last published call, and its peer
  const std::uint64_t number = shown_number(mine.calls(), mine.packed, mine.count);
  if (own.number != number || own.count != peer) {
    own = {mine.packed, peer, number};
    Status status = store(own.packed, mine.packed, peer);
    if (status == Status::ok) status = store(own.count, mine.count, peer);
    if (status == Status::ok) status = store(own.number, number, peer);
    if (status != Status::ok) return status;
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

}  // namespace beeline::detail
