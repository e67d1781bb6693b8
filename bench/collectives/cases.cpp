// SPDX-License-Identifier: Apache-2.0
#include "collectives/cases.hpp"

#include <iterator>

#include "collectives/in_python.hpp"
#include "device_launched/barrier.hpp"

namespace beeline::bench {

namespace {

void append(std::vector<Case>& all, std::vector<Case> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

std::vector<Case> collective_cases() {
  const auto places = std::make_shared<Workplaces>();
  const auto peers = make_peers();
  std::vector<Case> all;
  for (const CollectiveShape& operation : collective_shapes) {
    const std::vector<MeasuredAlgorithm> algorithms = measured_algorithms(operation.operation);
    for (CallSite control : {CallSite::stream, CallSite::graph})
      for (const MeasuredAlgorithm& measured : algorithms)
        all.push_back(collective_by_host(operation, measured, control, places));
    for (const MeasuredAlgorithm& measured : algorithms)
      if (!measured.symmetric && contains(measured_in_kernels(operation.operation), measured.algorithm))
        all.push_back(collective_in_kernel(operation, measured, places));
    append(all, peer_cases(operation, places, peers));
    append(all, bare_cases(operation, places));
  }
  append(all, barrier_cases());
  append(all, device_launched_barriers());
  append(all, torch_cases());
  return all;
}

}  // namespace beeline::bench
