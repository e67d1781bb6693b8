// SPDX-License-Identifier: Apache-2.0
#include "beeline/core/registry.hpp"

#include <fmt/format.h>

#include <array>

namespace beeline {

namespace {

constexpr std::array controls = {"host", "stream", "proxy", "triggered", "device", "task"};
constexpr std::array paths = {"peer", "bulk", "copy_engine", "staged", "network", "hybrid"};
constexpr std::array protocols = {"signal", "ll", "ll128", "pipelined", "sequential", "verbs", "rma"};

constexpr bool infos_are_in_order() {
  std::uint32_t value = 1;
  for (const AlgorithmInfo& info : algorithm_infos)
    if (static_cast<std::uint32_t>(info.algorithm) != value++) return false;
  return value == algorithms;
}
static_assert(infos_are_in_order() && algorithms <= 32);

/// Algorithms by operation and control, computed at compile time, since every call on a stream reads them.
constexpr auto sets = [] {
  std::array<std::array<Algorithms, controls.size()>, operations> all{};
  for (std::uint32_t operation = 0; operation < operations; ++operation)
    for (std::size_t control = 0; control < controls.size(); ++control)
      all[operation][control] = algorithms_of(static_cast<Operation>(operation), static_cast<Control>(control));
  return all;
}();

}  // namespace

bool has_algorithm(Operation operation, Algorithm algorithm, Control control) noexcept {
  return contains(sets[static_cast<std::size_t>(operation)][static_cast<std::size_t>(control)], algorithm);
}

const char* name(Control control) noexcept { return controls[static_cast<std::size_t>(control)]; }

const char* name(Algorithm algorithm) noexcept {
  if (algorithm == Algorithm::automatic) return "automatic";
  return static_cast<std::uint32_t>(algorithm) < algorithms ? info_of(algorithm).name : "unknown";
}

std::string Method::id() const {
  return fmt::format("{}/{}/{}", name(control), paths[static_cast<std::size_t>(path)],
                     protocols[static_cast<std::size_t>(protocol)]);
}

std::string needs_of(const AlgorithmInfo& info) {
  if (info.path == Path::staged || info.path == Path::hybrid) return "host memory";
  if (info.path == Path::network) return "ranks on several nodes, and UCX";
  if ((info.needs & needs::whole_lines) != 0) return "peer access between GPUs, and a self-test that sees no torn line";
  return fmt::format("peer access between GPUs{}; shared memory between host ranks",
                     (info.needs & needs::bulk_copies) != 0 ? " of compute capability 9.0" : "");
}

}  // namespace beeline
