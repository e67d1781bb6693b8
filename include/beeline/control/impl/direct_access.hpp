// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Accesses of posters and pollers to the rings, doorbells and pages of adapters, and how posters wake the adapters.

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
  /// For a word that only this device reads.
  BEELINE_HOST_DEVICE static void store_released_on_device(std::uint64_t& to, std::uint64_t value) {
    DeviceAtomic<std::uint64_t>(to).store(value, std::memory_order_release);
  }
};

/// Wakes the engine or block that serves a ring, if it sleeps. Called by the thread that has stored a doorbell or
/// descriptor of the ring.
///   asleep  written by the ring's engine: 0, or how to wake it
///   wanted  set to wake a resident block; nullptr: a host engine serves the ring
template <class Access>
BEELINE_HOST_DEVICE void wake_adapter(std::uint64_t& asleep, std::uint64_t* wanted) {
  if (wanted != nullptr) {
    // The block stores its mark, then reads the ring. With a fence between store and read on each side, at least one
    // side sees the other's store.
    machine::fence_device_sequential();
    const std::uint64_t mark = Access::load_acquired(reinterpret_cast<const std::byte*>(&asleep));
    if (mark == 0) return;
    DeviceAtomic<std::uint64_t>(asleep).store(0, std::memory_order_relaxed);
    SystemAtomic<std::uint64_t>(*wanted).store(1, std::memory_order_release);
    if constexpr (executor == DeviceKind::host) wake_engine(mark);
  } else if constexpr (executor == DeviceKind::host) {
    // The engine orders its mark with this load (membarrier).
    if (const std::uint64_t waker = load_acquired(asleep); waker != 0) wake_engine(waker);
  }
}

}  // namespace beeline::detail
