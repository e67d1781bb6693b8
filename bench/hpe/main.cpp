// SPDX-License-Identifier: Apache-2.0
// The program of `beeline bench floating` and `beeline bench objects`: beeline-bench-hpe MEASUREMENT BYTES[,BYTES...],
// which prints results.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "beeline/core/error.hpp"
#include "hpe/floating.hpp"
#include "hpe/objects.hpp"

namespace {

using Measure = void (*)(const std::vector<std::size_t>&);

struct Named {
  std::string_view name;
  Measure measure;
};
constexpr Named measurements[] = {{"calls", beeline::bench::hpe::measure_copy_calls},
                                  {"threads", beeline::bench::hpe::measure_threads},
                                  {"inter_device", beeline::bench::hpe::measure_inter_device},
                                  {"streaming", beeline::bench::hpe::measure_streaming},
                                  {"sparse", beeline::bench::hpe::measure_sparse},
                                  {"scattered", beeline::bench::hpe::measure_scattered},
                                  {"irregular", beeline::bench::hpe::measure_irregular},
                                  {"random", beeline::bench::hpe::measure_random},
                                  {"sequential", beeline::bench::hpe::measure_sequential},
                                  {"first_access", beeline::bench::hpe::measure_first_access}};

/// The sizes in a list such as 8,4096, in growing order.
std::vector<std::size_t> parse_sizes(std::string_view text) {
  std::vector<std::size_t> sizes;
  const char* next = text.data();
  const char* const end = next + text.size();
  for (;;) {
    std::size_t bytes = 0;
    const auto [rest, problem] = std::from_chars(next, end, bytes);
    beeline::require(problem == std::errc{} && bytes != 0 && (rest == end || *rest == ','),
                     beeline::Status::invalid_argument, "sizes are numbers of bytes, as in 8,4096");
    sizes.push_back(bytes);
    if (rest == end) break;
    next = rest + 1;
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

int fail(const char* why) {
  std::fprintf(stderr, "beeline-bench-hpe: %s\n", why);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return fail("expected a measurement and sizes");
  try {
    const std::vector<std::size_t> sizes = parse_sizes(argv[2]);
    for (const Named& one : measurements)
      if (one.name == argv[1]) return one.measure(sizes), 0;
    return fail("no such measurement");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
