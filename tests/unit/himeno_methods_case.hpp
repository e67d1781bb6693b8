// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Compares every method of the Himeno application with its serial reference, bit for bit.

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "method.hpp"
#include "serial.hpp"
#include "tests/support/ranks.hpp"
#include "verify.hpp"

namespace himeno {

inline void PrintTo(const Size& size, std::ostream* out) { *out << size.x << 'x' << size.y << 'x' << size.z; }

/// Memory for a problem on `ranks` ranks; small slots, because ThreadSanitizer leaves little address space.
inline beeline::Config himeno_config(const Size& size, int ranks) {
  beeline::Config config = beeline_test::test_config();
  const Domain::Heaps heaps = Domain::heaps(size, ranks);
  config.heap_bytes = heaps.symmetric_bytes, config.pinned_heap_bytes = heaps.pinned_bytes;
  config.slot_shift = 32;
  return config;
}

/// A problem, and the ranks that share it. Ranks are threads.
struct MethodCase {
  Size size;
  int ranks, host_threads;
  HostGrid grid{};
  const char* device = "cpu";
};

inline std::ostream& operator<<(std::ostream& out, const MethodCase& c) {
  return out << c.size.x << 'x' << c.size.y << 'x' << c.size.z << " on " << c.ranks << " ranks of " << c.grid.blocks
             << " blocks of " << c.host_threads;
}

/// Runs every method after runs that end on either parity, and after runs without communication, of which no data may
/// remain. On CPUs the field must have the serial reference's bits, on GPUs the same bits for every method.
inline void run_methods(beeline::World& world, const MethodCase& c, const std::vector<MethodInfo>& all,
                        const std::vector<Expectation>& expected) {
  Domain domain(world, c.size, c.grid);
  std::vector<std::vector<float>> first(expected.size());
  for (const MethodInfo& info : all) {
    const std::unique_ptr<Method> method = info.make(domain);
    for (std::size_t run = 0; run < expected.size(); ++run) {
      const int iterations = expected[run].iterations;
      domain.reset(Data::scrambled);
      method->run(iterations, true);
      EXPECT_NEAR(domain.gosa(), expected[run].gosa, 1e-10 * expected[run].gosa) << info.name;  // both may be 0
      const std::vector<float> field = domain.gather(iterations);
      if (world.rank() == 0) {
        const double tolerance = world.device().is_gpu() ? 1e-5 : 0;
        EXPECT_LE(compare(expected[run], field, domain.gosa()).max_error, tolerance) << info.name << ", " << iterations;
        if (first[run].empty()) first[run] = field;
        EXPECT_EQ(checksum(field), checksum(first[run])) << info.name << ", " << iterations << " iterations";
      }
      method->run(iterations, false);
    }
  }
}

/// Runs each method for each number of iterations.
inline void expect_same_bits(const MethodCase& c, const std::vector<MethodInfo>& all, const std::vector<int>& runs) {
  std::vector<Expectation> expected;
  for (const int iterations : runs) {
    Serial serial(c.size, Data::scrambled, 1);
    serial.advance(iterations);
    expected.push_back({iterations, serial.field(), serial.gosa(), serial.gosa_float32()});
  }
  beeline::Config config = himeno_config(c.size, c.ranks);
  config.device = c.device, config.host_threads = c.host_threads;
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      beeline_test::WorldKind::threads, c.ranks, [&](beeline::World& world) { run_methods(world, c, all, expected); },
      config));
}

}  // namespace himeno
