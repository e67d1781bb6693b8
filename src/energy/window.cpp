// SPDX-License-Identifier: Apache-2.0
#include "energy/window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace beeline::energy {

namespace {

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

/// Why a span has no energy; empty if it has.
std::string fault_of(const Counter& counter, const Span& span) {
  const std::string& name = counter.component().name;
  if (span.high.faults != span.begin.faults) return counter.last_fault();
  if (span.begin.stands_still || span.high.stands_still) return fmt::format("the counter of {} stands still", name);
  // A powered component draws some energy, so its counter advances within this number of ticks.
  const std::int64_t many_ticks_ns = std::max<std::int64_t>(100 * counter.component().tick_ns, 100'000'000);
  if (span.end_ns - span.begin_ns >= many_ticks_ns && span.high.joules == span.begin.joules)
    return fmt::format("the counter of {} stands still: no change in {:.1f} s", name,
                       seconds(span.end_ns - span.begin_ns));
  return {};
}

/// Joules of the window itself. The last tick's joules are divided in proportion to time, so the error is at most the
/// larger part. Joules counted before the window are an error, too. Returns by how much the error may be larger if the
/// ends of such a window fall differently between ticks.
double estimate(const Counter& counter, const Span& span, ComponentEnergy& result) {
  const std::int64_t last_tick_ns = span.high.time_ns - counter.component().tick_ns;
  const double share =
      counter.has_long_ticks()
          ? std::clamp(seconds(span.end_ns - last_tick_ns) / seconds(counter.component().tick_ns), 0.0, 1.0)
          : 0;
  const double step = span.high.joules - span.low.joules;
  result.joules = span.low.joules - span.begin.joules + share * step;
  result.seconds = seconds(span.end_ns - span.begin.time_ns);
  result.watts = *result.joules / result.seconds;
  const double uncertain_s =
      seconds(span.begin.uncertain_ns + span.high.uncertain_ns + span.begin_ns - span.begin.time_ns);
  result.error = *result.joules > 0 ? std::max(share, 1 - share) * step / *result.joules + uncertain_s / result.seconds
                                    : uncertain_s / std::max(result.seconds, 1e-9);
  return *result.joules > 0 ? std::min(share, 1 - share) * step / *result.joules : 0;
}

/// Joules from tick to tick. Both ticks are observed late, by up to the time between two readings, so the longer of the
/// two delays bounds the error.
void widen(const Span& span, ComponentEnergy& result) {
  const double window_s = seconds(span.end_ns - span.begin_ns);
  result.joules = span.high.joules - span.begin.joules;
  result.seconds = seconds(span.high.time_ns - span.begin.time_ns);
  result.watts = *result.joules / result.seconds;
  result.error = seconds(std::max(span.begin.uncertain_ns, span.high.uncertain_ns)) / result.seconds;
  result.notice =
      fmt::format("widened by {:.3f} s to the counter's ticks, from {:.3f} s", result.seconds - window_s, window_s);
}

}  // namespace

ComponentEnergy energy_of(const Counter& counter, const Span& span, ShortWindow short_window) {
  ComponentEnergy result;
  result.component = counter.component();
  result.seconds = seconds(span.end_ns - span.begin_ns);
  result.reason = fault_of(counter, span);
  if (!result.reason.empty()) return result;
  const double more_error = estimate(counter, span, result);
  if (*result.error <= largest_error) return result;
  const double enough_s = std::ceil(result.seconds * (*result.error + more_error) / largest_error * 10) / 10;
  if (short_window == ShortWindow::widen && counter.has_long_ticks()) widen(span, result);
  if (*result.error <= largest_error) return result;
  result.joules.reset();
  result.watts.reset();
  result.reason = fmt::format("a window of {:.3f} s has an error of {:.1f} %, over {:.0f} %: {:.1f} s would do",
                              seconds(span.end_ns - span.begin_ns), 100 * *result.error, 100 * largest_error, enough_s);
  return result;
}

}  // namespace beeline::energy
