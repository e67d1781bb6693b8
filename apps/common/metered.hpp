// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Energy of an application's methods in joules, metered on request.

#include <functional>
#include <optional>

#include "common/program.hpp"
#include "environment/load_meter.hpp"

namespace apps {

class Metered {
 public:
  /// Collective. Windows of metering take `seconds` each; 0: nothing is metered.
  Metered(beeline::World& world, double seconds);

  /// Collective. Meters three repetitions of `work`. Adds the result `energy` to `line`, and under `name` the units of
  /// work per joule; both are null if nothing is metered or known.
  ///   units  of work in one call of `work`
  void add(Json& line, const char* name, double units, const std::function<void()>& work);

 private:
  bool leads_;
  std::optional<beeline::bench::LoadMeter> meter_;
};

}  // namespace apps
