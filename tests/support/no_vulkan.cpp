// SPDX-License-Identifier: Apache-2.0
// A library without a driver, with the soname of one in which the library looks for NVIDIA's Vulkan driver: tests get
// the fake alone, whatever the machine has.
namespace {

[[maybe_unused]] constexpr int nothing = 0;

}  // namespace
