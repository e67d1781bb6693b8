// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The configuration: the standard's fields and GPI-2's.

#include <GASPI_Types.h>

#include <cstdint>

namespace beeline::gaspi {

/// Limits of the configuration, and largest sizes.
inline constexpr std::uint32_t most_queues = 31;                  ///< the service has one of Beeline's 32
inline constexpr std::uint32_t most_queue_entries = 1u << 20;     ///< of `queue_size_max`
inline constexpr std::uint64_t most_transfer_bytes = 1ull << 40;  ///< of `transfer_size_max`
inline constexpr std::uint64_t most_passive_bytes = 1u << 20;     ///< of `passive_transfer_size_max`
inline constexpr std::uint32_t most_passive_entries = 1u << 16;   ///< of `passive_queue_size_max`
inline constexpr std::uint32_t most_list_elements = 1u << 16;     ///< of `rw_list_elem_max`

/// The configuration. It does not change while the process is initialized.
[[nodiscard]] inline const gaspi_config_t& configuration() {
  extern gaspi_config_t configured;  // changed by `gaspi_config_set` alone
  return configured;
}

}  // namespace beeline::gaspi
