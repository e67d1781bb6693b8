// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How one unit of a program compiles device operations: other units of the program may be compiled differently.

#include <cstdint>

#include "beeline/beeline.hpp"

namespace beeline_test {

/// Functions as instantiated in a unit, and whether it makes the checks that only BEELINE_CHECKED enables.
struct UnitMode {
  bool checks_all;
  const void *put, *signal_add, *atomic_add;
  std::uint64_t* (*at)(const beeline::Context& ctx, std::uint64_t* local, std::uint32_t peer);
};

[[nodiscard]] UnitMode checked_unit();
[[nodiscard]] UnitMode unchecked_unit();

namespace {

/// The mode of the unit that includes this file.
UnitMode mode_of_this_unit() {
  using namespace beeline;
  using Put = Status (*)(const Thread&, const Context&, std::uint64_t*, const std::uint64_t*, std::size_t,
                         std::uint32_t, QueueId);
  using Add = Status (*)(const Thread&, const Context&, std::uint64_t*, std::uint64_t, std::uint32_t, Order, QueueId);
  using AtomicAdd = Status (*)(const Context&, std::uint64_t*, std::uint64_t, std::uint32_t);
  return {BEELINE_CHECKS_CALLS != 0, reinterpret_cast<const void*>(static_cast<Put>(put<Thread, std::uint64_t>)),
          reinterpret_cast<const void*>(static_cast<Add>(signal_add<Thread>)),
          reinterpret_cast<const void*>(static_cast<AtomicAdd>(atomic_add<std::uint64_t>)),
          [](const Context& ctx, std::uint64_t* local, std::uint32_t peer) { return ctx.at(local, peer); }};
}

}  // namespace

}  // namespace beeline_test
