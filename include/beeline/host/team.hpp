// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Teams: ordered sets of ranks that communicate. The first of them is the world, of all ranks.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "beeline/collectives/reduction.hpp"
#include "beeline/device/context.hpp"
#include "beeline/device/wait.hpp"

namespace beeline {

class Team;
class World;

namespace detail {

/// A member's part in a reduction of values.
struct Scalar {
  ElementType type;
  Reduction reduction;
  std::uint64_t bits;
};
/// Collective. The bits of each member, in the order of ranks: [max_ranks]. Returns how many there are.
std::uint32_t exchange_scalars(Team& team, const Scalar& mine, std::uint64_t* all);

}  // namespace detail

/// Where a rank's allocation lies: where the code that polls or computes on it runs.
enum class Heap { symmetric, pinned };

/// An all-gather among the ranks that are to be a team: gives each the bytes of all, by rank of the team.
using MemberAllgather = std::function<std::vector<std::vector<std::byte>>(std::span<const std::byte>)>;

/// This rank's membership of a team: the world, or some of its ranks (`World::make_team`, `make_team_among`). A team
/// has a barrier and an abort of its own. `launch(team, ...)` gives kernels its context: peers in it are ranks of the
/// team.
///
/// Functions marked *collective*, and constructors of what ranks make together (`SymmetricArray`, `PacketRings`,
/// `Collectives`, `Messages`), are called by the members of the team that they are given, in the same order: with a
/// `World` by all ranks, with a `Team` by its members alone.
class Team {
 public:
  virtual ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] int rank() const { return static_cast<int>(context_.rank); }
  [[nodiscard]] int size() const { return static_cast<int>(context_.size); }
  [[nodiscard]] int world_rank(int rank) const;  ///< throws invalid_argument outside the team
  [[nodiscard]] World& world() const { return world_; }
  /// For kernels of this rank: pass it by value.
  [[nodiscard]] const Context& context() const { return context_; }
  /// For CPU threads of this rank: its barrier state and wait records lie in host memory.
  [[nodiscard]] const Context& host_context() const { return host_context_; }
  /// Whether the team is aborted: by a deadline of its own, or the end of a member. Its members may go on with a new
  /// team; those of the world with `World::survivors`.
  [[nodiscard]] bool failed() const;

  /// Collective. Barrier of the members' CPU threads; orders memory. Throws deadline or aborted, naming the missing
  /// rank.
  void barrier() { static_cast<void>(barrier(Timeout::none())); }
  /// The same up to the call's own limit: then `timeout`, and the same call continues the barrier. Until it has
  /// returned ok, other collective functions throw invalid_argument.
  [[nodiscard]] Status barrier(Timeout timeout);
  /// Bytes that each member of a team other than the world may pass to `allgather`.
  static constexpr std::size_t max_gathered_bytes = 120;
  /// Collective. The bytes of every member, by rank of the team; none from ranks of the world that have failed or left.
  /// Sizes may differ. Throws invalid_argument for too many, deadline or aborted.
  [[nodiscard]] std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine);

  /// Collective. Combines a value of each member in the order of ranks; all get the same bits. The members' CPU threads
  /// do it, through host memory; it orders memory as `barrier`, and takes a little longer.
  /// Throws invalid_argument when members give different types or reductions, or are in different calls, and otherwise
  /// as `barrier`.
  template <detail::Reducible T>
  [[nodiscard]] T allreduce(T value, Reduction reduction = Reduction::sum);

  /// Collective. `bytes` of zeroed symmetric memory, 256-byte aligned, at the same offset on every member: device
  /// memory on a GPU rank, host memory on a host rank (Heap::symmetric), or host memory on all (Heap::pinned). The
  /// world's comes from the near end of the heap, that of other teams from the far end, where only some ranks have
  /// less. Members that need different sizes ask for the largest: `allreduce(bytes, Reduction::maximum)`. Throws
  /// invalid_argument when they ask for different ones (names them), no_resource when the heap of one is full.
  [[nodiscard]] void* allocate(std::size_t bytes, Heap heap = Heap::symmetric);
  /// Collective. Waits for this rank's default stream first, whose kernels may use the memory; the work of its other
  /// streams must be over. Throws invalid_argument for a pointer that `allocate` did not return, or returned and was
  /// freed, and when members free different memory.
  void free(void* pointer);
  /// The address on `peer` of what `local` is here; throws invalid_argument outside symmetric memory.
  template <class T>
  [[nodiscard]] T* at(T* local, int peer) const {
    return static_cast<T*>(translate(const_cast<std::remove_const_t<T>*>(local), peer));
  }

  /// Ends every wait of the team: as a deadline of this rank would, but for `reason`, which errors name. Any thread.
  void give_up(const std::string& reason);

 private:
  friend class World;
  friend std::unique_ptr<Team> make_team_among(World& world, const std::vector<int>& ranks,
                                               const MemberAllgather& allgather);
  Team(World& world, const Context& context, const Context& host_context)
      : world_(world), context_(context), host_context_(host_context) {}
  [[nodiscard]] void* translate(void* local, int peer) const;
  World& world_;
  Context context_, host_context_;
};

