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
  meter_->cool_down();
  const beeline::bench::MeteredLoad load = meter_->run(work);
  if (!leads_) return;
  if (const auto joules = beeline::bench::LoadMeter::joules(load)) line[name] = units / *joules;
  line["energy"] = meter_->record({load}, units);
}

}  // namespace apps
