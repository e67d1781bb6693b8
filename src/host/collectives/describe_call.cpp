// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/describe_call.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "beeline/core/registry.hpp"

namespace beeline {

namespace {

/// The call's arguments: `(sum, float32, 1024 elements)`; of a barrier none.
std::string describe_arguments(const CallDescription& call) {
  if (call.operation == Operation::barrier) return {};
  const CollectiveShape* const shape = find_shape(call.operation);
  std::vector<std::string> parts;
  if (shape != nullptr && shape->reduces) parts.emplace_back(name(call.reduction));
  parts.push_back(call.element.untyped_bytes == 0 ? name(call.element.type)
                                                  : fmt::format("elements of {} bytes", call.element.untyped_bytes));
  if (shape == nullptr || !shape->varies)
    parts.push_back(fmt::format("{} element{}", call.count, call.count == 1 ? "" : "s"));
  if (shape != nullptr && shape->has_root()) parts.push_back(fmt::format("root {}", call.root));
  return fmt::format("({})", fmt::join(parts, ", "));
}

}  // namespace

std::string describe_call(const CallDescription& call, bool in_blocks) {
  std::string text = name(call.operation) + describe_arguments(call);
  if (call.algorithm != Algorithm::automatic) text += fmt::format(" by {}", name(call.algorithm));
  if (in_blocks && call.operation != Operation::barrier)
    text += fmt::format(" in {} block{}", call.slices, call.slices == 1 ? "" : "s");
  return text;
}

}  // namespace beeline
