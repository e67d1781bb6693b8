// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A clock for short times that are measured often.

#include <chrono>
#include <cstdint>

namespace beeline::hpe::detail {

/// Counts ticks of the processor's counter, which takes a fraction of the system clock's time to read (60 ns on a
/// virtual machine). Their length is measured since the start of the process, so sums are as exact as the system's
/// clock. Other processors count nanoseconds.
class TickClock {
 public:
  [[nodiscard]] static std::uint64_t now() noexcept {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return system_ns();
#endif
  }
  /// Ticks between two readings, perhaps of two processors.
  [[nodiscard]] static std::uint64_t between(std::uint64_t begin, std::uint64_t end) noexcept {
    return end > begin ? end - begin : 0;
  }
  [[nodiscard]] static std::uint64_t ns_of(std::uint64_t ticks) noexcept {
    const std::uint64_t since_start = between(start_.ticks, now());
    if (since_start == 0) return 0;
    const auto ns = static_cast<double>(system_ns() - start_.ns);
    return static_cast<std::uint64_t>(static_cast<double>(ticks) * ns / static_cast<double>(since_start));
  }

 private:
  [[nodiscard]] static std::uint64_t system_ns() noexcept {
    return static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  }
  struct Start {
    std::uint64_t ticks = now(), ns = system_ns();
  };
  static const Start start_;
};

inline const TickClock::Start TickClock::start_;

}  // namespace beeline::hpe::detail
