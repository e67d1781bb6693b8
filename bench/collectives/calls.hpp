// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Calls of Beeline and of the peers that go to a stream, timed by the host's clock: one after the other, and as
/// graphs.

#include <cstdint>
#include <functional>

#include "collectives/workplace.hpp"

namespace beeline::bench {

/// Enqueues one call on a stream.
using StreamStart = std::function<void(Stream&)>;

/// The calls to be timed.
struct Calls {
  std::function<void()> start;
  std::function<void()> finish;  ///< waits for all started calls
  unsigned each = 1;             ///< calls that one `start` makes
};

[[nodiscard]] Calls calls_on_stream(World& world, const StreamStart& start);

/// Number of calls in one CUDA graph: enough that the cost of starting the graph is small; one for long vectors.
[[nodiscard]] constexpr unsigned graph_calls(std::uint64_t bytes) {
  constexpr std::uint64_t mib = 1 << 20;
  return bytes <= mib ? 20 : bytes <= 16 * mib ? 5 : 1;
}

/// A graph of `each` calls, which is launched repeatedly. Throws unavailable, with the reason, if the call cannot be
/// captured.
[[nodiscard]] Calls calls_in_graph(World& world, const StreamStart& start, unsigned each);

/// Calls on a stream or in a graph, depending on `control`.
[[nodiscard]] Calls calls_by(CallSite control, World& world, const StreamStart& start, std::uint64_t bytes);

/// Makes `measurement` time the calls; it keeps the objects that they need.
void time_by_host(Measurement& measurement, const Bench& bench, const Calls& calls);

/// Makes `measurement` verify by one `call` that blocks.
void verify_by(Measurement& measurement, std::shared_ptr<Workplace> place, const VectorPair& vectors,
               std::function<void()> call);

}  // namespace beeline::bench
