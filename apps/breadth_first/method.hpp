// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface of the methods, and their list.

#include <cstdint>
#include <vector>

#include "common/method.hpp"
#include "graph.hpp"

namespace breadth_first {

/// What a search has seen on this rank.
struct Course {
  std::uint64_t levels;       ///< levels with vertices, the root's included
  std::uint64_t search_ns;    ///< of the level loop
  std::uint64_t exchange_ns;  ///< of `search_ns`: moving vertices or bitmaps to other ranks, and waiting for them
};

/// One method to search. Constructors and destructors are collective.
class Method : public apps::MethodOn<Graph> {
 public:
  using MethodOn::MethodOn;
  /// Collective. Searches from the vertex at position `root`, and sets this rank's part of the tree to positions of
  /// parents; the root is its own parent. Returns when this rank has no more part in it. Throws the error of a failed
  /// wait: deadline, aborted, peer_died.
  [[nodiscard]] virtual Course search(std::uint32_t root) = 0;

 protected:
  [[nodiscard]] Graph& graph() const { return data(); }
  /// Waits for the kernel of a search, which has stored its course.
  [[nodiscard]] Course end_search(const beeline::SymmetricArray<Course>& stored) const {
    world().synchronize();
    Course course{};
    world().copy(&course, stored.data(), sizeof course);
    return course;
  }
};

using MethodInfo = apps::MethodInfo<Method, Graph>;

/// Every method, the baseline first.
[[nodiscard]] const std::vector<MethodInfo>& methods();

[[nodiscard]] MethodInfo alltoallv();
[[nodiscard]] MethodInfo message();
[[nodiscard]] MethodInfo put();
[[nodiscard]] MethodInfo bitmap();

/// Bytes of symmetric memory of the method that needs most, on a rank.
[[nodiscard]] std::uint64_t method_bytes(std::uint64_t per_rank, std::uint64_t ranks, bool on_gpus);

}  // namespace breadth_first
