// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Teams: ordered subsets of the world with a barrier and an abort of their own.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "beeline/device/context.hpp"
#include "beeline/host/world.hpp"

namespace beeline {

/// How ranks that are to be a team meet: gives each the bytes of all, by rank of the team.
using TeamExchange = std::function<std::vector<std::vector<std::byte>>(std::span<const std::byte>)>;

/// This rank's membership of a team, made by `World::make_team` or `make_team_among`. Pass `context()` to kernels
/// through `LaunchOptions::context`: peers in it are ranks of the team.
class Team {
 public:
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] int rank() const { return static_cast<int>(context_.rank); }
  [[nodiscard]] int size() const { return static_cast<int>(context_.size); }
  [[nodiscard]] int world_rank(int rank) const;  ///< throws invalid_argument outside the team
  [[nodiscard]] const Context& context() const { return context_; }
  [[nodiscard]] const Context& host_context() const { return host_context_; }
  /// Whether the team is aborted: by a deadline of its own, or the end of a member. Its members may go on with a new
  /// team.
  [[nodiscard]] bool failed() const;
  /// Collective over the team. Barrier of its CPU threads; orders memory. Throws deadline or aborted.
  void barrier() { static_cast<void>(barrier(Timeout::none())); }
  /// The same up to the call's own limit, as `World::barrier`.
  [[nodiscard]] Status barrier(Timeout timeout);
  /// Bytes that each member may pass to `allgather`.
  static constexpr std::size_t max_gathered_bytes = 120;
  /// Collective over the team. Everyone's bytes, by rank of the team; sizes may differ. Throws invalid_argument for too
  /// many, deadline or aborted.
  [[nodiscard]] std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine);

  /// Collective over the team. As `World::allocate`, at the same offset on every member. It comes from the far end of
  /// the heap: there only some ranks have less, and the world's allocations, from the near end, still match.
  [[nodiscard]] void* allocate(std::size_t bytes, Heap heap = Heap::symmetric);
  /// Collective over the team: all members free the same allocation. Waits for this rank's default stream first; the
  /// work of its other streams must be over. Throws invalid_argument for what this rank's world has not allocated.
  void free(void* pointer);

 private:
  friend class World;
  friend std::unique_ptr<Team> make_team_among(World& world, const std::vector<int>& ranks,
                                               const TeamExchange& exchange);
  Team(World& world, const Context& context, const Context& host_context)
      : world_(world), context_(context), host_context_(host_context) {}
  World& world_;
  Context context_, host_context_;
};

/// Collective over `ranks` alone, which have a way of their own to meet: as `World::make_team` without the others, who
/// may be anywhere. Members of two teams make them in the same order.
///   ranks     world ranks, ascending, this one among them
///   exchange  called twice, one after the other; its waits have a deadline of their own
/// Throws as `World::make_team`, and what `exchange` throws.
[[nodiscard]] std::unique_ptr<Team> make_team_among(World& world, const std::vector<int>& ranks,
                                                    const TeamExchange& exchange);

}  // namespace beeline
