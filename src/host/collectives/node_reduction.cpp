// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/node_reduction.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "control/mapped_memory.hpp"
#include "host/collectives/short_reduction.hpp"
#include "host/pairs/call_chunks.hpp"

namespace beeline::detail {

namespace {

/// Number of elements that are combined at a time; they stay in the first-level cache for all vectors.
constexpr std::size_t run_elements = 1024;
/// A block of fewer bytes is not divided among leaders: each further message to another node costs both ends some
/// 10 us, as long as 32 KiB take.
constexpr std::size_t least_block_bytes = std::size_t{32} << 10;
/// Value instead of an offset: the vector is copied to and from the member's staging memory.
constexpr std::uint64_t is_staged = ~std::uint64_t{0};

/// Elements that are reduced together. They belong to the piece that `owner` gets; `no_peer`: all members get the
/// result.
struct Block {
  std::size_t number, first, count;
  std::uint32_t owner;
};

/// Addresses at which this member reaches the vectors of a member of this node.
struct OpenVectors {
  std::byte *source, *destination;
  std::byte* staging;  ///< a segment's blocks, one after the other; nullptr: the vectors are shared
};

class Reducing {
 public:
  Reducing(const PairLinks& links, const NodeMap& nodes, const NodeReduction& reduction)
      : links_(links), chunks_(links), ctx_(links.context()), nodes_(nodes), what_(reduction),
        reducer_(*reduction.reducer), here_(nodes.node_of(ctx_.rank)), near_(nodes.members_of(here_)),
        element_bytes_(reduction.element_bytes),
        pieces_(contains(piecewise_sends, reduction.call.operation) ? ctx_.size : 1),
        is_for_all_(pieces_ == 1 && reduction.call.root == no_peer),
        is_two_shot_(reduction.call.algorithm == Algorithm::two_shot_across_nodes), most_(block_elements()),
        blocks_(pieces_ * std::max<std::size_t>(1, (reduction.count + most_ - 1) / most_)),
        lag_(is_for_all_ || is_two_shot_ ? 2 * nodes.smallest() : 1), lies_open_(shares_vectors()), open_(ctx_.size),
        kept_(lag_ + 1) {}

  [[nodiscard]] Status run() {
    for (first_ = 0; first_ < blocks_; first_ = end_) {
      end_ = std::min(blocks_, first_ + staged_blocks());
      if (const Status status = open(); status != Status::ok) return status;
      if (const Status status = reduce(); status != Status::ok) return status;
      if (const Status status = close(); status != Status::ok) return status;
    }
    return Status::ok;
  }

 private:
  /// Elements of a block: as many as fit a chunk; fewer if each member leads a part.
  [[nodiscard]] std::size_t block_elements() const {
    const std::size_t most = links_.channel().chunk_bytes() / std::max(reducer_.wide_bytes, element_bytes_);
    const std::size_t leaders = (pieces_ == 1 ? nodes_.smallest() : 1) * (is_two_shot_ ? nodes_.nodes() : 1);
    const std::size_t least = least_block_bytes / element_bytes_;
    const std::size_t share = (what_.count + leaders - 1) / leaders;
    return std::min(most, std::max(share, least));
  }
  [[nodiscard]] Block block_of(std::size_t number) const {
    const std::size_t first = number / pieces_ * most_;
    const std::uint32_t owner = pieces_ == 1 ? what_.call.root : static_cast<std::uint32_t>(number % pieces_);
    return {number, first, std::min(most_, what_.count - first), owner};
  }
  [[nodiscard]] std::uint32_t node_leader(std::uint32_t node, const Block& block) const {
    return nodes_.node_leader(node, block.number, block.owner);
  }
  [[nodiscard]] bool leads(const Block& block) const { return node_leader(here_, block) == ctx_.rank; }
  /// In two shots, the node that combines the nodes' sums of a block.
  [[nodiscard]] std::uint32_t combining_node(const Block& block) const {
    return static_cast<std::uint32_t>(block.number / nodes_.smallest() % nodes_.nodes());
  }
  /// Whether members of `node` get the result.
  [[nodiscard]] bool gets_result(std::uint32_t node, const Block& block) const {
    return is_for_all_ || node == nodes_.node_of(block.owner);
  }
  /// Whether the leader of `node` combines the nodes' sums.
  [[nodiscard]] bool combines(std::uint32_t node, const Block& block) const {
    return is_two_shot_ ? node == combining_node(block) : gets_result(node, block);
  }
  [[nodiscard]] bool finishes(const Block& block) const { return leads(block) && combines(here_, block); }

