// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Calls that go to a stream, Beeline's and the peers': measured one after the other, and as graphs.

#include <functional>
#include <memory>
#include <string>

#include "collectives/workplace.hpp"

namespace beeline::bench {

/// One call of a collective, and the vectors that it works on.
struct StreamCall {
  std::function<void(Stream&)> start;
  VectorPair vectors;
  std::string version = {};  ///< of the peer, where it says one
};

/// Completes a measurement: calls one after the other, by the host's clock.
[[nodiscard]] Measurement measured_on_stream(Measurement measurement, const CollectiveOperation& operation,
                                             std::shared_ptr<Workplace> place, const StreamCall& call);

/// Calls in a CUDA graph.
inline constexpr unsigned graph_calls = 20;

/// Completes a measurement: a graph of `graph_calls` calls, launched again and again; the time is a call's.
/// Throws unavailable, with the reason, where the call cannot be captured.
[[nodiscard]] Measurement measured_in_graph(Measurement measurement, const CollectiveOperation& operation,
                                            std::shared_ptr<Workplace> place, const StreamCall& call);

}  // namespace beeline::bench
