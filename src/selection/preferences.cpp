// SPDX-License-Identifier: Apache-2.0
#include "beeline/selection/preferences.hpp"

#include <algorithm>

namespace beeline {

namespace {

using namespace detail::selection;

/// Whether every operation has a row of the table that always fits, and every row's operations have its algorithm.
template <std::size_t count>
constexpr bool is_complete(const Preference (&table)[count], Control control, Operations operations) {
  for (const Preference& row : table) {
    constexpr std::size_t any = ~std::size_t{0};
    if (row.members == Members::any && row.up_to.bytes == any && row.up_to.traffic == any && row.up_to.in_all == any &&
        row.vectors == Vectors::any)
      operations &= ~row.operations;
    bool is_had = false;
    for (const MethodRow& method : method_rows)
      is_had = is_had || (contains(row.operations, method.operation) && method.algorithm == row.algorithm &&
                          method.is_by(control));
    if (!is_had) return false;
  }
  return operations == 0;
}
constexpr Operations with_choice = moves | varied | reductions_to_some | allreduce_only;
static_assert(is_complete(on_streams, Control::stream, with_choice));
static_assert(is_complete(in_kernels, Control::device, with_choice));

bool is_possible(Operation operation, Algorithm algorithm, const Situation& here) {
  const std::uint32_t needs = info_of(algorithm).needs;
  return has_algorithm(operation, algorithm, Control::stream) &&
         ((needs & needs::whole_lines) == 0 || here.has_lines) && ((needs & needs::engines) == 0 || here.has_engines);
}

}  // namespace

Algorithm choose_on_stream(Operation operation, const Situation& here, std::size_t bytes, std::size_t count) {
  if (operation == Operation::allreduce && count < here.members && here.nodes == 1) return Algorithm::ll_one_shot;
  const auto* const row = std::find_if(std::begin(on_streams), std::end(on_streams), [&](const auto& one) {
    return contains(one.operations, operation) && fits(one, here, bytes) && is_possible(operation, one.algorithm, here);
  });
  return row->algorithm;  // the last row of each operation always fits
}

unsigned choose_blocks(Operation operation, Algorithm algorithm, const Situation& here, std::size_t bytes,
                       unsigned sessions) {
  if (here.on_hosts) return 1;
  const auto* const rule = std::find_if(std::begin(block_rules), std::end(block_rules), [&](const auto& one) {
    const bool holds = one.pushed_by == 0 || (here.members <= one.pushed_by && pushes(here.members, bytes));
    return holds && contains(one.operations, operation) && contains(one.algorithms, algorithm);
  });
  if (rule->block_bytes == 0) return std::min(rule->most, sessions);
  const bool is_moved = contains(moves, operation);
  const std::size_t busy = is_moved ? bytes * std::max(1u, here.members - 1) : bytes;
  const std::size_t most = here.members > 2 ? rule->most : rule->most_of_two;
  const std::size_t wanted = std::min((busy + rule->block_bytes - 1) / rule->block_bytes, most);
  // Blocks of more than half of a multiprocessor's threads need a multiprocessor each: 96 such blocks would occupy more
  // of them than 128 smaller ones, of which two share one.
  const std::size_t blocks = wanted > most_full_blocks ? most : wanted;
  return static_cast<unsigned>(std::clamp<std::size_t>(blocks, 1, sessions));
}

}  // namespace beeline