  // Addresses of vectors.

  [[nodiscard]] std::size_t source_offset(const Block& block) const {
    const std::size_t piece = pieces_ == 1 ? 0 : block.owner * what_.count;
    return (piece + block.first) * element_bytes_;
  }
  [[nodiscard]] std::size_t destination_offset(const Block& block) const { return block.first * element_bytes_; }
  [[nodiscard]] std::size_t staging_offset(const Block& block) const {
    return (block.number - first_) * most_ * element_bytes_;
  }
  /// A member's staging memory on this rank: the channel to itself, which is otherwise unused.
  [[nodiscard]] std::byte* own_staging(std::uint32_t member) const {
    return links_.channel().box(links_.channel().outbox, member, 0);
  }
  [[nodiscard]] std::size_t staged_blocks() const {
    const PairChannel& channel = links_.channel();
    return std::max<std::size_t>(1, channel.depth * channel.box_bytes / (most_ * element_bytes_));
  }
  [[nodiscard]] bool lies_in_own_heap(const std::byte* vector, std::size_t bytes) const {
    return vector == nullptr || (ctx_.owner_of(vector) == ctx_.own_world_rank &&
                                 beeline::lies_in_heap(ctx_, ctx_.offset_in_slot(vector), bytes));
  }
  [[nodiscard]] bool shares_vectors() const {
    const std::size_t bytes = what_.count * element_bytes_;
    return what_.may_share_heaps && lies_in_own_heap(what_.source, pieces_ * bytes) &&
           (!is_for_all_ || lies_in_own_heap(what_.destination, bytes));
  }
  [[nodiscard]] const std::byte* source_of(std::uint32_t member, const Block& block) const {
    if (member == ctx_.rank) return what_.source + source_offset(block);
    const OpenVectors& open = open_[member];
    return open.staging == nullptr ? open.source + source_offset(block) : open.staging + staging_offset(block);
  }
  [[nodiscard]] std::byte* destination_of(std::uint32_t member, const Block& block) const {
    if (member == ctx_.rank) return what_.destination + destination_offset(block);
    const OpenVectors& open = open_[member];
    return open.staging == nullptr ? open.destination + destination_offset(block)
                                   : open.staging + staging_offset(block);
  }

  // Inside the node.

  /// Calls `use(block)` for the blocks of this segment that other members of the node lead.
  template <class Use>
  void for_others_blocks(const Use& use) const {
    for (std::size_t number = first_; number < end_; ++number)
      if (const Block block = block_of(number); !leads(block) && block.count != 0) use(block);
  }
  /// Sends a chunk to each other member of the node, and takes one from each.
  template <class Take>
  [[nodiscard]] Status exchange(const ChunkHead& head, const Take& take) {
    for (const std::uint32_t member : near_)
      if (member != ctx_.rank)
        if (const Status status = chunks_.send(member, head, nullptr); status != Status::ok) return status;
    for (const std::uint32_t member : near_) {
      if (member == ctx_.rank) continue;
      const ChunkHead* chunk = nullptr;
      Status status = chunks_.await(member, chunk);
      if (status == Status::ok) take(member, *chunk), status = links_.release(member);
      if (status != Status::ok) return status;
    }
    return Status::ok;
  }
  [[nodiscard]] ChunkHead head_of(std::size_t bytes) const {
    return {what_.call.packed(), what_.call.count, bytes, bytes, ctx_.rank};
  }

