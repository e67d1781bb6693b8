// SPDX-License-Identifier: Apache-2.0
#include "tests/gaspi/every_call.hpp"

namespace beeline_test {

namespace {

gaspi_return_t keep_first(gaspi_pointer_t, gaspi_pointer_t, gaspi_pointer_t, gaspi_reduce_state_t, gaspi_number_t,
                          gaspi_size_t, gaspi_timeout_t) {
  return GASPI_SUCCESS;
}

constexpr gaspi_segment_id_t segments[] = {0};
constexpr gaspi_offset_t offsets[] = {0};
constexpr gaspi_size_t sizes[] = {8};

#define CALL(name, ...)                                             \
  {                                                                 \
#name, [&out] { static_cast<void>(out); return name(__VA_ARGS__); } \
  }

std::vector<GaspiCall> calls_of_ranks_and_groups(GaspiOutputs& out) {
  return {
      CALL(gaspi_proc_term, GASPI_TEST),
      CALL(gaspi_proc_num, &out.rank),
      CALL(gaspi_proc_rank, &out.rank),
      CALL(gaspi_proc_kill, 1, GASPI_TEST),
      CALL(gaspi_connect, 0, GASPI_TEST),
      CALL(gaspi_disconnect, 0, GASPI_TEST),
      CALL(gaspi_state_vec_get, out.states),
      CALL(gaspi_proc_local_rank, &out.rank),
      CALL(gaspi_proc_local_num, &out.rank),
      CALL(gaspi_proc_ping, 0, GASPI_TEST),
      CALL(gaspi_group_create, &out.group),
      CALL(gaspi_group_add, 1, 0),
      CALL(gaspi_group_commit, 1, GASPI_TEST),
      CALL(gaspi_group_delete, 1),
      CALL(gaspi_group_num, &out.number),
      CALL(gaspi_group_size, GASPI_GROUP_ALL, &out.number),
      CALL(gaspi_group_ranks, GASPI_GROUP_ALL, out.ranks),
      CALL(gaspi_barrier, GASPI_GROUP_ALL, GASPI_TEST),
      CALL(gaspi_allreduce, out.memory, out.memory, 1, GASPI_OP_SUM, GASPI_TYPE_INT, GASPI_GROUP_ALL, GASPI_TEST),
      CALL(gaspi_allreduce_user, out.memory, out.memory, 1, 8, keep_first, nullptr, GASPI_GROUP_ALL, GASPI_TEST),
  };
}

std::vector<GaspiCall> calls_of_segments(GaspiOutputs& out) {
  return {
      CALL(gaspi_segment_alloc, 0, 64, GASPI_MEM_DEFAULT),
      CALL(gaspi_segment_register, 0, 0, GASPI_TEST),
      CALL(gaspi_segment_create, 0, 64, GASPI_GROUP_ALL, GASPI_TEST, GASPI_MEM_DEFAULT),
      CALL(gaspi_segment_bind, 0, out.memory, 64, GASPI_MEMORY_HOST),
      CALL(gaspi_segment_use, 0, out.memory, 64, GASPI_GROUP_ALL, GASPI_TEST, GASPI_MEMORY_HOST),
      CALL(gaspi_segment_delete, 0),
      CALL(gaspi_segment_num, &out.number),
      CALL(gaspi_segment_list, 1, &out.segment),
      CALL(gaspi_segment_ptr, 0, &out.pointer),
      CALL(gaspi_segment_avail_local, &out.segment),
      CALL(gaspi_segment_size, 0, 0, &out.size),
  };
}

std::vector<GaspiCall> calls_of_transfers(GaspiOutputs& out) {
  return {
      CALL(gaspi_write, 0, 0, 0, 0, 0, 8, 0, GASPI_TEST),
      CALL(gaspi_read, 0, 0, 0, 0, 0, 8, 0, GASPI_TEST),
      CALL(gaspi_wait, 0, GASPI_TEST),
      CALL(gaspi_notify, 0, 0, 0, 1, 0, GASPI_TEST),
      CALL(gaspi_notify_waitsome, 0, 0, 1, &out.id, GASPI_TEST),
      CALL(gaspi_notify_reset, 0, 0, &out.notification),
      CALL(gaspi_write_notify, 0, 0, 0, 0, 0, 8, 0, 1, 0, GASPI_TEST),
      CALL(gaspi_write_list, 1, segments, offsets, 0, segments, offsets, sizes, 0, GASPI_TEST),
      CALL(gaspi_write_list_notify, 1, segments, offsets, 0, segments, offsets, sizes, 0, 0, 1, 0, GASPI_TEST),
      CALL(gaspi_read_notify, 0, 0, 0, 0, 0, 8, 0, 0, GASPI_TEST),
      CALL(gaspi_read_list, 1, segments, offsets, 0, segments, offsets, sizes, 0, GASPI_TEST),
      CALL(gaspi_read_list_notify, 1, segments, offsets, 0, segments, offsets, sizes, 0, 0, 0, GASPI_TEST),
      CALL(gaspi_queue_create, &out.queue, GASPI_TEST),
      CALL(gaspi_queue_delete, 0),
      CALL(gaspi_queue_size, 0, &out.number),
      CALL(gaspi_queue_purge, 0, GASPI_TEST),
      CALL(gaspi_passive_send, 0, 0, 0, 8, GASPI_TEST),
      CALL(gaspi_passive_receive, 0, 0, &out.rank, 8, GASPI_TEST),
      CALL(gaspi_passive_queue_purge, GASPI_TEST),
      CALL(gaspi_atomic_fetch_add, 0, 0, 0, 1, &out.value, GASPI_TEST),
      CALL(gaspi_atomic_compare_swap, 0, 0, 0, 0, 1, &out.value, GASPI_TEST),
  };
}

std::vector<GaspiCall> calls_of_limits(GaspiOutputs& out) {
  return {
      CALL(gaspi_group_max, &out.number),
      CALL(gaspi_segment_max, &out.number),
      CALL(gaspi_queue_num, &out.number),
      CALL(gaspi_queue_size_max, &out.number),
      CALL(gaspi_queue_max, &out.number),
      CALL(gaspi_transfer_size_min, &out.size),
      CALL(gaspi_transfer_size_max, &out.size),
      CALL(gaspi_notification_num, &out.number),
      CALL(gaspi_passive_transfer_size_min, &out.size),
      CALL(gaspi_passive_transfer_size_max, &out.size),
      CALL(gaspi_atomic_max, &out.value),
      CALL(gaspi_allreduce_buf_size, &out.size),
      CALL(gaspi_allreduce_elem_max, &out.number),
      CALL(gaspi_rw_list_elem_max, &out.number),
      CALL(gaspi_network_type, &out.network),
      CALL(gaspi_build_infrastructure, &out.number),
  };
}

#undef CALL

}  // namespace

std::vector<GaspiCall> every_gaspi_call(GaspiOutputs& out) {
  std::vector<GaspiCall> all;
  for (const auto part : {calls_of_ranks_and_groups, calls_of_segments, calls_of_transfers, calls_of_limits})
    for (GaspiCall& call : part(out)) all.push_back(std::move(call));
  return all;
}

}  // namespace beeline_test
