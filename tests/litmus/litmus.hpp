// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The litmus tests: each runs a small program on many independent places and counts the outcomes that the memory model
/// (docs/memory-model.md) forbids. All functions are collective and return this rank's counts.

#include <cstdint>

#include "beeline/host/world.hpp"
#include "tests/conformance/group_kind.hpp"

namespace beeline_test {

/// What the instances of one test showed to one rank.
struct Outcomes {
  std::uint64_t instances, forbidden;  ///< looks at a place, and those that showed the forbidden outcome
  std::uint64_t overlapped;            ///< instances that show the ranks at the same place at the same time
};

/// How a message's flag follows its data.
enum class Passing : std::uint32_t {
  put_signal,  ///< put_signal; wait
  fence,       ///< put, fence, put_value; relaxed wait, fence
  quiet,       ///< put, quiet, put_value; relaxed wait, fence
  relaxed,     ///< put, relaxed signal; relaxed wait: stale data is allowed
  withheld     ///< the signal alone: stale data for certain
};

/// Message passing between two ranks, both ways at once. Forbidden: the flag is seen, the data is not.
[[nodiscard]] Outcomes pass_messages(beeline::World& world, Passing passing, GroupKind kind, std::uint64_t instances);

/// The same between a kernel of rank 0 and a CPU thread of rank 1, through host memory.
[[nodiscard]] Outcomes pass_messages_to_a_cpu(beeline::World& world, Passing passing, std::uint64_t instances);

/// Rank r puts data at r + 2 and signals r + 1, which signals r + 2. Forbidden: the second signal is seen, the data is
/// not. `withheld`: nothing is put.
[[nodiscard]] Outcomes pass_in_a_chain(beeline::World& world, bool withheld, std::uint64_t instances);

/// Each of two ranks stores to one word and loads the other.
enum class Crossing : std::uint32_t {
  store_then_load,  ///< store buffering; forbidden: both loads see the old value
  load_then_store   ///< load buffering; forbidden: both loads see the new value
};
/// What stands between the two accesses of a rank.
enum class Between : std::uint32_t {
  fence,
  nothing,  ///< the forbidden outcome is allowed
  reversed  ///< the second access first, and a meeting: the forbidden outcome for certain
};
/// Whose memory holds the word that a rank stores to.
enum class Home : std::uint32_t { loader, storer };

/// Counts on rank 0 only.
[[nodiscard]] Outcomes cross(beeline::World& world, Crossing crossing, Between between, Home home,
                             std::uint64_t instances);

/// Packets between two ranks, both ways at once. Forbidden: a word of a received message that is not its own.
/// `withheld`: every message carries the words of none.
[[nodiscard]] Outcomes move_packets(beeline::World& world, bool withheld, std::uint64_t instances);

/// How the ranks meet after all have put data at all others.
enum class Meeting : std::uint32_t {
  memory,     ///< in a barrier that orders memory
  relaxed,    ///< in one that does not: stale data is allowed
  withheld,   ///< nothing is put: stale data for certain
  collective  ///< as members of a collective do: by packets between fences
};

/// Forbidden: after the barrier, data put before it is not seen.
[[nodiscard]] Outcomes put_and_meet(beeline::World& world, Meeting meeting, std::uint64_t instances);

}  // namespace beeline_test
