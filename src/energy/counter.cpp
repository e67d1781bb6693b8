// SPDX-License-Identifier: Apache-2.0
#include "energy/counter.hpp"

#include <fmt/format.h>

namespace beeline::energy {

void Counter::read(const Clock& clock) {
  const std::int64_t now_ns = clock.now_ns();
  Reading reading = source_->read(now_ns);
  watts_ = reading.watts;
  fault_.clear();
  if (!reading.joules)
    fail(std::move(reading.reason));
  else
    advance(*reading.joules, now_ns, clock.now_ns());
  raw_ = reading.joules;
  read_ns_ = now_ns;
}

void Counter::fail(std::string fault) {
  fault_ = last_fault_ = std::move(fault);
  ++faults_;
  slope_.reset();
}

void Counter::advance(double raw, std::int64_t now_ns, std::int64_t end_ns) {
  if (!raw_) {  // the first reading, or the first after a gap, which already counts as a fault
    ticked_ns_ = now_ns;
    return;
  }
  const std::string& name = component().name;
  const auto range = component().range_joules;
  const double gap_s = static_cast<double>(end_ns - read_ns_) / 1e9;
  // A reading may hold the energy of up to two ticks more than the time since the last reading.
  const double most = component().most_watts * (gap_s + 2 * static_cast<double>(component().tick_ns) / 1e9 + 1e-3);
  if (range && component().most_watts * gap_s > *range)
    return fail(fmt::format("{} may have wrapped more than once in {:.0f} s without a reading: sample continuously",
                            name, gap_s));
  double step = raw - *raw_;
  if (step < 0 && range && step + *range <= most) step += *range;
  if (step < 0) return fail(fmt::format("the counter of {} went back from {:.3f} to {:.3f} J", name, *raw_, raw));
  if (step > most)
    return fail(fmt::format("the counter of {} jumped by {:.3f} J in {:.3f} s, more than {:.0f} W", name, step, gap_s,
                            component().most_watts));
  if (step == 0) return;
  if (now_ns > ticked_ns_) slope_ = step * 1e9 / static_cast<double>(now_ns - ticked_ns_);
  joules_ += step;
  uncertain_ns_ = end_ns - read_ns_;
  ticked_ns_ = now_ns;
  ++ticks_;
}

Counter::Mark Counter::mark() const {
  return {.joules = joules_,
          .time_ns = has_long_ticks() ? ticked_ns_ : read_ns_,
          .uncertain_ns = has_long_ticks() ? uncertain_ns_ : component().tick_ns,
          .faults = faults_};
}

Sample Counter::sample(std::size_t index, std::int64_t since_ns) const {
  Sample sample{.component = index, .time_ns = read_ns_ - since_ns, .joules = {}, .watts = {}, .reason = fault_};
  if (is_good()) {
    sample.joules = joules_;
    sample.watts = watts_ ? watts_ : slope_;
  }
  return sample;
}

}  // namespace beeline::energy