template <detail::Reducible T>
T Team::allreduce(T value, Reduction reduction) {
  detail::Scalar mine{detail::ElementTraits<T>::type, reduction, 0};
  std::memcpy(&mine.bits, &value, sizeof value);
  std::uint64_t all[max_ranks];
  const std::uint32_t members = detail::exchange_scalars(*this, mine, all);
  detail::Partial<T, T> combined;
  for (std::uint32_t member = 0; member < members; ++member) {
    std::memcpy(&value, &all[member], sizeof value);
    member == 0 ? combined.start(value) : combined.combine(reduction, value);
  }
  return combined.finish(reduction, members);
}

/// Collective over `ranks` alone, which exchange data by `allgather`: as `World::make_team`, without any part of the
/// other ranks. Ranks that are members of two teams make them in the same order.
///   ranks      world ranks, ascending, this one among them
///   allgather  called twice, one after the other; its waits have a deadline of their own
/// Throws as `World::make_team`, and what `allgather` throws.
[[nodiscard]] std::unique_ptr<Team> make_team_among(World& world, const std::vector<int>& ranks,
                                                    const MemberAllgather& allgather);

namespace detail {

/// Bytes of `count` elements; where that is more than an address space, as many as no heap has.
[[nodiscard]] constexpr std::size_t array_bytes(std::size_t count, std::size_t element_bytes) {
  return count > SIZE_MAX / element_bytes ? SIZE_MAX : count * element_bytes;
}

/// Frees memory of a team from the destructor of its owner. Memory of a failed world or team is freed with the world,
/// as is memory that an exception on this rank leaves behind, since other ranks do not free it then. Errors are logged.
void free_with_owner(Team& team, void* pointer) noexcept;

}  // namespace detail

/// Symmetric memory for `count` elements of T, made by the members of a team and freed by its destructor, which is
/// collective: see `Team::free`. An exception that leaves its scope on one rank only must end that rank's world; caught
/// before, it leaves the other ranks waiting for this rank.
template <class T>
class SymmetricArray {
 public:
  SymmetricArray(Team& team, std::size_t count, Heap heap = Heap::symmetric)
      : team_(&team), data_(static_cast<T*>(team.allocate(detail::array_bytes(count, sizeof(T)), heap))),
        count_(count) {}
  SymmetricArray(SymmetricArray&& other) noexcept
      : team_(other.team_), data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  SymmetricArray(const SymmetricArray&) = delete;
  SymmetricArray& operator=(const SymmetricArray&) = delete;
  SymmetricArray& operator=(SymmetricArray&&) = delete;
  ~SymmetricArray() { detail::free_with_owner(*team_, data_); }

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }
  [[nodiscard]] T* at(int peer) const { return team_->at(data_, peer); }

 private:
  Team* team_;
  T* data_;
  std::size_t count_;
};

/// Zeroed signals where kernels poll them (symmetric) or CPU threads do (pinned). In a team of both kinds of rank
/// always pinned: every member can set those. What kernels may do to pinned ones is said in device/access.hpp.
class Signals : public SymmetricArray<std::uint64_t> {
 public:
  /// Collective.
  explicit Signals(Team& team, std::size_t count, Heap heap = Heap::symmetric)
      : SymmetricArray(team, count, team.context().mixed ? Heap::pinned : heap) {}
};

}  // namespace beeline
