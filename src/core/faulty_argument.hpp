// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which argument a refused operation is refused for.

#include "beeline/core/call_fault.hpp"
#include "beeline/core/operation.hpp"

namespace beeline::detail {

/// The argument whose address is at fault, as `destination: `; empty where the fault is of no address.
[[nodiscard]] const char* faulty_argument(Operation operation, CallFault fault);

}  // namespace beeline::detail
