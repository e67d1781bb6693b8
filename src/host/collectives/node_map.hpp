// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which members of a team are on which node, and who speaks for a node.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "beeline/core/layout.hpp"

namespace beeline::detail {

/// Nodes are numbered in the order of their first members.
class NodeMap {
 public:
  NodeMap() = default;
  ///   node_of_member  any numbers
  explicit NodeMap(std::span<const int> node_of_member) {
    const auto members = static_cast<std::uint32_t>(node_of_member.size());
    for (std::uint32_t member = 0; member < members; ++member) {
      const auto* const first =
          std::find(node_of_member.data(), node_of_member.data() + member, node_of_member[member]);
      const auto before = static_cast<std::uint32_t>(first - node_of_member.data());
      node_of_[member] = before < member ? node_of_[before] : static_cast<std::uint8_t>(nodes_++);
    }
    std::uint32_t placed = 0;
    for (std::uint32_t node = 0; node < nodes_; ++node) {
      first_[node] = static_cast<std::uint8_t>(placed);
      for (std::uint32_t member = 0; member < members; ++member)
        if (node_of_[member] == node) order_[placed++] = static_cast<std::uint8_t>(member);
    }
    first_[nodes_] = static_cast<std::uint8_t>(placed);
  }

  [[nodiscard]] std::uint32_t nodes() const { return nodes_; }
  [[nodiscard]] std::uint32_t node_of(std::uint32_t member) const { return node_of_[member]; }
  /// Members of a node, in the order of ranks.
  [[nodiscard]] std::span<const std::uint8_t> members_of(std::uint32_t node) const {
    return {order_ + first_[node], static_cast<std::size_t>(first_[node + 1] - first_[node])};
  }
  /// Members of the node that has the fewest.
  [[nodiscard]] std::size_t smallest() const {
    std::size_t found = members_of(0).size();
    for (std::uint32_t node = 1; node < nodes_; ++node) found = std::min(found, members_of(node).size());
    return found;
  }
  /// The member of a node that speaks for it in a piece of work: they take turns.
  [[nodiscard]] std::uint32_t speaker(std::uint32_t node, std::size_t piece) const {
    const auto members = members_of(node);
    return members[piece % members.size()];
  }
  /// The same; on its node, `owner` itself speaks.
  [[nodiscard]] std::uint32_t speaker(std::uint32_t node, std::size_t piece, std::uint32_t owner) const {
    return owner != no_peer && node_of(owner) == node ? owner : speaker(node, piece);
  }

 private:
  std::uint32_t nodes_ = 0;
  std::uint8_t node_of_[max_ranks] = {};
  std::uint8_t order_[max_ranks] = {};      ///< members by node
  std::uint8_t first_[max_ranks + 1] = {};  ///< where each node's begin
};
static_assert(std::is_trivially_copyable_v<NodeMap> && max_ranks <= 0xff);

}  // namespace beeline::detail
