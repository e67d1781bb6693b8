// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Joules of an application's methods, where they are asked for.

#include <functional>
#include <optional>

#include "common/program.hpp"
#include "environment/load_meter.hpp"

namespace apps {

class Metered {
 public:
  /// Collective. Of windows of so many seconds; 0: nothing is metered.
  Metered(beeline::World& world, double seconds);

  /// Collective. Repeats `work` while it is metered, three times, and adds to a result `energy`, and under `name` how
  /// many of its units take one joule; null where nothing is metered, or known.
  ///   units  that `work` does once
  void add(Json& line, const char* name, double units, const std::function<void()>& work);

 private:
  bool leads_;
  std::optional<beeline::bench::LoadMeter> meter_;
};

}  // namespace apps
