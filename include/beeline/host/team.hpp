// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Teams: ordered sets of ranks that communicate. The first team is the world, which has all ranks.

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
#include "beeline/host/impl/team_life.hpp"

namespace beeline {

class Team;
class World;

namespace detail {

/// A member's value in a reduction of single values.
struct Scalar {
  ElementType type;
  Reduction reduction;
  std::uint64_t bits;
};
/// Collective. Sets `all` [max_ranks] to the bits of each member's value, in the order of ranks. Returns the number of
/// members.
std::uint32_t exchange_scalars(Team& team, const Scalar& mine, std::uint64_t* all);

}  // namespace detail

/// The heap of an allocation: `symmetric` is in the memory of the rank's device, `pinned` is in host memory.
enum class Heap { symmetric, pinned };

/// An all-gather among the future members of a team: returns the bytes of all members, in the order of their ranks in
/// the team.
using MemberAllgather = std::function<std::vector<std::vector<std::byte>>(std::span<const std::byte>)>;

/// This rank's membership of a team: of the world, or of a subset of its ranks (`World::make_team`, `make_team_among`).
/// Each team has its own barrier and its own abort. `launch(team, ...)` passes the team's context to kernels: peers in
/// it are ranks of the team.
///
/// All members of a team call its functions marked *collective*, in the same order. The same holds for constructors
/// that take a team (`SymmetricArray`, `PacketRings`, `Collectives`, `Messages`). With a `World`, all ranks call them;
/// with a `Team`, only its members.
class Team {
 public:
  virtual ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] int rank() const { return static_cast<int>(context_.rank); }
  [[nodiscard]] int size() const { return static_cast<int>(context_.size); }
  [[nodiscard]] int world_rank(int rank) const;  ///< throws invalid_argument outside the team
  [[nodiscard]] World& world() const { return world_; }
  /// The context for kernels of this rank; pass it by value.
  [[nodiscard]] const Context& context() const { return context_; }
  /// The context for CPU threads of this rank; its barrier state and wait records are in host memory.
  [[nodiscard]] const Context& host_context() const { return host_context_; }
  /// Whether the team is aborted: by a deadline, a refusal, calls that differ, or a member's end. Members may continue
  /// with a new team; ranks of an aborted world continue with `World::survivors`.
  [[nodiscard]] bool failed() const;

  /// Collective. Barrier of the members' CPU threads; orders memory. Throws deadline or aborted, naming the missing
  /// rank.
  void barrier() { static_cast<void>(barrier(Timeout::none())); }
  /// As above, with a limit of the call: at the limit it returns `timeout`, and the same call continues the barrier.
  /// Until the barrier has returned ok, other collective functions throw invalid_argument.
  [[nodiscard]] Status barrier(Timeout timeout);
  /// Bytes that each member of a team other than the world may pass to `allgather`.
  static constexpr std::size_t max_gathered_bytes = 120;
  /// Collective. Returns the bytes of every member, in the order of ranks; empty for ranks of the world that have
  /// failed or left. Sizes may differ. Blocks. Throws invalid_argument for too many bytes, deadline or aborted.
  [[nodiscard]] std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine);

  /// Collective. Combines one value of each member, in the order of ranks; all members get the same bits. CPU threads
  /// do this through host memory. It orders memory like `barrier`, and takes a little longer.
  /// Throws invalid_argument if members pass different types or reductions, or are in different calls; otherwise the
  /// same as `barrier`.
  template <detail::Reducible T>
  [[nodiscard]] T allreduce(T value, Reduction reduction = Reduction::sum);

  /// Collective. `bytes` of zeroed symmetric memory, 256-byte aligned, at the same offset on every member: device
  /// memory on a GPU rank, host memory on a host rank (Heap::symmetric), or host memory on all (Heap::pinned). Memory
  /// of the world comes from the low end of the heap, memory of other teams from the high end, where free space may
  /// differ between ranks. Members that need different sizes allocate the largest: `allreduce(bytes,
  /// Reduction::maximum)`. Throws invalid_argument if members pass different sizes (the error names them), no_resource
  /// if the heap of a member is full.
  [[nodiscard]] void* allocate(std::size_t bytes, Heap heap = Heap::symmetric);
  /// Collective. First waits for this rank's default stream, whose kernels may use the memory; work on its other
  /// streams must have ended. Throws invalid_argument for a pointer that `allocate` did not return or that is already
  /// freed, or if members free different memory.
  void free(void* pointer);
  /// The address on `peer` that corresponds to `local` on this rank, for `World::copy`, and for loads and stores where
  /// they reach the peer's memory. Throws invalid_argument outside symmetric memory.
  template <class T>
  [[nodiscard]] T* at(T* local, int peer) const {
    return static_cast<T*>(translate(const_cast<std::remove_const_t<T>*>(local), peer));
  }

  /// The team's life, for objects of the team that may outlive the team.
  [[nodiscard]] const std::shared_ptr<detail::TeamLife>& life() const { return life_; }

  /// Aborts the team: ends every wait, as a deadline of this rank would, with `reason` in the errors. Any thread may
  /// call it.
  void give_up(const std::string& reason);

 private:
  friend class World;
  friend std::unique_ptr<Team> make_team_among(World& world, const std::vector<int>& ranks,
                                               const MemberAllgather& allgather, std::int64_t deadline_ns);
  Team(World& world, const Context& context, const Context& host_context);
  [[nodiscard]] void* translate(void* local, int peer) const;
  World& world_;
  Context context_, host_context_;
  const std::shared_ptr<detail::TeamLife> life_;
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

