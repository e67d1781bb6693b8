// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "beeline/core/error.hpp"
#include "collectives/cases.hpp"

namespace beeline::bench {

namespace {

std::vector<Case> with(std::vector<Case> cases, const std::vector<Case>& more) {
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

std::vector<Case> all_cases(Command command) {
  switch (command) {
    case Command::latency:
      return with({packet_latency(), packets128_latency(), put_signal_latency(), nvshmem_put_signal(),
                   stream_copy_latency(), host_copy_latency(), staged_latency(false), staged_latency(true),
                   flag_latency(), nvshmem_signal(), barrier_latency(), nvshmem_barrier(), send_receive_in_kernel()},
                  send_receive_latency());
    case Command::bandwidth:
      return with({packet_bandwidth(), packets128_bandwidth(), put_bandwidth(), bulk_bandwidth(), nvshmem_put(),
                   get_bandwidth(), stream_copy_bandwidth(), host_copy_bandwidth(), staged_bandwidth(false),
                   staged_bandwidth(true)},
                  send_receive_bandwidth());
    case Command::rate:
      return {packet_rate(),          put_signal_rate(), fetch_add_latency(),     nvshmem_fetch_add(),
              compare_swap_latency(), random_update(),   nvshmem_random_update(), random_store()};
    case Command::address_space:
      return {write_latency(), read_latency(),    store_by_threads(), load_by_threads(),
              bulk_copy(),     store_by_stride(), load_by_stride()};
    case Command::collectives:
      return collective_cases();
  }
  return {};
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What the cases have as `name`, each once.
std::vector<std::string> names_of(const std::vector<Case>& cases, std::string Case::*name) {
  std::vector<std::string> known;
  for (const Case& one : cases)
    if (!contains(known, one.*name)) known.push_back(one.*name);
  return known;
}

/// Keeps the cases whose `name` is asked for; everything when nothing is.
void keep(std::vector<Case>& cases, std::string Case::*name, const std::vector<std::string>& wanted, const char* what) {
  const std::vector<std::string> known = names_of(cases, name);
  for (const std::string& each : wanted)
    require(contains(known, each), Status::invalid_argument,
            fmt::format("unknown {} \"{}\"; valid here: {}", what, each, fmt::join(known, ", ")));
  if (!wanted.empty()) std::erase_if(cases, [&](const Case& one) { return !contains(wanted, one.*name); });
}

}  // namespace

std::vector<std::string> methods_of(Command command) { return names_of(all_cases(command), &Case::method); }

std::vector<std::string> operations_of(Command command) { return names_of(all_cases(command), &Case::operation); }

std::vector<Case> cases_of(const Options& options) {
  std::vector<Case> cases = all_cases(options.command);
  keep(cases, &Case::operation, options.operations, "operation");
  keep(cases, &Case::method, options.methods, "method");
  return cases;
}

}  // namespace beeline::bench
