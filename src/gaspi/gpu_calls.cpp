// SPDX-License-Identifier: Apache-2.0
// The GPU extension's functions (GASPI_GPU.h), except those that make segments.
#include <algorithm>
#include <cstring>

#include "gaspi/gpu.hpp"
#include "gaspi/moves.hpp"
#include "gaspi/statistics.hpp"

namespace beeline::gaspi {

namespace {

gaspi_return_t init(const char* function) noexcept {
  return call(function, [](Process& process) {
    if (!process.has_gpu())
      throw Failure("this rank runs on a CPU; the launcher's --device, or BEELINE_DEVICE, gives it a GPU");
    gpu(process).make_ready();
  });
}

void require_ready(const Process& process) {
  if (!gpu(process).is_ready()) throw Failure("before gaspi_gpu_init");
}

gaspi_return_t write_id(const char* function, int* id) noexcept {
  return call(function, [&](Process& process) {
    require_pointer(id, "gpu_ids");
    require_ready(process);
    *id = gpu(process).device();
  });
}

template <class Number>
gaspi_return_t write_number(const char* function, Number* number) noexcept {
  return call(function, [&](Process& process) {
    require_pointer(number, "num_gpus");
    require_ready(process);
    *number = 1;
  });
}

/// A notification that follows the data.
struct Announced {
  gaspi_notification_id_t id;
  gaspi_notification_t value;
};

/// A write by the hybrid method, and its notification if there is one.
gaspi_return_t write(const char* function, const Named& named, gaspi_rank_t rank, gaspi_queue_id_t number,
                     gaspi_timeout_t timeout_ms, const Announced* announced) noexcept {
  return call(function, [&](Process& process) {
    require_peer(process, rank);
    Queue& queue = queues().get(number);
    const UseOfBoth use(named.segment_local, named.segment_remote);
    const Move move(process, named, rank);
    Flag flag{};
    if (announced != nullptr) flag = require_flag(move.remote, announced->id, announced->value);
    const std::uint32_t entries = announced == nullptr ? 1 : 2;
    if (!queue.has_room(entries)) return GASPI_QUEUE_FULL;
    Post post(process, queue, rank, entries, timeout_ms);
    beeline_hybrid* const hybrid = gpu(process).hybrid_of(number);
    count_write(rank, move.bytes);
    if (announced == nullptr) return post.write(move, hybrid) ? GASPI_SUCCESS : GASPI_TIMEOUT;
    count(Counter::notifications);
    return post.write_notify(move, flag, announced->value, hybrid) ? GASPI_SUCCESS : GASPI_TIMEOUT;
  });
}

}  // namespace

}  // namespace beeline::gaspi

using namespace beeline::gaspi;

gaspi_return_t pgaspi_gpu_init(void) { return init("gaspi_gpu_init"); }
gaspi_return_t pgaspi_init_GPUs(void) { return init("gaspi_init_GPUs"); }
gaspi_return_t pgaspi_gpu_ids(gaspi_gpu_id_t* gpu_ids) { return write_id("gaspi_gpu_ids", gpu_ids); }
gaspi_return_t pgaspi_GPU_ids(gaspi_gpu_t* gpu_ids) { return write_id("gaspi_GPU_ids", gpu_ids); }
gaspi_return_t pgaspi_gpu_number(gaspi_number_t* num_gpus) { return write_number("gaspi_gpu_number", num_gpus); }
gaspi_return_t pgaspi_number_of_GPUs(gaspi_gpu_num* num_gpus) { return write_number("gaspi_number_of_GPUs", num_gpus); }
GASPI_EXPORT(gpu_init);
GASPI_EXPORT(init_GPUs);
GASPI_EXPORT(gpu_ids);
GASPI_EXPORT(GPU_ids);
GASPI_EXPORT(gpu_number);
GASPI_EXPORT(number_of_GPUs);

gaspi_return_t pgaspi_gpu_write(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local, gaspi_rank_t rank,
                                gaspi_segment_id_t segment_id_remote, gaspi_offset_t offset_remote, gaspi_size_t size,
                                gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms) {
  return write("gaspi_gpu_write", {segment_id_local, offset_local, segment_id_remote, offset_remote, size}, rank, queue,
               timeout_ms, nullptr);
}
GASPI_EXPORT(gpu_write);

gaspi_return_t pgaspi_gpu_write_notify(gaspi_segment_id_t segment_id_local, gaspi_offset_t offset_local,
                                       gaspi_rank_t rank, gaspi_segment_id_t segment_id_remote,
                                       gaspi_offset_t offset_remote, gaspi_size_t size,
                                       gaspi_notification_id_t notification_id, gaspi_notification_t notification_value,
                                       gaspi_queue_id_t queue, gaspi_timeout_t timeout_ms) {
  const Announced announced{notification_id, notification_value};
  return write("gaspi_gpu_write_notify", {segment_id_local, offset_local, segment_id_remote, offset_remote, size}, rank,
               queue, timeout_ms, &announced);
}
GASPI_EXPORT(gpu_write_notify);

gaspi_return_t pgaspi_gpu_hybrid_set(gaspi_size_t threshold, gaspi_size_t chunk) {
  return call("gaspi_gpu_hybrid_set", [&](Process& process) { gpu(process).set_hybrid(threshold, chunk); });
}
GASPI_EXPORT(gpu_hybrid_set);

gaspi_return_t pgaspi_gpu_endpoint(gaspi_pointer_t endpoint, gaspi_size_t size) {
  return call("gaspi_gpu_endpoint", [&](Process& process) {
    require_pointer(endpoint, "endpoint");
    if (size != sizeof(Endpoint))
      refuse(GASPI_ERR_INV_SIZE, fmt::format("an endpoint of {} bytes, here it has {}: the program was compiled with "
                                             "another version of beeline/gaspi/device.hpp",
                                             size, sizeof(Endpoint)));
    const Endpoint made = gpu(process).endpoint(process, std::clamp(queues().count(), 2u, most_queues));
    std::memcpy(endpoint, static_cast<const void*>(&made), sizeof made);
  });
}
GASPI_EXPORT(gpu_endpoint);
