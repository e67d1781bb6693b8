// SPDX-License-Identifier: Apache-2.0
/// @file
/// GASPI with GPU segments (Oden 2018, section 4.3): memory of GPUs as segments (GASPI_MEM_GPU), and transfers between
/// them. Conventions are those of GASPI.h; there, all functions take GPU segments, too. Kernels communicate by
/// beeline/gaspi/device.hpp.
#ifndef GASPI_GPU_H
#define GASPI_GPU_H

#include "GASPI.h"

GASPI_BEGIN

typedef int gaspi_gpu_t;     ///< CUDA's number of a GPU in this process
typedef int gaspi_gpu_id_t;  ///< CUDA's number of a GPU in this process
typedef int gaspi_gpu_num;   ///< a number of GPUs

/// Prepares this rank's GPU for GPU segments. A rank has at most one GPU, which the launcher chooses. GASPI_ERROR if it
/// has none. A second call does nothing. Also as `gaspi_init_GPUs`.
gaspi_return_t gaspi_gpu_init(void);
gaspi_return_t gaspi_init_GPUs(void);
/// Writes the numbers of this rank's GPUs to `gpu_ids` [`gaspi_gpu_number`]. GASPI_ERROR before `gaspi_gpu_init`. Also
/// as `gaspi_GPU_ids`.
gaspi_return_t gaspi_gpu_ids(gaspi_gpu_id_t* gpu_ids);
gaspi_return_t gaspi_GPU_ids(gaspi_gpu_t* gpu_ids);
/// Writes the number of this rank's GPUs. GASPI_ERROR before `gaspi_gpu_init`. Also as `gaspi_number_of_GPUs`.
gaspi_return_t gaspi_gpu_number(gaspi_number_t* num_gpus);
gaspi_return_t gaspi_number_of_GPUs(gaspi_gpu_num* num_gpus);

/// `gaspi_write` by the hybrid method: up to a threshold directly, above it in chunks through host memory of this rank
/// where that is faster (docs/hybrid.md). On the queue's stream; one entry of the queue.
gaspi_return_t gaspi_gpu_write(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local, gaspi_rank_t rank,
                               gaspi_segment_id_t segment_id_remote, gaspi_offset_t offset_remote, gaspi_size_t size,
                               gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms);
/// `gaspi_gpu_write` with a notification of the remote segment, as `gaspi_write_notify`. Two entries.
gaspi_return_t gaspi_gpu_write_notify(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local,
                                      gaspi_rank_t rank, gaspi_segment_id_t segment_id_remote,
                                      gaspi_offset_t offset_remote, gaspi_size_t size,
                                      gaspi_notification_id_t notification_id, gaspi_notification_t notification_value,
                                      gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms);
/// Sets the hybrid method's threshold and chunk, in bytes, for this rank's later transfers; 0: as the library chooses.
/// GASPI_ERR_INV_SIZE for a chunk larger than the buffers.
gaspi_return_t gaspi_gpu_hybrid_set(gaspi_size_t threshold, gaspi_size_t chunk);

/// Makes `size` bytes of GPU memory at `pointer` a segment, registered with all members of `group`: memory of
/// cudaMalloc, torch or CuPy, which lives until `gaspi_segment_delete`. Collective over the group.
///   alloc_policy  GASPI_MEM_GPU_FLAGS or 0
gaspi_return_t gaspi_map_create(gaspi_segment_id_t segment_id, gaspi_pointer_t pointer, gaspi_size_t size,
                                gaspi_group_t group, gaspi_timeout_t timeout_ms, gaspi_alloc_t alloc_policy);
/// As `gaspi_map_create`, registered with no other rank. Local.
gaspi_return_t gaspi_map_seg(gaspi_segment_id_t segment_id, gaspi_pointer_t pointer, gaspi_size_t size,
                             gaspi_alloc_t alloc_policy);

/// Writes the endpoint of this rank's kernels, a beeline::gaspi::Endpoint (beeline/gaspi/device.hpp), to `endpoint`.
/// Kernels see the segments of this call: call it again after segments were made, registered or deleted, while no
/// kernel communicates. On a rank without a GPU it is for functions of that header on CPU threads. Local.
///   size  sizeof(beeline::gaspi::Endpoint). GASPI_ERR_INV_SIZE for a program compiled with another version
gaspi_return_t gaspi_gpu_endpoint(gaspi_pointer_t endpoint, gaspi_size_t size);

GASPI_END

#endif
