// SPDX-License-Identifier: Apache-2.0
/// @file
/// The functions of GASPI 17.1 (Global Address Space Programming Interface), for C99 and C++, in the library
/// `beeline_gaspi`. docs/gaspi.md has examples, limits, and where semantics differ from GPI-2's. Numbers in parentheses
/// are sections of the standard.
///
/// **Ranks.** A process is a rank. Started by `beeline run`, `gaspi_run`, mpirun, srun or torchrun; a process without a
/// launcher is the only rank.
///
/// **Results.** Each function returns GASPI_SUCCESS or another gaspi_return_t. Arguments are checked first: a call that
/// is refused (GASPI_ERR_...) has touched nothing. A call that fails writes one line to the log (standard error), with
/// the function's name and the reason. Outputs are written only with GASPI_SUCCESS. Before `gaspi_proc_init` and after
/// `gaspi_proc_term` functions return GASPI_ERR_NOINIT; those marked *any time* do not.
///
/// **Time-outs** are in milliseconds. After GASPI_TIMEOUT the same call with the same arguments goes on. GASPI_TEST
/// does what is possible at once. GASPI_BLOCK waits as long as the ranks that the call needs are healthy, and logs at
/// each deadline (BEELINE_DEADLINE_S) what it waits for; when one of them has failed it returns GASPI_ERROR.
///
/// **Threads.** Any thread may call any function, except as said.
#ifndef GASPI_H
#define GASPI_H

#include "GASPI_Types.h"

GASPI_BEGIN

/* ---- Configuration (5.1). Threads: one. ---- */

/// Writes the configuration to `config`: the defaults, or what was set. Any time.
gaspi_return_t gaspi_config_get(gaspi_config_t* config);
/// Sets the configuration, the same on all ranks, before `gaspi_proc_init`. GASPI_ERR_CONFIG for a value out of range,
/// GASPI_ERR_INITED after `gaspi_proc_init`. Any time.
gaspi_return_t gaspi_config_set(gaspi_config_t config);

/* ---- Processes (5.2) ---- */

/// Starts the rank: joins the ranks that the launcher has started, and makes the configured queues. Collective.
/// Threads: one. GASPI_ERR_INITED for a second call, GASPI_ERR_ENV for an environment that is not valid. (5.2.1)
gaspi_return_t gaspi_proc_init(gaspi_timeout_t timeout_ms);
/// Ends the rank; frees segments, queues and groups. Collective: waits until all healthy ranks call it; after
/// GASPI_TIMEOUT the rank may call other functions before it calls this one again. Requests in queues may be lost: call
/// `gaspi_wait` before. Threads: one. Calls in which other threads still make segments or groups end with GASPI_ERROR;
/// other calls of theirs must have returned. (5.2.4)
gaspi_return_t gaspi_proc_term(gaspi_timeout_t timeout_ms);
/// Writes the number of ranks. (5.2.2)
gaspi_return_t gaspi_proc_num(gaspi_rank_t* proc_num);
/// Writes the calling rank, from 0 on. (5.2.3)
gaspi_return_t gaspi_proc_rank(gaspi_rank_t* rank);
/// Ends another rank's process, also one that does not answer. Afterwards its state is GASPI_STATE_CORRUPT everywhere.
/// GASPI_ERR_INV_RANK for the calling rank. (5.2.5)
gaspi_return_t gaspi_proc_kill(gaspi_rank_t rank, gaspi_timeout_t timeout_ms);
/// Connects this rank and `rank`. Needed only with GASPI_TOPOLOGY_NONE; nothing happens if they are connected. (5.3.1)
gaspi_return_t gaspi_connect(gaspi_rank_t rank, gaspi_timeout_t timeout_ms);
/// Ends the connection: later transfers to `rank` return GASPI_ERROR until the next `gaspi_connect`. (5.3.2)
gaspi_return_t gaspi_disconnect(gaspi_rank_t rank, gaspi_timeout_t timeout_ms);
/// Writes the state of each rank, as this rank knows it, to `state_vector` [ranks]. Does not block. (5.4.2)
gaspi_return_t gaspi_state_vec_get(gaspi_state_vector_t state_vector);

/* ---- Groups (6). Threads: one for each group. ---- */

