// SPDX-License-Identifier: Apache-2.0
#include "beeline/hpe/device.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "beeline/core/error.hpp"
#include "beeline/hpe/copy.hpp"
#include "beeline/hpe/memory.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test {

namespace {

namespace hpe = beeline::hpe;
using namespace hpe;
using beeline::Status;

TEST(Devices, Values) {
  EXPECT_EQ(Device::host(), Device::host(0));
  EXPECT_NE(Device::host(0), Device::host(1));
  EXPECT_FALSE(Device::host(5).is_gpu());
  EXPECT_EQ(Device::host(5).name(), "host device 5");
  EXPECT_TRUE(Device::host(1).reaches(Device::host(1)));
  if (Device::gpus().empty()) {
    ASSERT_EQ(Device::all(3).size(), 3u);
    EXPECT_EQ(Device::all(3)[2], Device::host(2));
  } else {
    EXPECT_EQ(Device::all(3), Device::gpus());
  }
}

TEST(Devices, ThatDoNotExistAreRefused) {
  check_error(Status::invalid_argument, {"host device 64", "0 to 63"}, [] { static_cast<void>(Device::host(64)); });
  check_error(Status::invalid_argument, {"host device -1"}, [] { static_cast<void>(Device::host(-1)); });
  check_error(Status::invalid_argument, {"-3 host devices", "0 to 64"}, [] { static_cast<void>(Device::all(-3)); });
  check_error(Status::invalid_argument, {"GPU 99 is not here"}, [] { static_cast<void>(Device::gpu(99)); });
}

TEST(Devices, MemoryOfNoBytesIsRefused) {
  check_error(Status::invalid_argument, {"0 bytes", "host device 0"}, [] { DeviceMemory(Device::host(), 0); });
  check_error(Status::invalid_argument, {"0 bytes"}, [] { PinnedMemory(0); });
}

/// The last case that uses these devices: they stay lost.
TEST(Devices, LossEndsWaitsAndRefusesCalls) {
  const Device lost = Device::host(60), other = Device::host(61);
  const DeviceMemory memory(lost, 64);
  Stream stream(lost), waiting(other);
  std::atomic<bool> ends{false};
  stream.enqueue([&] {
    while (!ends) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  std::thread watcher([&] {
    check_error(Status::unavailable, {"host device 60 cannot be used any more", "disappeared"},
                [&] { stream.synchronize(); });
  });
  waiting.wait_for(stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  simulate_loss(lost);
  watcher.join();
  std::byte here[64] = {};
  const auto is_refused = [&](auto call) { check_error(Status::unavailable, {"host device 60"}, call); };
  is_refused([&] { hpe::copy(here, memory.data(), 64); });
  is_refused([&] { hpe::copy(memory.data(), here, 64, waiting); });
  is_refused([&] { stream.fill(memory.data(), 0, 64); });
  is_refused([&] { Stream another(lost); });
  is_refused([&] { DeviceMemory more(lost, 1); });
  is_refused([&] { lost.require_working(); });
  ends = true;
  waiting.synchronize();  // the other device goes on
}

}  // namespace

}  // namespace beeline_test
