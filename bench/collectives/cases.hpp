// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The cases of collectives: one for each method, Beeline's and the peers'.

#include <memory>
#include <vector>

#include "collectives/operation.hpp"
#include "collectives/workplace.hpp"

namespace beeline::bench {

/// Beeline's collective on a stream or in a graph.
[[nodiscard]] Case collective_by_host(const CollectiveShape& operation, const MeasuredAlgorithm& measured,
                                      CallSite control, std::shared_ptr<Workplaces> places);
[[nodiscard]] Case collective_in_kernel(const CollectiveShape& operation, const MeasuredAlgorithm& measured,
                                        std::shared_ptr<Workplaces> places);

/// State that the peers' cases of all operations share, because each peer starts only once.
struct Peers;
[[nodiscard]] std::shared_ptr<Peers> make_peers();

/// The same operation by other libraries, as far as this machine has them.
[[nodiscard]] std::vector<Case> peer_cases(const CollectiveShape& operation, std::shared_ptr<Workplaces> places,
                                           const std::shared_ptr<Peers>& peers);

/// The bounds that the hardware sets: empty kernels in a graph; for all-gather and all-to-all also the bare copies,
/// without waiting for any other rank.
[[nodiscard]] std::vector<Case> bare_cases(const CollectiveShape& operation, std::shared_ptr<Workplaces> places);

/// For all-gather and all-to-all: bare copies of whole pieces. For long pieces they are the fastest bare copies.
[[nodiscard]] Case bare_copies(const CollectiveShape& operation, std::shared_ptr<Workplaces> places);

/// The barrier by every algorithm (inside a kernel, as a kernel on a stream, in graphs) and the peers' barriers.
[[nodiscard]] std::vector<Case> barrier_cases();

/// All cases of every operation.
[[nodiscard]] std::vector<Case> collective_cases();

}  // namespace beeline::bench
