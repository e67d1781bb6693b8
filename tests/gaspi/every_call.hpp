// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All functions that need gaspi_proc_init, each with valid arguments for one rank.

#include <GASPI.h>
#include <GASPI_Ext.h>

#include <functional>
#include <vector>

namespace beeline_test {

struct GaspiCall {
  const char* name;
  std::function<gaspi_return_t()> call;
};

/// Where the calls write their results.
struct GaspiOutputs {
  gaspi_rank_t rank = 0;
  gaspi_number_t number = 0;
  gaspi_size_t size = 0;
  gaspi_atomic_value_t value = 0;
  gaspi_notification_id_t id = 0;
  gaspi_notification_t notification = 0;
  gaspi_pointer_t pointer = nullptr;
  gaspi_segment_id_t segment = 0;
  gaspi_queue_id_t queue = 0;
  gaspi_group_t group = 0;
  gaspi_network_t network{};
  gaspi_state_t states[64] = {};
  gaspi_rank_t ranks[64] = {};
  alignas(64) char memory[4096] = {};
};

[[nodiscard]] std::vector<GaspiCall> every_gaspi_call(GaspiOutputs& out);

}  // namespace beeline_test