  /// Exchanges the offsets of the vectors with the node's members. If all vectors are shared, there is one segment; in
  /// two shots, if this is so on all nodes: sums and results then come in the same order everywhere.
  [[nodiscard]] Status open() {
    ChunkHead head = head_of(0);
    if (lies_open_) {
      head.source = what_.source == nullptr ? 0 : ctx_.offset_in_slot(what_.source);
      head.destination = what_.destination == nullptr ? 0 : ctx_.offset_in_slot(what_.destination);
    } else {
      head.source = is_staged;
      for_others_blocks([&](const Block& block) {
        std::memcpy(own_staging(ctx_.rank) + staging_offset(block), what_.source + source_offset(block),
                    block.count * element_bytes_);
      });
    }
    std::uint8_t needs_no_staging = lies_open_ || near_.size() == 1 ? 1 : 0;
    Status status = exchange(head, [&](std::uint32_t member, const ChunkHead& chunk) {
      open_[member] = vectors_of(member, chunk);
      if (chunk.source == is_staged) needs_no_staging = 0;
    });
    if (status != Status::ok || first_ != 0) return status;
    if (auto* const flag = reinterpret_cast<std::byte*>(&needs_no_staging); is_two_shot_)
      status = reduce_short(
          links_, nodes_, {what_.call, Reduction::minimum, flag, flag, &wide_reducer(ElementType::uint8), 1, 1, false});
    if (needs_no_staging != 0) end_ = blocks_;
    return status;
  }
  [[nodiscard]] OpenVectors vectors_of(std::uint32_t member, const ChunkHead& chunk) const {
    const std::uint32_t place = ctx_.access_to(member).place;
    std::byte* const staging = own_staging(member);
    if (chunk.source == is_staged) return {nullptr, nullptr, ctx_.translate(staging, place)};
    std::byte* const slot = staging - ctx_.offset_in_slot(staging);
    return {ctx_.translate(slot + chunk.source, place), ctx_.translate(slot + chunk.destination, place), nullptr};
  }

  /// Waits until the other members have finished reading and writing this member's vectors.
  [[nodiscard]] Status close() {
    const Status status = exchange(head_of(0), [](std::uint32_t, const ChunkHead&) {});
    if (status == Status::ok && is_for_all_ && !lies_open_)
      for_others_blocks([&](const Block& block) {
        std::memcpy(what_.destination + destination_offset(block), own_staging(ctx_.rank) + staging_offset(block),
                    block.count * element_bytes_);
      });
    return status;
  }

  // Between nodes.

  [[nodiscard]] Status reduce() {
    const std::size_t last_lag = is_two_shot_ ? 2 * lag_ : lag_;
    for (std::size_t step = first_; step < end_ + last_lag; ++step) {
      Status status = step < end_ ? gather(block_of(step)) : Status::ok;
      if (status == Status::ok && has_block(step, lag_)) status = finish(block_of(step - lag_));
      if (status == Status::ok && is_two_shot_ && has_block(step, last_lag))
        status = receive(block_of(step - last_lag));
      if (status != Status::ok) return status;
    }
    return Status::ok;
  }
  [[nodiscard]] bool has_block(std::size_t step, std::size_t lag) const {
    return step >= first_ + lag && step < end_ + lag;
  }

  /// Combines the vectors of this node's members and sends the sum to the other nodes.
  [[nodiscard]] Status gather(const Block& block) {
    if (!leads(block)) return Status::ok;
    const ChunkHead head = head_of(block.count * reducer_.wide_bytes);
    std::byte* sum = nullptr;
    for (std::uint32_t node = 0; node < nodes_.nodes(); ++node) {
      if (node == here_ || !combines(node, block)) continue;
      const std::uint32_t peer = node_leader(node, block);
      if (const Status status = chunks_.await_room(peer); status != Status::ok) return status;
      if (sum == nullptr) add_up(block, sum = links_.place_for(peer));
      if (const Status status = links_.put(peer, head, sum); status != Status::ok) return status;
    }
    if (!finishes(block)) return Status::ok;
    if (sum == nullptr) {
      std::vector<std::byte>& kept = kept_[kept_blocks_++ % kept_.size()];
      kept.resize(std::max<std::size_t>(1, block.count * reducer_.wide_bytes));
      add_up(block, sum = kept.data());
    }
    sums_.push_back(sum);
    return Status::ok;
  }

  void add_up(const Block& block, std::byte* sum) const {
    for_runs(block, [&](std::size_t first, std::size_t count) {
      std::byte* const to = sum + first * reducer_.wide_bytes;
      bool is_first = true;
      for (const std::uint32_t member : near_) {
        const std::byte* const from = source_of(member, block) + first * element_bytes_;
        if (std::exchange(is_first, false))
          reducer_.start(to, from, count);
        else
          reducer_.add(what_.reduction, to, from, count);
      }
    });
  }

