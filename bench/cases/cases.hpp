// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Every case of the primitives (transfers, signals, atomics, barriers), a file for each way of doing them;
/// `primitive_cases` lists them.

#include <vector>

#include "harness/measurement.hpp"

namespace beeline::bench {

[[nodiscard]] Case packet_latency();
[[nodiscard]] Case ll128_latency();
[[nodiscard]] Case put_signal_latency();
[[nodiscard]] Case stream_copy_latency();
[[nodiscard]] Case host_copy_latency();
[[nodiscard]] Case staged_latency(bool pipelined);
[[nodiscard]] Case flag_latency();
[[nodiscard]] Case barrier_latency();

[[nodiscard]] Case packet_bandwidth();
[[nodiscard]] Case ll128_bandwidth();
[[nodiscard]] Case put_bandwidth();
[[nodiscard]] Case bulk_bandwidth();
[[nodiscard]] Case get_bandwidth();
[[nodiscard]] Case stream_copy_bandwidth();
[[nodiscard]] Case host_copy_bandwidth();
[[nodiscard]] Case staged_bandwidth(bool pipelined);

/// Messages in a loop inside a kernel, and on streams.
[[nodiscard]] Case send_receive_in_kernel();
[[nodiscard]] std::vector<Case> send_receive_latency();
[[nodiscard]] std::vector<Case> send_receive_bandwidth();

[[nodiscard]] Case put_signal_rate();
[[nodiscard]] Case packet_rate();
[[nodiscard]] Case fetch_add_latency();
[[nodiscard]] Case compare_swap_latency();
[[nodiscard]] Case random_update();
[[nodiscard]] Case random_store();

[[nodiscard]] Case write_latency();
[[nodiscard]] Case read_latency();
[[nodiscard]] Case store_by_threads();
[[nodiscard]] Case load_by_threads();
[[nodiscard]] Case store_by_stride();
[[nodiscard]] Case load_by_stride();
[[nodiscard]] Case bulk_copy();

[[nodiscard]] Case nvshmem_put_signal();
[[nodiscard]] Case nvshmem_signal();
[[nodiscard]] Case nvshmem_barrier();
[[nodiscard]] Case nvshmem_put();
[[nodiscard]] Case nvshmem_fetch_add();
[[nodiscard]] Case nvshmem_random_update();

[[nodiscard]] Case mpi_staged_latency();
[[nodiscard]] Case mpi_staged_bandwidth();
[[nodiscard]] Case mpi_staged_barrier();

/// All of the command; none of those of bench/collectives.
[[nodiscard]] std::vector<Case> primitive_cases(Command command);

}  // namespace beeline::bench
