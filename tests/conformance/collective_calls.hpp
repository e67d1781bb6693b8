// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Definitions that the cases of all collectives share.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "beeline/host/collectives.hpp"
#include "tests/support/check.hpp"

namespace beeline_test {

/// Small packet areas and staging, so that vectors of thousands of elements take several rounds.
inline constexpr beeline::CollectiveOptions small_channel{.sessions = 3, .packet_bytes = 512, .staging_bytes = 2048};

/// A call by `algorithm`, in `blocks` blocks; copy engines have none.
[[nodiscard]] inline beeline::CollectiveCall call_by(beeline::Algorithm algorithm, unsigned blocks) {
  return {.algorithm = algorithm, .blocks = algorithm == beeline::Algorithm::copy_engine ? 0 : blocks};
}

/// Where one call's vectors are: offsets in bytes from an aligned address.
struct Placing {
  std::size_t source, destination;
  bool in_place;
};

/// Collective. `automatic`, and every algorithm of the operation that the team's members have.
[[nodiscard]] inline std::vector<beeline::Algorithm> algorithms_here(beeline::Team& team,
                                                                     beeline::Operation operation) {
  std::vector<beeline::Algorithm> all = {beeline::Algorithm::automatic};
  for (const beeline::MethodRow& row : beeline::method_rows)
    if (row.operation == operation && row.is_by(beeline::Control::stream) &&
        beeline::reason_against(team, row.algorithm).empty())
      all.push_back(row.algorithm);
  return all;
}

/// All-reduces that use vectors in place, without staging.
inline constexpr beeline::Algorithm allreduces_in_place[] = {beeline::Algorithm::two_shot,
                                                             beeline::Algorithm::copy_engine};

/// Whether the cases for all-reduces test the algorithm. The cases for every reduction test the other algorithms.
[[nodiscard]] inline bool is_of_allreduce_cases(beeline::Algorithm algorithm) {
  using enum beeline::Algorithm;
  constexpr beeline::Algorithms in_packets = beeline::algorithms_where(
      beeline::algorithms_of(beeline::Operation::allreduce, beeline::Control::stream),
      [](const beeline::AlgorithmInfo& info) { return info.protocol != beeline::Protocol::signal; });
  return beeline::contains(in_packets | beeline::set_of({automatic}), algorithm) ||
         std::ranges::find(allreduces_in_place, algorithm) != std::end(allreduces_in_place);
}

/// Why a case does not run if ranks differ in kind.
inline constexpr const char* ranks_of_both_kinds = "ranks of both kinds: they have the algorithms by packets only";

/// Why a case of an algorithm does not run if ranks are on several nodes.
inline constexpr const char* ranks_on_several_nodes = "ranks on several nodes: they have across_nodes only";

/// Addresses of one call's vectors outside the heap; nullptr: the vector is in the heap.
struct Elsewhere {
  std::byte *source = nullptr, *destination = nullptr;

  [[nodiscard]] std::byte* source_or(std::byte* heap) const { return source != nullptr ? source : heap; }
  [[nodiscard]] std::byte* destination_or(std::byte* heap) const { return destination != nullptr ? destination : heap; }
};

/// Calls `body(elsewhere)` with source, destination or both outside the heap, on all ranks, then on rank 0 alone.
template <class Body>
void for_each_elsewhere(int rank, std::byte* source, std::byte* destination, Body body) {
  for (const bool all : {true, false})
    for (const Elsewhere& elsewhere :
         {Elsewhere{source, nullptr}, Elsewhere{nullptr, destination}, Elsewhere{source, destination}})
      body(all || rank == 0 ? elsewhere : Elsewhere{});
}

[[nodiscard]] inline std::vector<int> everyone(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Throws unless `call` throws an Error whose text has `part`.
template <class Call>
void expect_refused(const char* part, Call call) {
  try {
    call();
  } catch (const beeline::Error& error) {
    if (std::string(error.what()).find(part) != std::string::npos) return;
    throw CheckFailure(join("expected \"", part, "\" in: ", error.what()));
  }
  throw CheckFailure(join("not refused: ", part));
}

}  // namespace beeline_test
