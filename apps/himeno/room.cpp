// SPDX-License-Identifier: Apache-2.0
#include "room.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "beeline/core/error.hpp"
#include "beeline/memory/address_range.hpp"
#include "copy_bandwidth.hpp"
#include "domain.hpp"

namespace himeno {

namespace {

using beeline::require;
using beeline::Status;

/// Memory of a GPU that one rank can have at most.
struct GpuRoom {
  bool on_gpus;
  std::size_t bytes;
};

GpuRoom gpu_room(const beeline::Config& config, const std::vector<beeline::Device>& gpus) {
  if (gpus.empty()) return {false, 0};
  if (!config.threads) {
    // Each process may see other GPUs than this one; more ranks than GPUs here may turn out to run on CPUs.
    if (config.device == "auto" && static_cast<std::size_t>(config.size) > gpus.size()) return {true, SIZE_MAX};
    const auto bytes = [](const beeline::Device& gpu) { return gpu.memory_bytes; };
    return {true, std::ranges::max(gpus, {}, bytes).memory_bytes};
  }
  std::vector<beeline::DeviceInventory> inventories;
  for (const std::string& choice : beeline::devices_of_ranks(config.device, config.size)) {
    beeline::DeviceInventory& each = inventories.emplace_back();
    for (const beeline::Device& gpu : gpus) each.gpus.push_back(gpu.uuid);
    each.choice = choice;
  }
  std::map<int, std::size_t> ranks_of_gpu;
  for (int rank = 0; rank < config.size; ++rank) ++ranks_of_gpu[beeline::choose_gpu(rank, inventories, false)];
  ranks_of_gpu.erase(-1);
  std::size_t least = SIZE_MAX;
  for (const auto& [gpu, ranks] : ranks_of_gpu)
    least = std::min(least, gpus[static_cast<std::size_t>(gpu)].memory_bytes / ranks);
  return {true, least};
}

double gibibytes(std::size_t bytes) { return static_cast<double>(bytes) / static_cast<double>(std::size_t{1} << 30); }

/// Bytes of rank 0's serial reference and the fields that are compared with it.
std::size_t reference_bytes(const Size& size) {
  constexpr std::size_t arrays = 17;
  return arrays * sizeof(float) * size.points();
}

}  // namespace

Machine machine_for(const std::string& device) {
  return {device == "cpu" ? std::vector<beeline::Device>{} : beeline::visible_gpus(),
          beeline::host_device().memory_bytes};
}

void fit(beeline::Config& config, const Size& size, bool verify, const Machine& machine) {
  static_cast<void>(slab_of(size, config.size, config.size - 1));
  const Domain::Heaps heaps = Domain::heaps(size, config.size);
  const std::string problem = fmt::format("size {}x{}x{} on {} ranks", size.x, size.y, size.z, config.size);
  const GpuRoom gpu = gpu_room(config, machine.gpus);
  if (gpu.on_gpus)
    require(
        heaps.symmetric_bytes <= gpu.bytes, Status::no_resource,
        fmt::format("{} needs {:.1f} GiB of GPU memory a rank, and a rank has {:.1f}: choose a smaller size, or more "
                    "GPUs",
                    problem, gibibytes(heaps.symmetric_bytes), gibibytes(gpu.bytes)));
  const std::size_t of_a_rank = heaps.pinned_bytes + (gpu.on_gpus ? 0 : heaps.symmetric_bytes);
  const std::size_t reference = verify ? reference_bytes(size) : 0;
  const std::size_t in_all = of_a_rank * static_cast<std::size_t>(config.size) + reference;
  require(in_all <= machine.memory_bytes, Status::no_resource,
          fmt::format("{} needs {:.1f} GiB of host memory, {:.1f} of it for the serial reference, and this machine has "
                      "{:.1f}: choose a smaller size{}",
                      problem, gibibytes(in_all), gibibytes(reference), gibibytes(machine.memory_bytes),
                      verify ? ", or --no-verify" : ""));
  const std::size_t quarter = beeline::SlotLayout{config.slot_shift}.quarter();
  require(heaps.symmetric_bytes <= quarter && heaps.pinned_bytes <= quarter / 2, Status::invalid_argument,
          fmt::format("{} needs heaps of {:.1f} and {:.1f} GiB, which do not fit slots of 2^{} bytes: raise "
                      "BEELINE_SLOT_SHIFT",
                      problem, gibibytes(heaps.symmetric_bytes), gibibytes(heaps.pinned_bytes), config.slot_shift));
  config.heap_bytes = std::max({config.heap_bytes, heaps.symmetric_bytes, copy_heap_bytes});
  config.pinned_heap_bytes = std::max(config.pinned_heap_bytes, heaps.pinned_bytes);
}

}  // namespace himeno
