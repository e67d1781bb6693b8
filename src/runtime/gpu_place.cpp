// SPDX-License-Identifier: Apache-2.0
#include "beeline/runtime/gpu_place.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "core/text_file.hpp"

namespace beeline {

namespace {

std::vector<int> own_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &mask)) cores.push_back(core);
  return cores;
}

/// Takes the number at the start of `text`; -1 if there is none.
int take_number(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= CPU_SETSIZE) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::vector<int> cores_in(std::string_view list) {
  std::vector<int> cores;
  while (!list.empty() && list.back() == '\n') list.remove_suffix(1);
  while (!list.empty()) {
    const int first = take_number(list);
    int last = first;
    if (list.starts_with('-')) {
      list.remove_prefix(1);
      last = take_number(list);
    }
    if (first < 0 || last < first || (!list.empty() && list.front() != ',')) return {};
    for (int core = first; core <= last; ++core) cores.push_back(core);
    if (!list.empty()) list.remove_prefix(1);
  }
  return cores;
}

NearCores cores_near_gpu(int gpu) {
  const std::string place = pci_address(gpu);
  if (place.empty()) return {{}, "this build has no CUDA"};
  const std::string file = fmt::format("/sys/bus/pci/devices/{}/local_cpulist", place);
  const std::vector<int> near = cores_in(read_text(file)), own = own_cores();
  if (near.empty()) return {{}, file + " does not tell"};
  NearCores found;
  std::set_intersection(near.begin(), near.end(), own.begin(), own.end(), std::back_inserter(found.cores));
  if (found.cores.empty()) found.reason = fmt::format("the cores near GPU {} are not this process's", gpu);
  return found;
}

}  // namespace beeline
