// SPDX-License-Identifier: Apache-2.0
/// @file
/// Threads of a rank, by the names that programs for GPI-2 call. New programs use threads of their own: any thread may
/// call the functions of GASPI.h. Conventions are those of GASPI.h; the functions may be called at any time, and
/// GASPI_ERROR is returned if there is no set of threads, or for a second one.
#ifndef GASPI_THREADS_H
#define GASPI_THREADS_H

#include "GASPI.h"

GASPI_BEGIN

/// Prepares a set of as many threads as the process has processors, and writes their number. The calling thread is one
/// of them; the others start by `gaspi_threads_run`.
gaspi_return_t gaspi_threads_init(gaspi_int* num);
/// As `gaspi_threads_init`, with a number of threads, at least 1 (GASPI_ERR_INV_NUM).
gaspi_return_t gaspi_threads_init_user(unsigned int use_nr_of_threads);
/// Waits until the threads of `gaspi_threads_run` have returned, and ends the set. GASPI_ERROR if one of them calls it.
gaspi_return_t gaspi_threads_term(void);
/// Starts a thread with `function(arg)`. GASPI_ERROR if the set's number is reached.
gaspi_return_t gaspi_threads_run(void* (*function)(void*), void* arg);
/// Makes the calling thread a member of the set, and writes its number, from 0 on in the order of the calls.
/// GASPI_ERROR if it is a member, or the set's number is reached.
gaspi_return_t gaspi_threads_register(gaspi_int* tid);
/// Writes the calling thread's number. GASPI_ERROR if it is no member.
gaspi_return_t gaspi_threads_get_tid(gaspi_int* tid);
/// Writes the number of threads of the set.
gaspi_return_t gaspi_threads_get_total(gaspi_int* num);
/// Writes the number of processors on which the process may run.
gaspi_return_t gaspi_threads_get_num_cores(gaspi_int* cores);
/// Waits until all threads of the set have called it. Only members wait: for others it writes a line to the log.
void gaspi_threads_sync(void);
/// As `gaspi_threads_sync`; one of the threads then calls `gaspi_barrier(group, timeout_ms)`, whose result all return.
gaspi_return_t gaspi_threads_sync_all(gaspi_group_t group, gaspi_timeout_t timeout_ms);

GASPI_END

#endif
