// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The argument for which an operation is refused.

#include "beeline/core/call_fault.hpp"
#include "beeline/core/operation.hpp"

namespace beeline::detail {

/// The argument with the invalid address, as `destination: `; empty if the fault is not an address.
[[nodiscard]] const char* faulty_argument(Operation operation, CallFault fault);

}  // namespace beeline::detail
