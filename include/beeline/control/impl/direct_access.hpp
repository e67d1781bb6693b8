// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Accesses of posters and pollers to the rings, doorbells and pages of adapters.

#include <cstddef>
#include <cstdint>

#include "beeline/device/impl/route.hpp"

namespace beeline::detail {

/// The default of calls that take an `Access`. Benchmarks count accesses with one of their own.
struct DirectAccess {
  template <class T>
  BEELINE_HOST_DEVICE static T load(const std::byte* from) {
    return machine::load_as<T>(from);
  }
  template <class T>
  BEELINE_HOST_DEVICE static void store(std::byte* to, T value) {
    machine::store_as(to, value);
  }
  BEELINE_HOST_DEVICE static std::uint64_t load_acquired(const std::byte* from) {
    return detail::load_acquired(*reinterpret_cast<const std::uint64_t*>(from));
  }
  BEELINE_HOST_DEVICE static void store_released(std::uint64_t& to, std::uint64_t value) {
    SystemAtomic<std::uint64_t>(to).store(value, std::memory_order_release);
  }
  BEELINE_HOST_DEVICE static std::uint64_t exchange(std::uint64_t& word, std::uint64_t value) {
    return SystemAtomic<std::uint64_t>(word).exchange(value, std::memory_order_acq_rel);
  }
};

}  // namespace beeline::detail
