// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All-reduces of a group's short vectors, with a time-out after which the same call continues; Beeline's collectives
/// have none. Every member puts its vector into a row of every member's memory (`Group::gathered`). A member that has
/// all rows combines them in the order of ranks, so that all members get the same bits.
///
///     row of a member:  | even rounds: vector, signal | odd rounds: vector, signal |
///
/// A signal is the number of the round and the kind of the member's call, so members find out whether their calls
/// differ.
///
/// A member that has ended round k has seen all vectors of round k, so every member had ended round k - 1: nobody reads
/// the rows of round k - 1 any more when the member overwrites them in round k + 1.

#include <cstddef>
#include <cstdint>
#include <span>

#include "gaspi/call.hpp"
#include "gaspi/group.hpp"

namespace beeline::gaspi {

/// What combines two vectors of an all-reduce.
class Combination {
 public:
  virtual ~Combination() = default;
  /// Writes the combination of `one` and `two` to `result`; the three do not overlap. Throws Failure.
  virtual void combine(std::byte* one, std::byte* two, std::byte* result) const = 0;
};

/// What an all-reduce does, as a number other than 0 of at most `kind_bits` bits: function, number and type of
/// elements.
using ReductionKind = std::uint64_t;
inline constexpr int kind_bits = 24;
///   count  1 to 255
[[nodiscard]] constexpr ReductionKind predefined_kind(std::uint64_t operation, std::uint64_t type,
                                                      std::uint64_t count) {
  return 1 | operation << 1 | type << 3 | count << 6;
}
///   count, element_bytes  together 1 to `most_reduced_bytes` bytes
[[nodiscard]] constexpr ReductionKind user_defined_kind(std::uint64_t count, std::uint64_t element_bytes) {
  return count << 1 | element_bytes << 12;
}

/// The all-reduces of a group; kept in `Group::work`. One thread at a time uses it.
class Reductions final : public GroupWork {
 public:
  explicit Reductions(const Group& group) : group_(group) {}

  [[nodiscard]] bool is_open() const override { return kind_ != 0; }
  /// Begins an all-reduce, or continues the one that timed out.
  ///   kind  GASPI_ERR_ACTIVE_COLL if this rank's all-reduce of another kind has timed out. GASPI_ERROR if another
  ///         member's call is of another kind: then all members' calls fail, and write no result
  [[nodiscard]] Result reduce(const Process& process, ReductionKind kind, std::span<const std::byte> source,
                              std::byte* destination, const Combination& combination, std::uint64_t timeout_ms);

 private:
  [[nodiscard]] std::byte* row_of(int member, std::uint64_t round) const;
  [[nodiscard]] std::byte* row_of(int member) const { return row_of(member, round_); }
  [[nodiscard]] std::uint64_t* signal_of(int member) const;
  /// The value that a member's signal has at least once its vector of this round is there.
  [[nodiscard]] std::uint64_t signal_of_round() const { return round_ << kind_bits; }
  /// Fails if another member's call of this round is of another kind than `mine`.
  void require_kind(ReductionKind mine) const;
  void combine_all(const Process& process, std::size_t bytes, std::byte* destination,
                   const Combination& combination) const;
  [[nodiscard]] int members() const { return static_cast<int>(group_.ranks.size()); }

  const Group& group_;
  std::uint64_t round_ = 0;  ///< number of the last round that was begun
  ReductionKind kind_ = 0;   ///< of the round that is under way; 0: none is
  int sent_ = 0;             ///< members to which this member has sent its vector
  int arrived_ = 0;          ///< members whose vectors are there, in the order of ranks
};

}  // namespace beeline::gaspi
