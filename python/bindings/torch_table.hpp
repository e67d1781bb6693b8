// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The table of C functions that torch's own C++ code calls (beeline/torch_table.hpp).

#include <nanobind/nanobind.h>

#include <memory>

#include "group_calls.hpp"

namespace beeline::python {

[[nodiscard]] nanobind::object table_capsule();
/// A capsule of a group's calls, which keeps them alive.
[[nodiscard]] nanobind::object calls_capsule(const std::shared_ptr<GroupCalls>& calls);

}  // namespace beeline::python
