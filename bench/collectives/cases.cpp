// SPDX-License-Identifier: Apache-2.0
#include "collectives/cases.hpp"

namespace beeline::bench {

std::vector<Case> collective_cases() {
  const auto places = std::make_shared<Workplaces>();
  std::vector<Case> all;
  for (const CollectiveOperation& operation : collective_operations()) {
    for (const MeasuredAlgorithm& measured : operation.algorithms)
      all.push_back(collective_on_stream(operation, measured, places));
    for (const auto& make : {collective_in_graph, collective_in_kernel})
      for (const MeasuredAlgorithm& measured : operation.algorithms)
        if (!measured.streams_only) all.push_back(make(operation, measured, places));
    for (Case& peer : peer_cases(operation, places)) all.push_back(std::move(peer));
  }
  return all;
}

std::string method_of(Control control, Algorithm algorithm) {
  return std::string(name(control)) + "/" + name(algorithm);
}

std::vector<unsigned> block_counts(const Session& session) {
  return session.options().block_counts.empty() ? std::vector<unsigned>{0} : session.options().block_counts;
}

void add_choice(Measurement& measurement, const CollectiveCall& choice) {
  measurement.settings.emplace_back("algorithm", name(choice.algorithm));
  measurement.settings.emplace_back("blocks", std::uint64_t{choice.blocks});
}

}  // namespace beeline::bench
