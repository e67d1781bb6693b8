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
  for (const MeasuredOperation& operation : measured_operations()) {
    for (Control control : {Control::stream, Control::graph})
      for (const MeasuredAlgorithm& measured : operation.algorithms)
        if (control == Control::stream || measured.in_graphs)
          all.push_back(collective_by_host(operation, measured, control, places));
    for (const MeasuredAlgorithm& measured : operation.algorithms)
      if (measured.in_kernels) all.push_back(collective_in_kernel(operation, measured, places));
    append(all, peer_cases(operation, places, peers));
    append(all, bare_cases(operation, places));
  }
  append(all, barrier_cases());
  append(all, device_launched_barriers());
  append(all, torch_cases());
  return all;
}

}  // namespace beeline::bench