/// Makes an empty group. GASPI_ERR_MANY_GRP if there is no free one. Local. (6.3.1)
gaspi_return_t gaspi_group_create(gaspi_group_t* group);
/// Adds `rank` to a group that is not committed. GASPI_ERR_INV_RANK if it is a member. Local. (6.3.2)
gaspi_return_t gaspi_group_add(gaspi_group_t group, gaspi_rank_t rank);
/// Collective over the members, which have added the same ranks. Afterwards the group can be used for collective calls.
/// The members' ids of the group may differ. (6.3.3)
gaspi_return_t gaspi_group_commit(gaspi_group_t group, gaspi_timeout_t timeout_ms);
/// Deletes a group, but not GASPI_GROUP_ALL. GASPI_ERR_ACTIVE_COLL if a collective call of the group has timed out on
/// this rank and all members are healthy: call it again until its end. Local. (6.4.1)
gaspi_return_t gaspi_group_delete(gaspi_group_t group);
/// Writes the number of groups of this rank, GASPI_GROUP_ALL among them. (6.5.1)
gaspi_return_t gaspi_group_num(gaspi_number_t* group_num);
/// Writes the number of ranks in the group. (6.5.2)
gaspi_return_t gaspi_group_size(gaspi_group_t group, gaspi_number_t* group_size);
/// Writes the ranks of the group, ascending, to `group_ranks` [`gaspi_group_size`]. (6.5.3)
gaspi_return_t gaspi_group_ranks(gaspi_group_t group, gaspi_rank_t* group_ranks);

/* ---- Segments (7): memory that other ranks read and write. Ids 0 to `gaspi_segment_max` - 1. ---- */

/// Allocates `size` bytes, at least 1, as segment `segment_id` of this rank. Other ranks reach it after
/// `gaspi_segment_register`. Size and kind may differ from rank to rank.
///   alloc_policy  GASPI_MEM_..., combined by |
/// Local. GASPI_ERR_INV_SEG if the id is out of range or in use. (7.2.1)
gaspi_return_t gaspi_segment_alloc(gaspi_segment_id_t segment_id, gaspi_size_t size, gaspi_alloc_t alloc_policy);
/// Makes this rank's segment known to `rank`, which needs no call. (7.2.2)
gaspi_return_t gaspi_segment_register(gaspi_segment_id_t segment_id, gaspi_rank_t rank, gaspi_timeout_t timeout_ms);
/// `gaspi_segment_alloc`, `gaspi_segment_register` with all members of `group`, and `gaspi_barrier`. Collective over
/// the group. Members without memory for their part get GASPI_ERR_MEMALLOC, and have no segment; the others succeed.
/// (7.2.3)
gaspi_return_t gaspi_segment_create(gaspi_segment_id_t segment_id, gaspi_size_t size, gaspi_group_t group,
                                    gaspi_timeout_t timeout_ms, gaspi_alloc_t alloc_policy);
/// As `gaspi_segment_alloc`, with `size` bytes of the program's at `pointer`, which live until `gaspi_segment_delete`.
/// (7.2.4)
gaspi_return_t gaspi_segment_bind(gaspi_segment_id_t segment_id, gaspi_pointer_t pointer, gaspi_size_t size,
                                  gaspi_memory_description_t memory_description);
/// As `gaspi_segment_create`, with memory of the program's. (7.2.5)
gaspi_return_t gaspi_segment_use(gaspi_segment_id_t segment_id, gaspi_pointer_t pointer, gaspi_size_t size,
                                 gaspi_group_t group, gaspi_timeout_t timeout_ms,
                                 gaspi_memory_description_t memory_description);
/// Deletes this rank's segment. Transfers with it must have ended; later ones are refused. Memory of the program's
/// stays. Local. (7.3.1)
gaspi_return_t gaspi_segment_delete(gaspi_segment_id_t segment_id);
/// Writes the number of this rank's segments. (7.4.1)
gaspi_return_t gaspi_segment_num(gaspi_number_t* segment_num);
/// Writes the ids of this rank's segments, ascending, at most `num`, to `segment_id_list` [num]. (7.4.2)
gaspi_return_t gaspi_segment_list(gaspi_number_t num, gaspi_segment_id_t* segment_id_list);
/// Writes the address of this rank's segment in this process. (7.4.3)
gaspi_return_t gaspi_segment_ptr(gaspi_segment_id_t segment_id, gaspi_pointer_t* pointer);

