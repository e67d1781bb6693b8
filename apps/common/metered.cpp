// SPDX-License-Identifier: Apache-2.0
#include "common/metered.hpp"

#include <cmath>

namespace apps {

Metered::Metered(beeline::World& world, double seconds) : leads_(world.rank() == 0) {
  if (!(seconds > 0)) return;
  meter_.emplace(world, std::llround(seconds * 1e9));
  meter_->sample_power();
}

void Metered::add(Json& line, const char* name, double units, const std::function<void()>& work) {
  line[name] = line["energy"] = nullptr;
  if (!meter_) return;
  constexpr int count = 3;
  beeline::bench::MeteredWindows windows;
  windows.idle_before = meter_->idle();
  for (int one = 0; one < count; ++one) windows.loads.push_back(meter_->run(work));
  windows.idle_after = meter_->meter_idle();
  if (!leads_) return;
  if (const auto joules = beeline::bench::LoadMeter::joules(windows.loads)) line[name] = units / joules->value;
  line["energy"] = meter_->record(windows, units);
}

}  // namespace apps
