// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks of arguments that several calls have.

#include <fmt/format.h>

#include <cstdint>

#include "gaspi/call.hpp"
#include "gaspi/config.hpp"
#include "gaspi/connections.hpp"

namespace beeline::gaspi {

/// Requires a rank of the world.
inline void require_rank(const Process& process, gaspi_rank_t rank) {
  if (static_cast<int>(rank) >= process.size()) [[unlikely]]
    refuse(GASPI_ERR_INV_RANK, fmt::format("there is no rank {}: ranks are 0 to {}", rank, process.size() - 1));
}

/// Requires a rank of the world that has not failed and is connected.
inline void require_peer(const Process& process, gaspi_rank_t rank) {
  require_rank(process, rank);
  if (!process.health().is_healthy(rank)) [[unlikely]]
    throw Failure(fmt::format("rank {} has failed: {}", rank, process.health().reason(rank)));
  if (!process.connections().is_connected(rank)) [[unlikely]]
    throw Failure(fmt::format("rank {} is not connected: gaspi_connect does it", rank));
}

/// Requires notifications `first` to `first` + `count` - 1 of a segment.
inline void require_notifications(gaspi_notification_id_t first, std::uint64_t count) {
  if (first + count > configuration().notification_num) [[unlikely]]
    refuse(GASPI_ERR_INV_NOTIF_ID, fmt::format("there are no notifications {} to {}: a segment has 0 to {}", first,
                                               first + count - 1, configuration().notification_num - 1));
}

/// Whether the bytes `offset` to `offset` + `size` - 1 lie within `bytes`.
[[nodiscard]] constexpr bool is_within(std::uint64_t offset, std::uint64_t size, std::uint64_t bytes) {
  return offset <= bytes && size <= bytes - offset;
}

/// Writes `compute(process)` as the output of a function that does nothing else.
template <class Value, class Compute>
[[nodiscard]] gaspi_return_t answer_by(const char* function, Value* output, const char* argument,
                                       const Compute& compute) noexcept {
  return call(function, [&](Process& process) {
    require_pointer(output, argument);
    *output = static_cast<Value>(compute(process));
  });
}
/// The same for a value that is known.
template <class Value>
[[nodiscard]] gaspi_return_t answer(const char* function, Value* output, const char* argument, Value value) noexcept {
  return answer_by(function, output, argument, [=](const Process&) { return value; });
}

}  // namespace beeline::gaspi