/* ---- Transfers (8) ----
 * A transfer is a request in a queue: it returns before it is complete. `gaspi_wait` completes the queue's requests on
 * this rank: their local memory may be used again, and what was read is there. That data have arrived at the other rank
 * is known by a notification only. Requests of a queue have no order among each other, except that a notification of
 * `gaspi_notify` arrives after everything that was given to the same queue for the same rank before.
 *
 * Common to all: the segments exist and the remote one is registered with this rank (GASPI_ERR_INV_SEG); offset + size
 * lies within both (GASPI_ERR_INV_LOC_OFF, GASPI_ERR_INV_REM_OFF); size is 1 to `gaspi_transfer_size_max` bytes
 * (GASPI_ERR_INV_COMMSIZE); `queue` exists (GASPI_ERR_INV_QUEUE) and has free entries (GASPI_QUEUE_FULL); `rank` exists
 * (GASPI_ERR_INV_RANK) and is healthy and connected (GASPI_ERROR). Data need no alignment. Ranks may be the caller's
 * own. Reads of host memory of other nodes, and transfers with memory of the program (`gaspi_segment_bind`), return
 * when the data are there. Other transfers do not wait for their data; to another node they wait, within their
 * time-out, while hundreds of requests of the queue are on their way. A list is refused as a whole, or begun as a
 * whole. */

/// Writes `size` bytes of a local segment to a segment of `rank`. One entry of the queue. (8.2.1)
gaspi_return_t gaspi_write(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local, gaspi_rank_t rank,
                           gaspi_segment_id_t segment_id_remote, gaspi_offset_t offset_remote, gaspi_size_t size,
                           gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms);
/// Reads `size` bytes from a segment of `rank` into a local segment. One entry. (8.2.2)
gaspi_return_t gaspi_read(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local, gaspi_rank_t rank,
                          gaspi_segment_id_t segment_id_remote, gaspi_offset_t offset_remote, gaspi_size_t size,
                          gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms);
/// Waits until the queue's requests are complete on this rank; the queue is empty then. GASPI_ERROR if a rank that they
/// need has failed: `gaspi_queue_purge` makes the queue usable again. (8.2.3)
gaspi_return_t gaspi_wait(gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms);

/// Sets a notification of a segment of `rank`, after everything that was given to this queue for `rank` before has
/// arrived there. One entry.
///   notification_id     below `gaspi_notification_num` (GASPI_ERR_INV_NOTIF_ID)
///   notification_value  not 0 (GASPI_ERR_INV_NOTIF_VAL)
/// (8.3.2)
gaspi_return_t gaspi_notify(gaspi_segment_id_t segment_id_remote, gaspi_rank_t rank,
                            gaspi_notification_id_t notification_id, gaspi_notification_t notification_value,
                            gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms);
/// Waits until one of the local segment's notifications `notification_begin` to `notification_begin` + `num` - 1 is
/// set, and writes its id to `first_id`; what it announces is visible then. With `num` 0 nothing is waited for. Several
/// threads may wait for the same notifications; `gaspi_notify_reset` gives the value to one of them. (8.3.3)
gaspi_return_t gaspi_notify_waitsome(gaspi_segment_id_t segment_id_local, gaspi_notification_id_t notification_begin,
                                     gaspi_number_t num, gaspi_notification_id_t* first_id, gaspi_timeout_t timeout_ms);
/// Sets a local notification to 0, and writes its value before to `old_notification_value`, in one atomic operation.
/// (8.3.4)
gaspi_return_t gaspi_notify_reset(gaspi_segment_id_t segment_id_local, gaspi_notification_id_t notification_id,
                                  gaspi_notification_t* old_notification_value);

/// `gaspi_write` with a notification of the remote segment that is set after these data, but not after earlier
/// requests. Two entries. (8.4.1)
gaspi_return_t gaspi_write_notify(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local, gaspi_rank_t rank,
                                  gaspi_segment_id_t segment_id_remote, gaspi_offset_t offset_remote, gaspi_size_t size,
                                  gaspi_notification_id_t notification_id, gaspi_notification_t notification_value,
                                  gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms);
/// `num` writes to one rank. The arrays [num] are read before the call returns. Either all are posted or none. `num`
/// entries.
///   num  1 to `gaspi_rw_list_elem_max` (GASPI_ERR_INV_NUM)
/// (8.4.2)
gaspi_return_t gaspi_write_list(gaspi_number_t num, const gaspi_segment_id_t* segment_id_local,
                                const gaspi_offset_t* offset_local, gaspi_rank_t rank,
                                const gaspi_segment_id_t* segment_id_remote, const gaspi_offset_t* offset_remote,
                                const gaspi_size_t* size, gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms);
