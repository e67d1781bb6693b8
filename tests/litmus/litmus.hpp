// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The litmus tests: each runs a small program on many independent cells and counts the outcomes that the memory model
/// (docs/memory-model.md) forbids. All functions are collective and return this rank's counts.

#include <cstdint>

#include "beeline/host/world.hpp"
#include "tests/conformance/group_kind.hpp"

namespace beeline_test {

/// The outcomes of one test that one rank observed.
struct Outcomes {
  std::uint64_t instances, forbidden;  ///< observations, and those with the forbidden outcome
  std::uint64_t overlapped;            ///< observations while both ranks worked on the cell
};

/// How a message's flag follows its data.
enum class Passing : std::uint32_t {
  put_signal,  ///< put_signal; wait
  fence,       ///< put, fence, put_value; relaxed wait, fence
  quiet,       ///< put, quiet, put_value; relaxed wait, fence
  relaxed,     ///< put, relaxed signal; relaxed wait: stale data is allowed
  withheld     ///< signal without a put: stale data is certain
};

/// Message passing between two ranks, in both directions at once. Forbidden: the flag is seen without the data.
[[nodiscard]] Outcomes pass_messages(beeline::World& world, Passing passing, GroupKind kind, std::uint64_t instances);

/// As above, between a kernel of rank 0 and a CPU thread of rank 1, through host memory.
[[nodiscard]] Outcomes pass_messages_to_a_cpu(beeline::World& world, Passing passing, std::uint64_t instances);

/// Rank r puts data at rank r + 2 and signals rank r + 1, which signals rank r + 2. Forbidden: the second signal is
/// seen without the data. `withheld`: no data is put.
[[nodiscard]] Outcomes pass_in_a_chain(beeline::World& world, bool withheld, std::uint64_t instances);

/// Each of two ranks stores to one word and loads the other.
enum class Crossing : std::uint32_t {
  store_then_load,  ///< store buffering; forbidden: both loads see the old value
  load_then_store   ///< load buffering; forbidden: both loads see the new value
};
/// The operation between the two accesses of a rank.
enum class Between : std::uint32_t {
  fence,
  nothing,  ///< the forbidden outcome is allowed
  reversed  ///< the accesses in reverse order, and a meeting between them: the forbidden outcome is certain
};
/// The rank whose memory holds the word: the one that loads it or the one that stores to it.
enum class Home : std::uint32_t { loader, storer };

/// Counts on rank 0 only.
[[nodiscard]] Outcomes cross(beeline::World& world, Crossing crossing, Between between, Home home,
                             std::uint64_t instances);

/// Packets between two ranks, in both directions at once. Forbidden: a word of a received message belongs to another
/// message. `withheld`: messages carry words that belong to none.
[[nodiscard]] Outcomes move_packets(beeline::World& world, bool withheld, std::uint64_t instances);

/// How the ranks meet after each has put data at all others.
enum class Meeting : std::uint32_t {
  memory,     ///< in a barrier that orders memory
  relaxed,    ///< in a barrier that does not: stale data is allowed
  withheld,   ///< no data is put: stale data is certain
  collective  ///< as members of a collective meet: by packets between fences
};

/// Forbidden: data put before the barrier is not seen after it.
[[nodiscard]] Outcomes put_and_meet(beeline::World& world, Meeting meeting, std::uint64_t instances);

}  // namespace beeline_test
