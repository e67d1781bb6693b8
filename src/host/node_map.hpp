// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The node of each team member, and the leader of each node.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "beeline/core/layout.hpp"

namespace beeline::detail {

/// Nodes are numbered in the order of their first members.
class NodeMap {
 public:
  ///   node_of_member  any numbers
  explicit NodeMap(std::span<const int> node_of_member) {
    std::map<int, std::uint16_t> numbers;
    for (const int node : node_of_member)
      node_of_.push_back(numbers.try_emplace(node, static_cast<std::uint16_t>(numbers.size())).first->second);
    nodes_ = static_cast<std::uint32_t>(numbers.size());
    order_.resize(node_of_.size());
    std::iota(order_.begin(), order_.end(), std::uint16_t{0});
    std::ranges::stable_sort(order_, {}, [this](std::uint16_t member) { return node_of_[member]; });
    first_.resize(nodes_ + 1);
    for (const std::uint16_t node : node_of_) ++first_[node + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
  }

  [[nodiscard]] std::uint32_t nodes() const { return nodes_; }
  [[nodiscard]] std::uint32_t node_of(std::uint32_t member) const { return node_of_[member]; }
  /// Members of a node, in the order of ranks.
  [[nodiscard]] std::span<const std::uint16_t> members_of(std::uint32_t node) const {
    return {order_.data() + first_[node], static_cast<std::size_t>(first_[node + 1] - first_[node])};
  }
  /// Number of members on the node with the fewest members.
  [[nodiscard]] std::size_t smallest() const {
    std::size_t found = members_of(0).size();
    for (std::uint32_t node = 1; node < nodes_; ++node) found = std::min(found, members_of(node).size());
    return found;
  }
  /// The first member of a node.
  [[nodiscard]] std::uint32_t first_of(std::uint32_t node) const { return order_[first_[node]]; }
  /// The leader of a node for a piece of work; members take turns by piece.
  [[nodiscard]] std::uint32_t node_leader(std::uint32_t node, std::size_t piece) const {
    const auto members = members_of(node);
    return members[piece % members.size()];
  }
  /// As above; on the node of `owner`, `owner` is the leader.
  [[nodiscard]] std::uint32_t node_leader(std::uint32_t node, std::size_t piece, std::uint32_t owner) const {
    return owner != no_peer && node_of(owner) == node ? owner : node_leader(node, piece);
  }

 private:
  std::uint32_t nodes_ = 0;
  std::vector<std::uint16_t> node_of_;
  std::vector<std::uint16_t> order_;  ///< members by node
  std::vector<std::uint16_t> first_;  ///< index of each node's first member in order_
};

}  // namespace beeline::detail
