// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The joules between two marks of a counter.

#include <cstdint>

#include "beeline/energy/meter.hpp"
#include "energy/counter.hpp"

namespace beeline::energy {

/// A window of one counter.
struct Span {
  Counter::Mark begin;                    ///< the tick before the window
  Counter::Mark low;                      ///< when it ended
  Counter::Mark high;                     ///< the tick after that
  std::int64_t begin_ns = 0, end_ns = 0;  ///< the window itself
};

[[nodiscard]] ComponentEnergy energy_of(const Counter& counter, const Span& span, ShortWindow short_window);

}  // namespace beeline::energy
