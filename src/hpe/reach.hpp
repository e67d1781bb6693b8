// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a device reaches.

#include "beeline/hpe/memory.hpp"

namespace beeline::hpe::detail {

/// Whether the device itself copies to and from the owner's memory.
[[nodiscard]] bool is_direct(Device device, const Owner& owner);

}  // namespace beeline::hpe::detail
