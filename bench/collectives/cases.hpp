// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The ways of doing a collective, Beeline's and the peers': a case each.

#include <memory>
#include <string>
#include <vector>

#include "collectives/operation.hpp"
#include "collectives/workplace.hpp"

namespace beeline::bench {

[[nodiscard]] Case collective_on_stream(const CollectiveOperation& operation, const MeasuredAlgorithm& measured,
                                        std::shared_ptr<Workplaces> places);

[[nodiscard]] Case collective_in_graph(const CollectiveOperation& operation, const MeasuredAlgorithm& measured,
                                       std::shared_ptr<Workplaces> places);
[[nodiscard]] Case collective_in_kernel(const CollectiveOperation& operation, const MeasuredAlgorithm& measured,
                                        std::shared_ptr<Workplaces> places);

/// What the machine has of other libraries that do the same.
[[nodiscard]] std::vector<Case> peer_cases(const CollectiveOperation& operation, std::shared_ptr<Workplaces> places);

/// All of every operation.
[[nodiscard]] std::vector<Case> collective_cases();

/// As records name it: stream/two_shot, ...
[[nodiscard]] std::string method_of(Control control, Algorithm algorithm);

/// Blocks of grids to measure: what the options ask for, or 0, which is Beeline's choice.
[[nodiscard]] std::vector<unsigned> block_counts(const Session& session);

/// Notes what a call takes.
void add_choice(Measurement& measurement, const CollectiveCall& choice);

}  // namespace beeline::bench
