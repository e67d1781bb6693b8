// SPDX-License-Identifier: Apache-2.0
// Segments: making, registration, deletion, and what is known of them.
#include <fmt/format.h>

#include <algorithm>

#include "gaspi/checks.hpp"
#include "gaspi/service.hpp"

using namespace beeline::gaspi;

namespace {

constexpr gaspi_alloc_t known_policies = GASPI_MEM_INITIALIZED | GASPI_MEM_GPU | GASPI_MEM_GPU_FLAGS;

void require_id(std::uint32_t id) {
  if (id >= configuration().segment_max)
    refuse(GASPI_ERR_INV_SEG, fmt::format("segment {}: ids are 0 to {}", id, configuration().segment_max - 1));
}

Part own_part(const Process& process, gaspi_segment_id_t id) {
  require_id(id);
  const Part part = process.segments().part(id, process.rank());
  if (part.kind == Memory::none) refuse(GASPI_ERR_INV_SEG, fmt::format("this rank has no segment {}", id));
  return part;
}

void require_free(const Process& process, std::uint32_t id) {
  require_id(id);
  if (process.segments().part(id, process.rank()).kind != Memory::none)
    refuse(GASPI_ERR_INV_SEG, fmt::format("segment {} exists", id));
}

void require_bytes(gaspi_size_t bytes) {
  constexpr gaspi_size_t most = gaspi_size_t{1} << 46;
  if (bytes == 0 || bytes > most)
    refuse(GASPI_ERR_INV_SEGSIZE, fmt::format("a size of {} bytes: it is 1 to 2^46", bytes));
}

Memory kind_of(const Process& process, bool on_gpu) {
  if (on_gpu && !process.has_gpu()) refuse(GASPI_ERR_DEVICE, "GPU memory, and this rank has no GPU");
  return on_gpu ? Memory::device : Memory::host;
}

/// A request for new memory, checked.
Request new_memory(const Process& process, gaspi_segment_id_t id, gaspi_size_t bytes, gaspi_alloc_t policy) {
  require_bytes(bytes);
  if ((policy & ~known_policies) != 0)
    refuse(GASPI_ERROR, fmt::format("alloc_policy {:#x} has bits that are not known", policy));
  const Memory kind = kind_of(process, (policy & GASPI_MEM_GPU) != 0);
  const bool has_flags_on_device = (policy & GASPI_MEM_GPU_FLAGS) != 0;
  if (has_flags_on_device) static_cast<void>(kind_of(process, true));
  return {
      .action = Action::allocate, .id = id, .bytes = bytes, .kind = kind, .has_flags_on_device = has_flags_on_device};
}

/// A request for memory of the program, checked.
Request existing_memory(const Process& process, gaspi_segment_id_t id, gaspi_pointer_t pointer, gaspi_size_t bytes,
                        gaspi_memory_description_t description) {
  require_pointer(pointer, "pointer");
  require_bytes(bytes);
  if (description != GASPI_MEMORY_HOST && description != GASPI_MEMORY_GPU)
    refuse(GASPI_ERROR, fmt::format("memory_description {} is not known", description));
  return {.action = Action::allocate,
          .id = id,
          .bytes = bytes,
          .kind = kind_of(process, description == GASPI_MEMORY_GPU),
          .existing = pointer};
}

/// A request for GPU memory of the program, checked.
Request mapped_memory(const Process& process, gaspi_segment_id_t id, gaspi_pointer_t pointer, gaspi_size_t bytes,
                      gaspi_alloc_t policy) {
  Request request = existing_memory(process, id, pointer, bytes, GASPI_MEMORY_GPU);
  if ((policy & ~gaspi_alloc_t{GASPI_MEM_GPU | GASPI_MEM_GPU_FLAGS}) != 0)
    refuse(GASPI_ERROR, fmt::format("alloc_policy {:#x}: of memory that exists, only the place of its notifications is "
                                    "chosen",
                                    policy));
  request.has_flags_on_device = (policy & GASPI_MEM_GPU_FLAGS) != 0;
  return request;
}

Result make_here(Process& process, const Request& request) {
  require_free(process, request.id);
  return process.service().perform(request, {.what = "the memory of segment", .number = request.id}, block_ms);
}

Result make_in(Process& process, Request request, gaspi_group_t group, gaspi_timeout_t timeout_ms) {
  const std::shared_ptr<Group> among = process.groups().find(group);
  if (among == nullptr || among->state != Group::State::committed)
    refuse(GASPI_ERR_INV_GROUP, fmt::format("there is no committed group {}", group));
  if (!process.service().is_pending(Action::create, request.id)) require_free(process, request.id);
  request.action = Action::create;
  request.ranks = among->ranks;
  return process.service().perform(
      request, {.what = "the other members' calls for segment", .number = request.id, .needed = among->ranks},
      timeout_ms);
}

}  // namespace

