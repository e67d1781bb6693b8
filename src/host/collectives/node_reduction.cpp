// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/node_reduction.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace beeline::detail {

namespace {

/// Blocks of which the first half is done before the second half of the first.
constexpr std::size_t window = 2;

/// Elements that are reduced together, of the piece that `owner` gets; `no_peer`: all get it.
struct Block {
  std::size_t number, first, count;
  std::uint32_t owner;
};

class Reducing {
 public:
  Reducing(const PairLinks& links, const NodeMap& nodes, const NodeReduction& reduction)
      : links_(links), ctx_(links.context()), nodes_(nodes), what_(reduction), here_(nodes.node_of(ctx_.rank)),
        element_bytes_(bytes_of(reduction.call.element.type)),
        most_(links.channel().chunk_bytes() / std::max(reduction.reducer->wide_bytes, element_bytes_)),
        pieces_(contains(piecewise_sends, reduction.call.operation) ? ctx_.size : 1) {
    for (auto& partial : partials_) partial.resize(std::min(most_, what_.count) * what_.reducer->wide_bytes);
    whole_.resize(partials_[0].size()), result_.resize(std::min(most_, what_.count) * element_bytes_);
  }

  [[nodiscard]] Status run() {
    const std::size_t blocks = pieces_ * std::max<std::size_t>(1, (what_.count + most_ - 1) / most_);
    for (std::size_t step = 0; step < blocks + window - 1; ++step) {
      if (step < blocks)
        if (const Status status = first_half(block_of(step)); status != Status::ok) return status;
      if (step + 1 >= window)
        if (const Status status = second_half(block_of(step + 1 - window)); status != Status::ok) return status;
    }
    return Status::ok;
  }

 private:
  [[nodiscard]] Block block_of(std::size_t number) const {
    const std::size_t first = number / pieces_ * most_;
    const std::uint32_t owner = pieces_ == 1 ? what_.call.root : static_cast<std::uint32_t>(number % pieces_);
    return {number, first, std::min(most_, what_.count - first), owner};
  }
  [[nodiscard]] std::uint32_t speaker(std::uint32_t node, const Block& block) const {
    return nodes_.speaker(node, block.number, block.owner);
  }
  [[nodiscard]] const std::byte* source(const Block& block) const {
    const std::size_t piece = pieces_ == 1 ? 0 : block.owner * what_.count;
    return what_.source == nullptr ? nullptr : what_.source + (piece + block.first) * element_bytes_;
  }
  [[nodiscard]] std::byte* destination(const Block& block) const {
    return what_.destination == nullptr ? nullptr : what_.destination + block.first * element_bytes_;
  }
  [[nodiscard]] std::vector<std::byte>& partial(const Block& block) { return partials_[block.number % window]; }

  /// What this node's members have goes to its speaker, and to the other nodes.
  [[nodiscard]] Status first_half(const Block& block) {
    const std::uint32_t mine = speaker(here_, block);
    if (mine != ctx_.rank) return send(mine, source(block), block.count * element_bytes_);
    bool is_first = true;
    for (const std::uint32_t member : nodes_.members_of(here_)) {
      const auto combine = [&](const void* elements) {
        if (is_first)
          what_.reducer->start(partial(block).data(), elements, block.count);
        else
          what_.reducer->add(what_.call.reduction, partial(block).data(), elements, block.count);
        is_first = false;
      };
      if (member == ctx_.rank)
        combine(source(block));
      else if (const Status status = receive(member, combine); status != Status::ok)
        return status;
    }
    for (std::uint32_t node = 0; node < nodes_.nodes(); ++node) {
      const bool is_told = block.owner == no_peer ? node != here_ : node == nodes_.node_of(block.owner);
      if (node == here_ || !is_told) continue;
      const Status status = send(speaker(node, block), partial(block).data(), block.count * what_.reducer->wide_bytes);
      if (status != Status::ok) return status;
    }
    return Status::ok;
  }

  /// What nodes have becomes the result, where it is wanted.
  [[nodiscard]] Status second_half(const Block& block) {
    const std::uint32_t mine = speaker(here_, block);
    if (block.owner != no_peer) return block.owner == ctx_.rank ? finish(block, destination(block)) : Status::ok;
    const std::size_t bytes = block.count * element_bytes_;
    if (mine != ctx_.rank)
      return receive(mine, [&](const void* elements) { copy(destination(block), elements, bytes); });
    if (const Status status = finish(block, result_.data()); status != Status::ok) return status;
    copy(destination(block), result_.data(), bytes);
    for (const std::uint32_t member : nodes_.members_of(here_))
      if (member != ctx_.rank)
        if (const Status status = send(member, result_.data(), bytes); status != Status::ok) return status;
    return Status::ok;
  }

  static void copy(std::byte* to, const void* from, std::size_t bytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }

  /// Nodes in their order.
  [[nodiscard]] Status finish(const Block& block, std::byte* elements) {
    for (std::uint32_t node = 0; node < nodes_.nodes(); ++node) {
      const auto merge = [&](const void* wide) {
        if (node == 0)
          copy(whole_.data(), wide, block.count * what_.reducer->wide_bytes);
        else
          what_.reducer->merge(what_.call.reduction, whole_.data(), wide, block.count);
      };
      if (node == here_)
        merge(partial(block).data());
      else if (const Status status = receive(speaker(node, block), merge); status != Status::ok)
        return status;
    }
    what_.reducer->finish(what_.call.reduction, ctx_.size, whole_.data(), elements, block.count);
    return Status::ok;
  }

  [[nodiscard]] Status send(std::uint32_t peer, const void* data, std::size_t bytes) {
    const std::uint64_t number = links_.next_number(peer);
    const PairWait wait{Operation::collective, peer, number, &links_};
    const Status status = poll_until(ctx_, wait, Timeout::none(), [&](std::uint64_t& observed) {
      observed = number - 1;
      return links_.has_room(peer);
    });
    if (status != Status::ok) return status;
    return links_.put(peer, {what_.call.packed(), what_.call.count, bytes, bytes, ctx_.rank}, data);
  }

  /// The next chunk of `peer`'s, to `use`.
  template <class Use>
  [[nodiscard]] Status receive(std::uint32_t peer, const Use& use) {
    const std::uint64_t number = links_.awaited_number(peer);
    const PairWait wait{Operation::collective, peer, number, &links_};
    const ChunkHead* chunk = nullptr;
    Status status = poll_until(ctx_, wait, Timeout::none(), [&](std::uint64_t& observed) {
      observed = number - 1;
      chunk = links_.next(peer);
      return chunk != nullptr;
    });
    if (status == Status::ok) status = links_.check_call(peer, *chunk);
    if (status != Status::ok) return status;
    use(chunk + 1);
    return links_.release(peer);
  }

  const PairLinks& links_;
  const Context& ctx_;
  const NodeMap& nodes_;
  const NodeReduction& what_;
  const std::uint32_t here_;
  const std::size_t element_bytes_, most_, pieces_;
  std::vector<std::byte> partials_[window], whole_, result_;
};

}  // namespace

Status reduce_across(const PairLinks& links, const NodeMap& nodes, const NodeReduction& reduction) {
  return Reducing(links, nodes, reduction).run();
}

}  // namespace beeline::detail
