// SPDX-License-Identifier: Apache-2.0
/// @file
/// Collectives on a stream: calls one after the other, by the host's clock.

#include "collectives/cases.hpp"
#include "collectives/workplace.hpp"

namespace beeline::bench {

Case collective_on_stream(const CollectiveOperation& operation, const MeasuredAlgorithm& measured,
                          std::shared_ptr<Workplaces> places) {
  const auto prepare = [&operation, measured, places](Session& session, std::uint64_t bytes) {
    std::vector<Measurement> all;
    if (bytes > measured.most_bytes) return all;
    const auto place = places->get(session, bytes);
    for (unsigned blocks : block_counts(session)) {
      const CollectiveCall call{.algorithm = measured.algorithm, .blocks = blocks};
      const auto start = [=, &operation] { operation.start(place->collectives(), place->vectors(), call); };
      const auto finish = [place] { place->world().synchronize(); };
      all.push_back(
          collective_measurement(operation, method_of(Control::stream, measured.algorithm), Control::stream, *place));
      add_choice(all.back(), operation.choice(place->collectives(), place->vectors(), call));
      all.back().time = [=](Rounds rounds) { return time_calls(place->session(), rounds, start, finish); };
      all.back().verify = [=, &operation](std::uint64_t seed) {
        return place->verify(operation, place->vectors(), seed, [&] { start(), finish(); });
      };
    }
    return all;
  };
  return {operation.name, method_of(Control::stream, measured.algorithm), true, prepare};
}

}  // namespace beeline::bench