extern "C" gaspi_return_t pgaspi_segment_alloc(gaspi_segment_id_t segment_id, gaspi_size_t size,
                                               gaspi_alloc_t alloc_policy) {
  return call("gaspi_segment_alloc", [&](Process& process) {
    return make_here(process, new_memory(process, segment_id, size, alloc_policy));
  });
}

extern "C" gaspi_return_t pgaspi_segment_bind(gaspi_segment_id_t segment_id, gaspi_pointer_t pointer, gaspi_size_t size,
                                              gaspi_memory_description_t memory_description) {
  return call("gaspi_segment_bind", [&](Process& process) {
    return make_here(process, existing_memory(process, segment_id, pointer, size, memory_description));
  });
}

extern "C" gaspi_return_t pgaspi_segment_register(gaspi_segment_id_t segment_id, gaspi_rank_t rank,
                                                  gaspi_timeout_t timeout_ms) {
  return call("gaspi_segment_register", [&](Process& process) {
    static_cast<void>(own_part(process, segment_id));
    require_rank(process, rank);
    const int needed[] = {rank};
    return process.service().perform(
        {.action = Action::announce, .id = segment_id, .ranks = {rank}},
        {.what = "the registration of a segment with rank", .number = rank, .needed = needed}, timeout_ms);
  });
}

extern "C" gaspi_return_t pgaspi_segment_create(gaspi_segment_id_t segment_id, gaspi_size_t size, gaspi_group_t group,
                                                gaspi_timeout_t timeout_ms, gaspi_alloc_t alloc_policy) {
  return call("gaspi_segment_create", [&](Process& process) {
    const Request request = new_memory(process, segment_id, size, alloc_policy);
    return make_in(process, request, group, timeout_ms);
  });
}

extern "C" gaspi_return_t pgaspi_segment_use(gaspi_segment_id_t segment_id, gaspi_pointer_t pointer, gaspi_size_t size,
                                             gaspi_group_t group, gaspi_timeout_t timeout_ms,
                                             gaspi_memory_description_t memory_description) {
  return call("gaspi_segment_use", [&](Process& process) {
    const Request request = existing_memory(process, segment_id, pointer, size, memory_description);
    return make_in(process, request, group, timeout_ms);
  });
}

extern "C" gaspi_return_t pgaspi_map_create(gaspi_segment_id_t segment_id, gaspi_pointer_t pointer, gaspi_size_t size,
                                            gaspi_group_t group, gaspi_timeout_t timeout_ms,
                                            gaspi_alloc_t alloc_policy) {
  return call("gaspi_map_create", [&](Process& process) {
    const Request request = mapped_memory(process, segment_id, pointer, size, alloc_policy);
    return make_in(process, request, group, timeout_ms);
  });
}

extern "C" gaspi_return_t pgaspi_map_seg(gaspi_segment_id_t segment_id, gaspi_pointer_t pointer, gaspi_size_t size,
                                         gaspi_alloc_t alloc_policy) {
  return call("gaspi_map_seg", [&](Process& process) {
    return make_here(process, mapped_memory(process, segment_id, pointer, size, alloc_policy));
  });
}

