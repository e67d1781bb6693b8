// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Energy between two marks of a counter.

#include <cstdint>

#include "beeline/energy/meter.hpp"
#include "energy/counter.hpp"

namespace beeline::energy {

/// A window of one counter.
struct Span {
  Counter::Mark begin;                    ///< the tick before the window
  Counter::Mark low;                      ///< the mark at the end of the window
  Counter::Mark high;                     ///< the tick after the window
  std::int64_t begin_ns = 0, end_ns = 0;  ///< the window itself
};

[[nodiscard]] ComponentEnergy energy_of(const Counter& counter, const Span& span, ShortWindow short_window);

}  // namespace beeline::energy
