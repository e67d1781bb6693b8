// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The ways of doing a collective, Beeline's and the peers': a case each.

#include <memory>
#include <vector>

#include "collectives/operation.hpp"
#include "collectives/workplace.hpp"

namespace beeline::bench {

/// On a stream or in a graph.
[[nodiscard]] Case collective_by_host(const CollectiveShape& operation, const MeasuredAlgorithm& measured,
                                      CallSite control, std::shared_ptr<Workplaces> places);
[[nodiscard]] Case collective_in_kernel(const CollectiveShape& operation, const MeasuredAlgorithm& measured,
                                        std::shared_ptr<Workplaces> places);

/// What the peers' cases of all operations share: they start once.
struct Peers;
[[nodiscard]] std::shared_ptr<Peers> make_peers();

/// What the machine has of other libraries that do the same.
[[nodiscard]] std::vector<Case> peer_cases(const CollectiveShape& operation, std::shared_ptr<Workplaces> places,
                                           const std::shared_ptr<Peers>& peers);

/// What the hardware does at the least or at the most: empty kernels in a graph; of all-gather and all-to-all the bare
/// copies, with nothing that waits for another rank.
[[nodiscard]] std::vector<Case> bare_cases(const CollectiveShape& operation, std::shared_ptr<Workplaces> places);

/// Of all-gather and all-to-all, the bare copies of whole pieces, which of long ones are the quickest.
[[nodiscard]] Case bare_copies(const CollectiveShape& operation, std::shared_ptr<Workplaces> places);

/// The barrier by every algorithm: inside a kernel, as a kernel on a stream, in graphs; and the peers'.
[[nodiscard]] std::vector<Case> barrier_cases();

/// All of every operation.
[[nodiscard]] std::vector<Case> collective_cases();

}  // namespace beeline::bench
