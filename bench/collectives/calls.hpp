// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Calls that go to a stream, Beeline's and the peers', by the host's clock: one after the other, and as graphs.

#include <cstdint>
#include <functional>

#include "collectives/workplace.hpp"

namespace beeline::bench {

/// Puts one call on a stream.
using StreamStart = std::function<void(Stream&)>;

/// What is timed.
struct Calls {
  std::function<void()> start;
  std::function<void()> finish;  ///< waits for what was started
  unsigned each = 1;             ///< calls that a `start` makes
};

[[nodiscard]] Calls calls_on_stream(World& world, const StreamStart& start);

/// Calls of one CUDA graph: enough to hide what starting it costs, for long vectors one.
[[nodiscard]] constexpr unsigned graph_calls(std::uint64_t bytes) {
  constexpr std::uint64_t mib = 1 << 20;
  return bytes <= mib ? 20 : bytes <= 16 * mib ? 5 : 1;
}

/// A graph of `each` calls, launched again and again. Throws unavailable, with the reason, where the call cannot be
/// captured.
[[nodiscard]] Calls calls_in_graph(World& world, const StreamStart& start, unsigned each);

/// On a stream or in a graph, as `control` says.
[[nodiscard]] Calls calls_by(CallSite control, World& world, const StreamStart& start, std::uint64_t bytes);

/// Lets `measurement` time the calls; what they need lives as long as they do.
void time_by_host(Measurement& measurement, const Bench& bench, const Calls& calls);

/// Lets it verify by one `call` that blocks.
void verify_by(Measurement& measurement, std::shared_ptr<Workplace> place, const VectorPair& vectors,
               std::function<void()> call);

}  // namespace beeline::bench