/// `gaspi_write_list` with a notification, of any segment of `rank`, that is set after the data of the list. `num` + 1
/// entries. (8.4.3, with the segment that the standard's Fortran interface has)
gaspi_return_t gaspi_write_list_notify(gaspi_number_t num, const gaspi_segment_id_t* segment_id_local,
                                       const gaspi_offset_t* offset_local, gaspi_rank_t rank,
                                       const gaspi_segment_id_t* segment_id_remote, const gaspi_offset_t* offset_remote,
                                       const gaspi_size_t* size, gaspi_segment_id_t segment_id_notification,
                                       gaspi_notification_id_t notification_id, gaspi_notification_t notification_value,
                                       gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms);
/// `gaspi_read` with a notification of the local segment `segment_id_local`, of value 1, that is set when these data
/// are there. Two entries. (8.4.4)
gaspi_return_t gaspi_read_notify(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local, gaspi_rank_t rank,
                                 gaspi_segment_id_t segment_id_remote, gaspi_offset_t offset_remote, gaspi_size_t size,
                                 gaspi_notification_id_t notification_id, gaspi_queue_id_t queue,
                                 gaspi_timeout_t timeout_ms);
/// `num` reads from one rank; otherwise as `gaspi_write_list`. (8.4.5)
gaspi_return_t gaspi_read_list(gaspi_number_t num, const gaspi_segment_id_t* segment_id_local,
                               const gaspi_offset_t* offset_local, gaspi_rank_t rank,
                               const gaspi_segment_id_t* segment_id_remote, const gaspi_offset_t* offset_remote,
                               const gaspi_size_t* size, gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms);
/// `gaspi_read_list` with a notification of a local segment, of value 1, that is set when the data of the list are
/// there. `num` + 1 entries.
gaspi_return_t gaspi_read_list_notify(gaspi_number_t num, const gaspi_segment_id_t* segment_id_local,
                                      const gaspi_offset_t* offset_local, gaspi_rank_t rank,
                                      const gaspi_segment_id_t* segment_id_remote, const gaspi_offset_t* offset_remote,
                                      const gaspi_size_t* size, gaspi_segment_id_t segment_id_notification,
                                      gaspi_notification_id_t notification_id, gaspi_queue_id_t queue,
                                      gaspi_timeout_t timeout_ms);

/// Makes a queue. GASPI_ERROR if there are `gaspi_queue_max` queues. (8.5.1)
gaspi_return_t gaspi_queue_create(gaspi_queue_id_t* queue, gaspi_timeout_t timeout_ms);
/// Deletes a queue that is empty. GASPI_ERROR if it has requests. (8.5.2)
gaspi_return_t gaspi_queue_delete(gaspi_queue_id_t queue);
/// Writes the number of entries since the last `gaspi_wait`. Does not block. (8.5.3)
gaspi_return_t gaspi_queue_size(gaspi_queue_id_t queue, gaspi_number_t* queue_size);
/// Empties a queue after a failure; whether its requests have arrived is unknown. (8.5.4)
gaspi_return_t gaspi_queue_purge(gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms);

/* ---- Passive communication (9): messages to a rank that sleeps until one comes. ---- */

/// Sends `size` bytes of a local segment to `rank`. Returns GASPI_SUCCESS when a `gaspi_passive_receive` has taken
/// them.
///   size  1 to `gaspi_passive_transfer_size_max` bytes (GASPI_ERR_INV_COMMSIZE)
/// After GASPI_TIMEOUT call it again with the same arguments. (9.2.1)
gaspi_return_t gaspi_passive_send(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local, gaspi_rank_t rank,
                                  gaspi_size_t size, gaspi_timeout_t timeout_ms);
/// Receives a message of any rank, and writes the sender to `rank`. While it waits it takes at most 1 % of a core.
///   size  bytes from `offset_local` on. A longer message returns GASPI_ERR_INV_SIZE, and stays for the next call
/// (9.2.2)
gaspi_return_t gaspi_passive_receive(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local,
                                     gaspi_rank_t* rank, gaspi_size_t size, gaspi_timeout_t timeout_ms);
/// Drops this rank's messages that no rank has taken, after a failure. (9.3.1)
gaspi_return_t gaspi_passive_queue_purge(gaspi_timeout_t timeout_ms);

