// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The handle of an armed operation.

#include <cstdint>

namespace beeline {

/// Value of `TriggerCondition::then` for an operation that triggers no tag when it is complete.
inline constexpr std::uint32_t no_chain = ~std::uint32_t{0};

/// An operation that `Triggers::arm` has armed, for `Triggers::wait` and `Triggers::cancel`.
struct ArmedOperation {
  std::uint32_t entry = ~std::uint32_t{0};  ///< entry of the table of operations
  std::uint32_t turn = 0;                   ///< number of the operation among those that have used the entry
};

}  // namespace beeline
