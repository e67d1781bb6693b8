// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The cost of one call on the rings of an adapter, apart from its time: accesses, and on a CPU instructions.

#include <cstddef>
#include <cstdint>

#include "beeline/control/impl/direct_access.hpp"
#include "harness/measurement.hpp"

namespace beeline::bench {

struct CallCost {
  std::uint64_t loads, stores;  ///< of rings, queues and doorbells
  std::uint64_t instructions;   ///< 0: not counted

  [[nodiscard]] Settings settings() const {
    Settings settings{{"loads", loads}, {"stores", stores}};
    if (instructions != 0) settings.emplace_back("instructions", instructions);
    return settings;
  }
};

/// The `Access` of calls whose accesses are counted.
struct CountingAccess {
  /// The counts of the calling thread; on a GPU of its block, of which one thread counts.
  BEELINE_HOST_DEVICE static CallCost& counts() {
#if BEELINE_ON_GPU
    __shared__ CallCost counts;
#else
    static thread_local CallCost counts;
#endif
    return counts;
  }

  template <class T>
  BEELINE_HOST_DEVICE static T load(const std::byte* from) {
    ++counts().loads;
    return Direct::load<T>(from);
  }
  template <class T>
  BEELINE_HOST_DEVICE static void store(std::byte* to, T value) {
    ++counts().stores;
    Direct::store(to, value);
  }
  BEELINE_HOST_DEVICE static std::uint64_t load_acquired(const std::byte* from) {
    ++counts().loads;
    return Direct::load_acquired(from);
  }
  BEELINE_HOST_DEVICE static void store_released(std::uint64_t& to, std::uint64_t value) {
    ++counts().stores;
    Direct::store_released(to, value);
  }
  BEELINE_HOST_DEVICE static void store_released_on_device(std::uint64_t& to, std::uint64_t value) {
    ++counts().stores;
    Direct::store_released_on_device(to, value);
  }

 private:
  using Direct = beeline::detail::DirectAccess;
};

/// Calls `call()` with accesses by `CountingAccess`, and returns their number. One thread of a block calls it.
template <class Call>
BEELINE_HOST_DEVICE CallCost accesses_of(Call call) {
  CountingAccess::counts() = {};
  call();
  return CountingAccess::counts();
}

/// Calls `call(argument)`, instruction by instruction, and returns the number of instructions that the calling thread
/// executes in user mode; 0 on processors other than x86-64. Takes about a microsecond for each. One thread at a time.
[[nodiscard]] std::uint64_t count_instructions(void (*call)(void*), void* argument);

/// The instructions of `call()` on a CPU; 0 on a GPU, where a profiler has to count them.
template <class Call>
BEELINE_HOST_DEVICE std::uint64_t instructions_of([[maybe_unused]] Call call) {
#if BEELINE_ON_GPU
  call();
  return 0;
#else
  const auto empty = [](void*) {};
  const auto wanted = [](void* argument) { (*static_cast<Call*>(argument))(); };
  const std::uint64_t nothing = count_instructions(empty, nullptr);
  return count_instructions(wanted, &call) - nothing;
#endif
}

}  // namespace beeline::bench