/* ---- Atomics (10), on 8 bytes at an offset that is a multiple of 8 (GASPI_ERR_UNALIGN_OFF). Atomic among functions of
 * GASPI. The operation is done once, also if the call is repeated after GASPI_TIMEOUT. GASPI_ERROR if ranks were lost
 * while a rank of another node carried the operation out: then it is not known whether it was done. GASPI_ERR_DEVICE
 * for GPU memory. On memory of another rank's program (`gaspi_segment_bind`) in the same node the other process does
 * the operation, which takes up to 10 ms. ---- */

/// Adds `value_add` to the value on `rank`, and writes the value before to `value_old`. (10.2.1)
gaspi_return_t gaspi_atomic_fetch_add(gaspi_segment_id_t segment_id, gaspi_offset_t offset, gaspi_rank_t rank,
                                      gaspi_atomic_value_t value_add, gaspi_atomic_value_t* value_old,
                                      gaspi_timeout_t timeout_ms);
/// Sets the value on `rank` to `value_new` if it equals `comparator`; writes the value before to `value_old`. (10.2.2)
gaspi_return_t gaspi_atomic_compare_swap(gaspi_segment_id_t segment_id, gaspi_offset_t offset, gaspi_rank_t rank,
                                         gaspi_atomic_value_t comparator, gaspi_atomic_value_t value_new,
                                         gaspi_atomic_value_t* value_old, gaspi_timeout_t timeout_ms);

/* ---- Collective calls (11), of all members of a committed group in the same order. For each group one barrier and one
 * reduction at a time; a second one returns GASPI_ERR_ACTIVE_COLL. ---- */

/// Waits until all members of the group have called it. It does not complete queues. (11.2.1)
gaspi_return_t gaspi_barrier(gaspi_group_t group, gaspi_timeout_t timeout_ms);
/// Combines the members' vectors, element by element, in the order of ranks; all members get the same bits.
///   buffer_send     [num], any memory of the host or the rank's GPU, read in the first call
///   buffer_receive  [num], likewise, may be `buffer_send`
///   num             1 to `gaspi_allreduce_elem_max` (GASPI_ERR_INV_NUM)
/// GASPI_ERROR on all members, without a result, if their calls differ in number, type, or operation. (11.3.1)
gaspi_return_t gaspi_allreduce(gaspi_const_pointer_t buffer_send, gaspi_pointer_t buffer_receive, gaspi_number_t num,
                               gaspi_operation_t operation, gaspi_datatype_t datatype, gaspi_group_t group,
                               gaspi_timeout_t timeout_ms);
/// `gaspi_allreduce` by a function of the program; members' functions are not compared.
///   num, element_size  together at most `gaspi_allreduce_buf_size` bytes (GASPI_ERR_INV_SIZE)
///   reduce_state       passed to `reduce_operation`; may be null
/// (11.4.1)
gaspi_return_t gaspi_allreduce_user(gaspi_const_pointer_t buffer_send, gaspi_pointer_t buffer_receive,
                                    gaspi_number_t num, gaspi_size_t element_size,
                                    gaspi_reduce_operation_t reduce_operation, gaspi_reduce_state_t reduce_state,
                                    gaspi_group_t group, gaspi_timeout_t timeout_ms);

/* ---- Limits (12). They do not block. ---- */

gaspi_return_t gaspi_group_max(gaspi_number_t* group_max);                ///< groups, GASPI_GROUP_ALL among them
gaspi_return_t gaspi_segment_max(gaspi_number_t* segment_max);            ///< segments of a rank
gaspi_return_t gaspi_queue_num(gaspi_number_t* queue_num);                ///< queues that there are
gaspi_return_t gaspi_queue_size_max(gaspi_number_t* queue_size_max);      ///< entries of a queue
gaspi_return_t gaspi_queue_max(gaspi_number_t* queue_max);                ///< largest number of queues
gaspi_return_t gaspi_transfer_size_min(gaspi_size_t* transfer_size_min);  ///< bytes
gaspi_return_t gaspi_transfer_size_max(gaspi_size_t* transfer_size_max);  ///< bytes
gaspi_return_t gaspi_notification_num(gaspi_number_t* notification_num);  ///< notifications of a segment
gaspi_return_t gaspi_passive_transfer_size_min(gaspi_size_t* passive_transfer_size_min);  ///< bytes
gaspi_return_t gaspi_passive_transfer_size_max(gaspi_size_t* passive_transfer_size_max);  ///< bytes
gaspi_return_t gaspi_atomic_max(gaspi_atomic_value_t* max_value);   ///< largest value of an atomic
gaspi_return_t gaspi_allreduce_buf_size(gaspi_size_t* buf_size);    ///< bytes
gaspi_return_t gaspi_allreduce_elem_max(gaspi_number_t* elem_max);  ///< elements
gaspi_return_t gaspi_rw_list_elem_max(gaspi_number_t* elem_max);    ///< elements of a list
/// The network of the configuration, which Beeline does not use.
gaspi_return_t gaspi_network_type(gaspi_network_t* network_type);
gaspi_return_t gaspi_build_infrastructure(gaspi_number_t* build_infrastructure);  ///< GASPI_TOPOLOGY_...

