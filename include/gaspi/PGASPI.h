// SPDX-License-Identifier: Apache-2.0
/// @file
/// The profiling interface (14.2): each function gaspi_X is also there as pgaspi_X. A library that defines gaspi_X
/// itself and is linked before `beeline_gaspi` receives the program's calls; it calls pgaspi_X to have the work done.
#ifndef PGASPI_H
#define PGASPI_H

#include "GASPI.h"
#include "GASPI_Ext.h"
#include "GASPI_GPU.h"
#include "GASPI_Threads.h"

// A profiler's own definitions of these functions have the types of the declarations.
#undef gaspi_time_ticks
#undef gaspi_statistic_counter_get

#if defined(__cplusplus)
#define GASPI_PROFILED(name) decltype(gaspi_##name) pgaspi_##name
#else
#define GASPI_PROFILED(name) __typeof__(gaspi_##name) pgaspi_##name
#endif

GASPI_BEGIN

gaspi_return_t pgaspi_time_ticks(gaspi_cycles_t* ticks);
gaspi_return_t pgaspi_statistic_counter_get(gaspi_statistic_counter_t counter, gaspi_number_t argument,
                                            unsigned long* value);

GASPI_PROFILED(config_get);
GASPI_PROFILED(config_set);
GASPI_PROFILED(proc_init);
GASPI_PROFILED(proc_term);
GASPI_PROFILED(proc_num);
GASPI_PROFILED(proc_rank);
GASPI_PROFILED(proc_kill);
GASPI_PROFILED(connect);
GASPI_PROFILED(disconnect);
GASPI_PROFILED(state_vec_get);
GASPI_PROFILED(group_create);
GASPI_PROFILED(group_add);
GASPI_PROFILED(group_commit);
GASPI_PROFILED(group_delete);
GASPI_PROFILED(group_num);
GASPI_PROFILED(group_size);
GASPI_PROFILED(group_ranks);
GASPI_PROFILED(segment_alloc);
GASPI_PROFILED(segment_register);
GASPI_PROFILED(segment_create);
GASPI_PROFILED(segment_bind);
GASPI_PROFILED(segment_use);
GASPI_PROFILED(segment_delete);
GASPI_PROFILED(segment_num);
GASPI_PROFILED(segment_list);
GASPI_PROFILED(segment_ptr);
GASPI_PROFILED(write);
GASPI_PROFILED(read);
GASPI_PROFILED(wait);
GASPI_PROFILED(notify);
GASPI_PROFILED(notify_waitsome);
GASPI_PROFILED(notify_reset);
GASPI_PROFILED(write_notify);
GASPI_PROFILED(write_list);
GASPI_PROFILED(write_list_notify);
GASPI_PROFILED(read_notify);
GASPI_PROFILED(read_list);
GASPI_PROFILED(read_list_notify);
GASPI_PROFILED(queue_create);
GASPI_PROFILED(queue_delete);
GASPI_PROFILED(queue_size);
GASPI_PROFILED(queue_purge);
GASPI_PROFILED(passive_send);
GASPI_PROFILED(passive_receive);
GASPI_PROFILED(passive_queue_purge);
GASPI_PROFILED(atomic_fetch_add);
GASPI_PROFILED(atomic_compare_swap);
GASPI_PROFILED(barrier);
GASPI_PROFILED(allreduce);
GASPI_PROFILED(allreduce_user);
GASPI_PROFILED(group_max);
GASPI_PROFILED(segment_max);
GASPI_PROFILED(queue_num);
GASPI_PROFILED(queue_size_max);
GASPI_PROFILED(queue_max);
GASPI_PROFILED(transfer_size_min);
GASPI_PROFILED(transfer_size_max);
GASPI_PROFILED(notification_num);
GASPI_PROFILED(passive_transfer_size_min);
GASPI_PROFILED(passive_transfer_size_max);
GASPI_PROFILED(atomic_max);
GASPI_PROFILED(allreduce_buf_size);
GASPI_PROFILED(allreduce_elem_max);
GASPI_PROFILED(rw_list_elem_max);
GASPI_PROFILED(network_type);
GASPI_PROFILED(build_infrastructure);
GASPI_PROFILED(version);
GASPI_PROFILED(time_get);
GASPI_PROFILED(time_resolution);
GASPI_PROFILED(print_error);
GASPI_PROFILED(statistic_counter_max);
GASPI_PROFILED(statistic_counter_info);
GASPI_PROFILED(statistic_verbosity_level);
GASPI_PROFILED(statistic_counter_get_number);
GASPI_PROFILED(statistic_counter_reset);
GASPI_PROFILED(pcontrol);

GASPI_PROFILED(initialized);
GASPI_PROFILED(proc_local_rank);
GASPI_PROFILED(proc_local_num);
GASPI_PROFILED(proc_ping);
GASPI_PROFILED(segment_avail_local);
GASPI_PROFILED(segment_size);
GASPI_PROFILED(cpu_frequency);
GASPI_PROFILED(printf);
GASPI_PROFILED(printf_to);
GASPI_PROFILED(print_affinity_mask);
GASPI_PROFILED(numa_socket);
GASPI_PROFILED(set_socket_affinity);
GASPI_PROFILED(error_str);

GASPI_PROFILED(threads_init);
GASPI_PROFILED(threads_init_user);
GASPI_PROFILED(threads_term);
GASPI_PROFILED(threads_run);
GASPI_PROFILED(threads_register);
GASPI_PROFILED(threads_get_tid);
GASPI_PROFILED(threads_get_total);
GASPI_PROFILED(threads_get_num_cores);
GASPI_PROFILED(threads_sync);
GASPI_PROFILED(threads_sync_all);

GASPI_PROFILED(gpu_init);
GASPI_PROFILED(init_GPUs);
GASPI_PROFILED(gpu_ids);
GASPI_PROFILED(GPU_ids);
GASPI_PROFILED(gpu_number);
GASPI_PROFILED(number_of_GPUs);
GASPI_PROFILED(gpu_write);
GASPI_PROFILED(gpu_write_notify);
GASPI_PROFILED(gpu_hybrid_set);
GASPI_PROFILED(gpu_endpoint);
GASPI_PROFILED(map_create);
GASPI_PROFILED(map_seg);

GASPI_END

#endif
