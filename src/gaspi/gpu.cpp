// SPDX-License-Identifier: Apache-2.0
#include "gaspi/gpu.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "gaspi/call.hpp"
#include "gaspi/config.hpp"

namespace beeline::gaspi {

namespace {

static_assert(sizeof(Context) == sizeof(beeline_context));

beeline_device device_of(const Process& process, int rank) {
  beeline_device device{};
  device.struct_bytes = sizeof device;
  require_ok(beeline_world_device(process.world(), rank, &device), GASPI_ERR_DEVICE);
  return device;
}

bool any_rank_has_gpu(const Process& process) {
  for (int rank = 0; rank < process.size(); ++rank)
    if (device_of(process, rank).kind == BEELINE_GPU) return true;
  return false;
}

/// A part as kernels read it.
///   is_in_place  loads and stores of this rank's device reach the part at its address in this process
SegmentEntry entry_of(const Part& part) {
  SegmentEntry entry{nullptr, part.flags, part.bytes, PartAccess::none, part.has_flags_on_device ? 0u : 1u};
  if (part.kind == Memory::none || !part.is_for_me) return {};
  if (part.data != nullptr)
    entry.data = part.data, entry.access = PartAccess::symmetric;
  else if (part.is_direct && part.address != nullptr)
    entry.data = part.address, entry.access = PartAccess::in_place;
  return entry;
}

}  // namespace

Gpu& gpu(const Process& process) { return *process.extension<Gpu>(); }

void Gpu::open(Process& process) {
  table_.resize(std::size_t{configuration().segment_max} * static_cast<std::size_t>(process.size()));
  if (!any_rank_has_gpu(process)) return;
  device_ = device_of(process, process.rank()).index;
  for (beeline_hybrid*& hybrid : hybrids_)
    require_ok(beeline_hybrid_create(process.world_team(), nullptr, &hybrid), GASPI_ERR_DEVICE);
  require_ok(
      beeline_allocate(process.world_team(), table_.size() * sizeof(SegmentEntry), BEELINE_HEAP_SYMMETRIC, &memory_),
      GASPI_ERR_DEVICE);
}

void Gpu::close(Process& process) {
  for (beeline_hybrid*& hybrid : hybrids_)
    if (hybrid != nullptr) static_cast<void>(beeline_hybrid_destroy(std::exchange(hybrid, nullptr)));
  if (memory_ != nullptr) static_cast<void>(beeline_free(process.world_team(), std::exchange(memory_, nullptr)));
}

void Gpu::set_hybrid(std::uint64_t threshold_bytes, std::uint64_t chunk_bytes) {
  beeline_hybrid_options options{};
  options.struct_bytes = sizeof options;
  options.threshold_bytes = threshold_bytes, options.chunk_bytes = chunk_bytes;
  for (beeline_hybrid* const hybrid : hybrids_) {
    if (hybrid == nullptr) throw Failure(GASPI_ERR_DEVICE, "no rank has a GPU");
    if (beeline_hybrid_set(hybrid, &options) != BEELINE_OK) throw Failure(GASPI_ERR_INV_SIZE, beeline_last_error());
  }
}

void Gpu::publish(const Process& process) {
  const std::uint64_t changes = process.segments().changes() + 1;
  if (published_ == changes) return;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const auto ranks = static_cast<std::size_t>(process.size());
    table_[i] = entry_of(process.segments().part(static_cast<std::uint32_t>(i / ranks), static_cast<int>(i % ranks)));
  }
  if (memory_ != nullptr)
    require_ok(beeline_copy(process.world(), memory_, table_.data(), table_.size() * sizeof(SegmentEntry)),
               GASPI_ERR_DEVICE);
  published_ = changes;
}

Endpoint Gpu::endpoint(const Process& process, std::uint32_t queues) {
  const std::lock_guard lock(publishing_);
  publish(process);
  Endpoint endpoint{};
  beeline_context context{};
  require_ok(beeline_team_context(process.world_team(), sizeof context, &context), GASPI_ERR_DEVICE);
  std::memcpy(static_cast<void*>(&endpoint.context), &context, sizeof context);
  endpoint.table = {memory_ == nullptr ? table_.data() : static_cast<const SegmentEntry*>(memory_),
                    configuration().segment_max, configuration().notification_num, queues};
  return endpoint;
}

}  // namespace beeline::gaspi