/* ---- Environment (13). Any time. They do not block. ---- */

/// Writes the version of the standard: 17.1. (13.1.1)
gaspi_return_t gaspi_version(float* version);
/// Writes the milliseconds since `gaspi_proc_init`, or since the library was loaded. (13.2.1)
gaspi_return_t gaspi_time_get(gaspi_time_t* wtime);
/// Writes the processor's counter of cycles, as `gaspi_cpu_frequency` counts them. In C++, and in C by GCC and
/// Clang, a call with a gaspi_time_t* is `gaspi_time_resolution`, as in the standard.
gaspi_return_t gaspi_time_ticks(gaspi_cycles_t* ticks);
/// Writes the resolution of `gaspi_time_get` in milliseconds. (13.2.2, under the name `gaspi_time_ticks`)
gaspi_return_t gaspi_time_resolution(gaspi_time_t* resolution);
/// Writes a text for a result: memory of `malloc`, which the program frees. (13.3.2)
gaspi_return_t gaspi_print_error(gaspi_return_t error_code, gaspi_string_t* error_message);

/* ---- Statistics (14.1). Any time. They do not block. ---- */

/// Writes the number of counters: 0 to `counter_max` - 1. (14.1.1)
gaspi_return_t gaspi_statistic_counter_max(gaspi_number_t* counter_max);
/// Writes what a counter counts: the meaning of its argument, its name, a sentence (both valid until the program ends),
/// and the level from which on it counts. GASPI_ERROR if there is no such counter. (14.1.2)
gaspi_return_t gaspi_statistic_counter_info(gaspi_statistic_counter_t counter,
                                            gaspi_statistic_argument_t* counter_argument, gaspi_string_t* counter_name,
                                            gaspi_string_t* counter_description, gaspi_number_t* verbosity_level);
/// Sets the level: 0, the default, counts nothing. (14.1.3)
gaspi_return_t gaspi_statistic_verbosity_level(gaspi_number_t verbosity_level);
/// Writes a counter's value.
///   argument  a rank if the counter's argument is one; otherwise ignored
/// In C++, and in C by GCC and Clang, `value` may be a gaspi_number_t*, as in the standard. (14.1.4)
gaspi_return_t gaspi_statistic_counter_get(gaspi_statistic_counter_t counter, gaspi_number_t argument,
                                           unsigned long* value);
/// As `gaspi_statistic_counter_get`; a value beyond 2^32 - 1 is written as 2^32 - 1.
gaspi_return_t gaspi_statistic_counter_get_number(gaspi_statistic_counter_t counter, gaspi_number_t argument,
                                                  gaspi_number_t* value);
/// Sets a counter to 0, for all arguments. (14.1.5)
gaspi_return_t gaspi_statistic_counter_reset(gaspi_statistic_counter_t counter);
/// Does nothing: a place for profilers, which define it themselves. (14.2)
gaspi_return_t gaspi_pcontrol(gaspi_pointer_t argument);

GASPI_END

// Two functions have other types in the standard than in GPI-2. The type of the argument chooses.
#if defined(__cplusplus)
static inline gaspi_return_t gaspi_time_ticks(gaspi_time_t* resolution) { return gaspi_time_resolution(resolution); }
static inline gaspi_return_t gaspi_statistic_counter_get(gaspi_statistic_counter_t counter, gaspi_number_t argument,
                                                         gaspi_number_t* value) {
  return gaspi_statistic_counter_get_number(counter, argument, value);
}
#elif defined(__GNUC__)
#define gaspi_time_ticks(out) \
  (__extension__ _Generic((out), gaspi_time_t * : gaspi_time_resolution, default : gaspi_time_ticks)(out))
#define gaspi_statistic_counter_get(counter, argument, value)           \
  (__extension__ _Generic((value), gaspi_number_t *                     \
                          : gaspi_statistic_counter_get_number, default \
                          : gaspi_statistic_counter_get)(counter, argument, value))
#endif

#endif