  /// Combines the nodes' sums and writes the result. In two shots, sends it to the other nodes that get it.
  [[nodiscard]] Status finish(const Block& block) {
    if (!finishes(block)) return Status::ok;
    std::byte* own = gets_result(here_, block) ? destination_of(ctx_.rank, block) : nullptr;
    if (own == nullptr) {  // the owner is on another node
      if (const Status status = chunks_.await_room(block.owner); status != Status::ok) return status;
      own = links_.place_for(block.owner);
    }
    node_sums_.resize(nodes_.nodes());
    for (std::uint32_t node = 0; node < nodes_.nodes(); ++node) {
      const ChunkHead* chunk = nullptr;
      if (node != here_)
        if (const Status status = chunks_.await(node_leader(node, block), chunk); status != Status::ok) return status;
      node_sums_[node] = node == here_ ? sums_.front() : reinterpret_cast<const std::byte*>(chunk + 1);
    }
    for_runs(block, [&](std::size_t first, std::size_t count) { write_result(own, first, count); });
    if (is_for_all_) share(block, own);
    sums_.pop_front();
    for (std::uint32_t node = 0; node < nodes_.nodes(); ++node) {
      if (node == here_) continue;
      const std::uint32_t peer = node_leader(node, block);
      Status status = links_.release(peer);
      if (status == Status::ok && is_two_shot_ && gets_result(node, block))
        status = chunks_.send(peer, head_of(block.count * element_bytes_), own);
      if (status != Status::ok) return status;
    }
    return Status::ok;
  }

  /// Takes the result from the node that has combined the sums.
  [[nodiscard]] Status receive(const Block& block) {
    if (!leads(block) || combines(here_, block) || !gets_result(here_, block)) return Status::ok;
    return chunks_.take(node_leader(combining_node(block), block), [&](const std::byte* result) {
      std::byte* const own = destination_of(ctx_.rank, block);
      if (block.count != 0) std::memcpy(own, result, block.count * element_bytes_);
      if (is_for_all_) share(block, own);
    });
  }

  /// Combines the sums in the order of nodes.
  void write_result(std::byte* result, std::size_t first, std::size_t count) {
    std::byte* const whole = whole_.data();
    std::memcpy(whole, node_sums_[0] + first * reducer_.wide_bytes, count * reducer_.wide_bytes);
    for (std::uint32_t node = 1; node < nodes_.nodes(); ++node)
      reducer_.merge(what_.reduction, whole, node_sums_[node] + first * reducer_.wide_bytes, count);
    reducer_.finish(what_.reduction, ctx_.size, whole, result + first * element_bytes_, count);
  }
  /// Copies a block's result to the other members of the node.
  void share(const Block& block, const std::byte* result) const {
    if (block.count == 0) return;
    for (const std::uint32_t member : near_)
      if (member != ctx_.rank) std::memcpy(destination_of(member, block), result, block.count * element_bytes_);
  }

  template <class Use>
  static void for_runs(const Block& block, const Use& use) {
    for (std::size_t first = 0; first < block.count; first += run_elements)
      use(first, std::min(run_elements, block.count - first));
  }

  const PairLinks& links_;
  const CallChunks chunks_;
  const Context& ctx_;
  const NodeMap& nodes_;
  const NodeReduction& what_;
  const WideReducer& reducer_;
  const std::uint32_t here_;
  const std::span<const std::uint16_t> near_;  ///< the members of this node
  const std::size_t element_bytes_, pieces_;
  const bool is_for_all_, is_two_shot_;
  const std::size_t most_, blocks_;
  /// Number of blocks from the gathering of a block to its finishing, and from there to the receipt of its result: two
  /// more blocks of this member, if the members of a node lead in turn. Fewer than `depth` chunks are then in flight
  /// from one member to another, sums and results together, so no two members wait for room at each other.
  const std::size_t lag_;
  const bool lies_open_;
  std::size_t first_ = 0, end_ = 0;           ///< blocks of this segment
  std::vector<OpenVectors> open_;             ///< [members] of this node
  std::vector<const std::byte*> node_sums_;   ///< [nodes] sums of the block that is being finished
  std::deque<const std::byte*> sums_;         ///< this node's sums of gathered, unfinished blocks
  std::vector<std::vector<std::byte>> kept_;  ///< sums that are not sent, of unfinished blocks
  std::size_t kept_blocks_ = 0;
  alignas(64) std::array<std::byte, run_elements * sizeof(std::uint64_t)> whole_;
};

}  // namespace

Status reduce_across(const PairLinks& links, const NodeMap& nodes, const NodeReduction& reduction) {
  return Reducing(links, nodes, reduction).run();
}

}  // namespace beeline::detail
