// SPDX-License-Identifier: Apache-2.0
// A library without a driver, under a soname that Beeline tries for NVIDIA's Vulkan driver: tests find only the fake
// driver, whatever the machine has.
namespace {

[[maybe_unused]] constexpr int nothing = 0;

}  // namespace
