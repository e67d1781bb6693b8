// SPDX-License-Identifier: Apache-2.0
// The stencil application: how devices share its planes, its serial reference, and every method against the reference,
// bit for bit, on host devices.

#include <gtest/gtest.h>

#include <vector>

#include "common/device_threads.hpp"
#include "stencil/method.hpp"
#include "stencil/serial.hpp"
#include "tests/support/errors.hpp"

#if defined(__SANITIZE_THREAD__)
/// An access to an object is resolved inside the handler of its fault, which releases memory. The thread was at the
/// access, so it is inside no allocation.
extern "C" const char* __tsan_default_options() { return "report_signal_unsafe=0"; }
#endif

namespace stencil {

void PrintTo(const Size& size, std::ostream* out) { *out << size.x << 'x' << size.y << 'x' << size.z; }

namespace {

using beeline::Status;
using beeline_test::check_error;

apps::Devices host_devices(int count) {
  beeline::Config config;
  config.device = "cpu", config.threads = true, config.size = count;
  return apps::devices_for(config);
}

TEST(StencilProblem, SizesAreCubesOrBoxes) {
  EXPECT_EQ(parse_sizes("16,1Kx7x9"), (std::vector<Size>{{16, 16, 16}, {1024, 7, 9}}));
  for (const char* bad : {"x", "0", "5x7", "5x7x", "x5x7", "5x7x0", "-4", "5x7x9x11", "33K", "5X7x9", "1,,2", "1.5"})
    check_error(Status::invalid_argument, {"--size: '", "is no size; valid: N", "XxYxZ"},
                [&] { static_cast<void>(parse_sizes(bad)); });
  check_error(Status::invalid_argument, {"--size: no volume is named"}, [] { static_cast<void>(parse_sizes("")); });
}

TEST(StencilProblem, SlabsCoverThePlanesOnce) {
  for (std::size_t planes = radius; planes < 60; ++planes)
    for (std::size_t parts = 1; parts * radius <= planes; ++parts) {
      std::size_t next = 0;
      for (std::size_t part = 0; part < parts; ++part) {
        const Slab slab = slab_of({3, 3, planes}, parts, part);
        EXPECT_EQ(slab.first, next);
        EXPECT_GE(slab.planes, radius);
        next += slab.planes;
      }
      EXPECT_EQ(next, planes);
    }
}

TEST(StencilProblem, WhatDoesNotFitIsRefused) {
  check_error(Status::invalid_argument, {"4 devices for 15 planes", "(volume 9x9x15)", "at least 4"}, [] {
    check(host_devices(4), {{9, 9, 16}, {9, 9, 15}}, true, true);
  });
  check_error(Status::no_resource, {"a volume of 32768x32768x32768 on 2 devices", "host memory", "or --no-verify"}, [] {
    check(host_devices(2), {{32768, 32768, 32768}}, false, true);
  });
}

TEST(StencilSerial, TheSecondDerivativeIsOfEighthOrder) {
  // Of a point alone, the first step shows the weights: on the axes through it, and nowhere else.
  const Size size{1, 1, 1};
  Serial serial(size, 1);
  const std::vector<float> before = serial.field();
  serial.advance(1);
  const std::size_t middle = radius * size.plane() + radius * size.width() + radius;
  const double weights[] = {-205.0 / 72, 8.0 / 5, -1.0 / 5, 8.0 / 315, -1.0 / 560};
  double curvature = 3 * weights[0] * before[middle];
  for (const std::size_t stride : {std::size_t{1}, size.width(), size.plane()})
    for (std::size_t d = 1; d <= radius; ++d)
      curvature += weights[d] * (before[middle - d * stride] + before[middle + d * stride]);
  EXPECT_NEAR(serial.field()[middle], before[middle] + curvature / 16, 1e-4);
  for (std::size_t at = 0; at < before.size(); ++at)
    ASSERT_TRUE(at == middle || serial.field()[at] == before[at]) << at;
}

TEST(StencilSerial, ThreadsChangeNothing) {
  Serial one({9, 5, 14}, 1), many({9, 5, 14}, 5);
  one.advance(3);
  many.advance(1);
  many.advance(2);
  EXPECT_EQ(one.field(), many.field());
}

/// Whether a method's runs, of either parity, give the reference's field. A run without communication comes before.
void expect_reference(const Size& size, int count) {
  const Setup setup{host_devices(count), size};
  Serial reference(size, 2);
  reference.advance(7);
  for (const MethodInfo& info : methods()) {
    const std::unique_ptr<Method> method = info.make(setup);
    method->reset();
    method->run(2, false);
    method->reset();
    method->run(3, true);
    method->run(4, true);
    EXPECT_EQ(method->gather(), reference.field()) << info.name << " on " << count << " devices";
  }
}

TEST(StencilMethods, OneDevice) { expect_reference({5, 6, 7}, 1); }
TEST(StencilMethods, SlabsOfEdgesOnly) { expect_reference({7, 3, 13}, 3); }
TEST(StencilMethods, UnequalSlabs) { expect_reference({70, 5, 41}, 4); }
TEST(StencilMethods, SlabsOfSeveralChunks) { expect_reference({3, 2, 150}, 2); }

TEST(DeviceThreads, TheFirstErrorIsThrown) {
  check_error(Status::no_resource, {"of part 1"}, [] {
    apps::on_device_threads(3, [](std::size_t part) { beeline::require(part != 1, Status::no_resource, "of part 1"); });
  });
}

TEST(Devices, ProcessesAndNodesAreRefused) {
  beeline::Config config;
  config.device = "cpu", config.size = 2;
  check_error(Status::invalid_argument, {"beeline-launch --threads"},
              [&] { static_cast<void>(apps::devices_for(config)); });
  config.threads = true, config.split_nodes = 2;
  check_error(Status::invalid_argument, {"--split-nodes"}, [&] { static_cast<void>(apps::devices_for(config)); });
  config.split_nodes = 1, config.size = 65;
  check_error(Status::no_resource, {"65 devices", "64"}, [&] { static_cast<void>(apps::devices_for(config)); });
}

}  // namespace

}  // namespace stencil
