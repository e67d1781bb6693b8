// SPDX-License-Identifier: Apache-2.0
#include "gaspi/forwarded_atomics.hpp"
#include "gaspi/gpu.hpp"
#include "gaspi/passive.hpp"
#include "gaspi/queues.hpp"
#include "gaspi/timed_operations.hpp"

namespace beeline::gaspi {

std::vector<std::unique_ptr<Extension>> make_extensions() {
  std::vector<std::unique_ptr<Extension>> all;
  all.push_back(std::make_unique<Queues>());
  all.push_back(std::make_unique<Passive>());
  all.push_back(std::make_unique<Gpu>());
  all.push_back(std::make_unique<TimedOperations>());
  all.push_back(std::make_unique<ForwardedAtomics>());
  return all;
}

}  // namespace beeline::gaspi
