// SPDX-License-Identifier: Apache-2.0
#include "bandwidths.hpp"

#include <bit>
#include <functional>

#include "beeline/hpe/copy.hpp"
#include "common/sampling.hpp"
#include "kernels.hpp"
#include "local_transform.hpp"

namespace fft {

namespace {

double median_seconds(const std::function<void()>& work) {
  constexpr int samples = 7;
  work();
  std::vector<apps::Sample> all;
  for (int sample = 0; sample < samples; ++sample) all.push_back(apps::timed_run(work));
  return apps::median(all).seconds;
}

}  // namespace

Bandwidths measure_bandwidths(Parts& parts) {
  constexpr int repeats = 4;  // in a row, so that the start of the first one counts little
  const auto bytes = static_cast<double>(parts.bytes());
  Bandwidths found;
  found.memory = 2 * repeats * bytes / median_seconds([&] {
                   for (int repeat = 0; repeat < repeats; ++repeat)
                     enqueue_copy(parts.stream(0), parts.other(0), parts.elements(0), parts.count());
                   parts.synchronize();
                 });
  if (parts.devices() == 1) return found;
  found.link =
      repeats * bytes / median_seconds([&] {
        for (int repeat = 0; repeat < repeats; ++repeat)
          for (std::size_t number = 0; number < parts.devices(); ++number)
            beeline::hpe::copy(parts.other(number), parts.elements(number ^ 1), parts.bytes(), parts.stream(number));
        parts.synchronize();
      });
  return found;
}

double exchange_seconds(const Parts& parts, const Bandwidths& bandwidths) {
  if (parts.devices() == 1) return 0;
  return std::countr_zero(parts.devices()) * static_cast<double>(parts.bytes()) / bandwidths.link;
}

double bound_seconds(const Parts& parts, const Bandwidths& bandwidths) {
  const double local = least_passes(parts.count()) * 2 * static_cast<double>(parts.bytes()) / bandwidths.memory;
  return local + exchange_seconds(parts, bandwidths);
}

}  // namespace fft
