// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "beeline/core/error.hpp"
#include "beeline/energy/source.hpp"

namespace beeline::energy {

namespace {

class SyntheticSource : public Source {
 public:
  SyntheticSource(Component component, std::function<Reading(std::int64_t)> reading)
      : Source(std::move(component)), reading_(std::move(reading)) {}
  Reading read(std::int64_t now_ns) override { return reading_(now_ns); }

 private:
  std::function<Reading(std::int64_t)> reading_;
};

}  // namespace

std::unique_ptr<Source> synthetic_source(Component component, std::function<Reading(std::int64_t)> reading) {
  return std::make_unique<SyntheticSource>(std::move(component), std::move(reading));
}

std::unique_ptr<Source> unreadable_source(Component component, std::string reason) {
  return synthetic_source(std::move(component), [reason = std::move(reason)](std::int64_t) {
    return Reading{.joules = {}, .watts = {}, .reason = reason};
  });
}

std::unique_ptr<Source> replay_source(Component component, std::vector<std::pair<std::int64_t, Reading>> readings) {
  require(!readings.empty(), Status::invalid_argument, "replay: " + component.name + " has no readings");
  const auto is_earlier = [](const auto& a, const auto& b) { return a.first < b.first; };
  require(std::is_sorted(readings.begin(), readings.end(), is_earlier), Status::invalid_argument,
          "replay: the times of " + component.name + " do not ascend");
  return synthetic_source(std::move(component), [readings = std::move(readings)](std::int64_t now_ns) {
    const auto later = std::upper_bound(readings.begin(), readings.end(), now_ns,
                                        [](std::int64_t time, const auto& reading) { return time < reading.first; });
    return later == readings.begin() ? readings.front().second : std::prev(later)->second;
  });
}

}  // namespace beeline::energy