/// Makes a team without the participation of other ranks: collective over `ranks` only, which exchange data by
/// `allgather`. Otherwise the same as `World::make_team`. Ranks that are members of two teams make these in the same
/// order.
///   ranks      world ranks, ascending, this one among them
///   allgather  called twice, one after the other; its waits have a deadline of their own
///   deadline_ns  limit of every wait of the team; 0: the world's
/// Throws the errors of `World::make_team` and of `allgather`; invalid_argument for a deadline longer than the deadline
/// of the host's waits for streams (`Config::stream_deadline_ns`).
[[nodiscard]] std::unique_ptr<Team> make_team_among(World& world, const std::vector<int>& ranks,
                                                    const MemberAllgather& allgather, std::int64_t deadline_ns = 0);

namespace detail {

/// Bytes of `count` elements; if the product overflows, a size that no heap has.
[[nodiscard]] constexpr std::size_t array_bytes(std::size_t count, std::size_t element_bytes) {
  return count > SIZE_MAX / element_bytes ? SIZE_MAX : count * element_bytes;
}

/// Frees memory of a team from the destructor of its owner. Memory of a failed world or team is freed with the world.
/// Memory whose owner is destroyed by an exception on this rank is freed with the world, too, since the other ranks do
/// not free it at that time. An owner that outlives the team, or that a fork has copied, has nothing to free. Errors
/// are logged.
///   life  the team's life; if it has ended, `team` may no longer exist
void free_with_owner(const TeamLife& life, Team& team, void* pointer) noexcept;

}  // namespace detail

/// Symmetric memory for `count` elements of T, made by the members of a team. The destructor frees it, and is
/// collective: see `Team::free`. If an exception destroys the array on one rank only, let the exception leave the scope
/// of the world, too; if the program catches it earlier, the other ranks wait for this rank.
template <class T>
class SymmetricArray {
 public:
  SymmetricArray(Team& team, std::size_t count, Heap heap = Heap::symmetric)
      : team_(&team), life_(team.life()),
        data_(static_cast<T*>(team.allocate(detail::array_bytes(count, sizeof(T)), heap))), count_(count) {}
  SymmetricArray(SymmetricArray&& other) noexcept
      : team_(other.team_), life_(other.life_), data_(std::exchange(other.data_, nullptr)),
        count_(std::exchange(other.count_, 0)) {}
  SymmetricArray(const SymmetricArray&) = delete;
  SymmetricArray& operator=(const SymmetricArray&) = delete;
  SymmetricArray& operator=(SymmetricArray&&) = delete;
  ~SymmetricArray() { detail::free_with_owner(*life_, *team_, data_); }

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }
  [[nodiscard]] T* at(int peer) const { return team_->at(data_, peer); }

 private:
  Team* team_;
  std::shared_ptr<const detail::TeamLife> life_;
  T* data_;
  std::size_t count_;
};

/// Zeroed signals, in memory that kernels poll (symmetric) or that CPU threads poll (pinned). In a team with GPU ranks
/// and host ranks they are always pinned, so that every member can set them. device/access.hpp says what kernels may do
/// with pinned signals.
///
/// In a loop let the values grow: 1 in the first round, 2 in the second, and so on, and wait for `greater_equal` the
/// round's number. If each round sets the same value, and no answer of the receiver comes in between, a wait finds the
/// value of the round before, and reads old data. `Config::check` (BEELINE_CHECK, `beeline run --check`) warns of such
/// signals.
class Signals : public SymmetricArray<std::uint64_t> {
 public:
  /// Collective.
  explicit Signals(Team& team, std::size_t count, Heap heap = Heap::symmetric)
      : SymmetricArray(team, count, team.context().mixed ? Heap::pinned : heap) {}
};

}  // namespace beeline