extern "C" gaspi_return_t pgaspi_segment_delete(gaspi_segment_id_t segment_id) {
  return call("gaspi_segment_delete", [&](Process& process) {
    static_cast<void>(own_part(process, segment_id));
    return process.service().perform({.action = Action::remove, .id = segment_id},
                                     {.what = "the deletion of segment", .number = segment_id}, block_ms);
  });
}

extern "C" gaspi_return_t pgaspi_segment_ptr(gaspi_segment_id_t segment_id, gaspi_pointer_t* pointer) {
  return call("gaspi_segment_ptr", [&](const Process& process) {
    require_pointer(pointer, "pointer");
    *pointer = own_part(process, segment_id).address;
  });
}

extern "C" gaspi_return_t pgaspi_segment_num(gaspi_number_t* segment_num) {
  return call("gaspi_segment_num", [&](const Process& process) {
    require_pointer(segment_num, "segment_num");
    gaspi_number_t count = 0;
    for (std::uint32_t id = 0; id < segment_ids; ++id)
      if (process.segments().part(id, process.rank()).kind != Memory::none) ++count;
    *segment_num = count;
  });
}

extern "C" gaspi_return_t pgaspi_segment_list(gaspi_number_t num, gaspi_segment_id_t* segment_id_list) {
  return call("gaspi_segment_list", [&](const Process& process) {
    if (num != 0) require_pointer(segment_id_list, "segment_id_list");
    gaspi_number_t count = 0;
    for (std::uint32_t id = 0; id < segment_ids && count < num; ++id)
      if (process.segments().part(id, process.rank()).kind != Memory::none)
        segment_id_list[count++] = static_cast<gaspi_segment_id_t>(id);
  });
}

extern "C" gaspi_return_t pgaspi_segment_avail_local(gaspi_segment_id_t* avail_seg_id) {
  return call("gaspi_segment_avail_local", [&](const Process& process) {
    require_pointer(avail_seg_id, "avail_seg_id");
    for (std::uint32_t id = 0; id < configuration().segment_max; ++id) {
      if (process.segments().part(id, process.rank()).kind != Memory::none) continue;
      *avail_seg_id = static_cast<gaspi_segment_id_t>(id);
      return;
    }
    refuse(GASPI_ERR_MANY_SEG, fmt::format("all {} ids are in use", configuration().segment_max));
  });
}

extern "C" gaspi_return_t pgaspi_segment_size(gaspi_segment_id_t segment_id, gaspi_rank_t rank, gaspi_size_t* size) {
  return call("gaspi_segment_size", [&](const Process& process) {
    require_pointer(size, "size");
    require_rank(process, rank);
    const Part part = process.segments().part(segment_id, rank);
    if (part.kind == Memory::none || !part.is_for_me)
      refuse(GASPI_ERR_INV_SEG,
             fmt::format("rank {} has no segment {} that is registered with this rank", rank, segment_id));
    *size = part.bytes;
  });
}

extern "C" gaspi_return_t pgaspi_segment_max(gaspi_number_t* segment_max) {
  return answer_by("gaspi_segment_max", segment_max, "segment_max",
                   [](const Process&) { return configuration().segment_max; });
}

GASPI_EXPORT(segment_alloc);
GASPI_EXPORT(segment_bind);
GASPI_EXPORT(segment_register);
GASPI_EXPORT(segment_create);
GASPI_EXPORT(segment_use);
GASPI_EXPORT(map_create);
GASPI_EXPORT(map_seg);
GASPI_EXPORT(segment_delete);
GASPI_EXPORT(segment_ptr);
GASPI_EXPORT(segment_num);
GASPI_EXPORT(segment_list);
GASPI_EXPORT(segment_avail_local);
GASPI_EXPORT(segment_size);
GASPI_EXPORT(segment_max);
