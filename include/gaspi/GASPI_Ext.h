// SPDX-License-Identifier: Apache-2.0
/// @file
/// Functions beside the standard, by the names that programs for GPI-2 call. Conventions are those of GASPI.h.
#ifndef GASPI_EXT_H
#define GASPI_EXT_H

#include "GASPI.h"

#if defined(__GNUC__)
#define GASPI_FORMAT(text, values) __attribute__((__format__(__printf__, text, values)))
#else
#define GASPI_FORMAT(text, values)
#endif

GASPI_BEGIN

/// Writes 1 between `gaspi_proc_init` and `gaspi_proc_term`, otherwise 0. Any time.
gaspi_return_t gaspi_initialized(gaspi_number_t* initialized);
/// Writes the calling rank's number among the ranks of its node, from 0 on.
gaspi_return_t gaspi_proc_local_rank(gaspi_rank_t* local_rank);
/// Writes the number of ranks of the calling rank's node.
gaspi_return_t gaspi_proc_local_num(gaspi_rank_t* local_num);
/// Asks whether a rank's process answers. GASPI_ERROR if it has failed.
gaspi_return_t gaspi_proc_ping(gaspi_rank_t rank, gaspi_timeout_t timeout_ms);

/// Writes an id that no segment of this rank has. GASPI_ERR_MANY_SEG if there is none.
gaspi_return_t gaspi_segment_avail_local(gaspi_segment_id_t* avail_seg_id);
/// Writes the bytes of a segment of `rank` that is registered with this rank.
gaspi_return_t gaspi_segment_size(gaspi_segment_id_t segment_id, gaspi_rank_t rank, gaspi_size_t* size);

/// Writes the megahertz in which `gaspi_time_ticks` counts. The first call may take 10 ms. Any time.
gaspi_return_t gaspi_cpu_frequency(gaspi_float* cpu_mhz);
/// Prints to standard output, after `[rank] `, in one piece; if `format` is null, a line to the log. Any time.
void gaspi_printf(const char* format, ...) GASPI_FORMAT(1, 2);
/// As `gaspi_printf`. The launcher collects the output of all ranks, so `rank` is ignored. Any time.
void gaspi_printf_to(gaspi_rank_t rank, const char* format, ...) GASPI_FORMAT(2, 3);
/// Prints the processors on which the calling thread may run, to standard output. Any time.
void gaspi_print_affinity_mask(void);
/// Writes the socket that holds all processors of the calling thread's mask. GASPI_ERROR if there is no single one. Any
/// time.
gaspi_return_t gaspi_numa_socket(gaspi_uchar* socket);
/// Lets the calling thread run on the processors of a socket only. GASPI_ERROR if there is no such socket. Any time.
gaspi_return_t gaspi_set_socket_affinity(gaspi_uchar socket);
/// The text of a result, which lives until the program ends. Any time.
gaspi_string_t gaspi_error_str(gaspi_return_t error_code);

GASPI_END

#endif
