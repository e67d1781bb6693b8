// SPDX-License-Identifier: Apache-2.0
#include "common/memory_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "beeline/core/error.hpp"
#include "common/quantity.hpp"

namespace apps {

namespace {

using beeline::require;
using beeline::Status;

/// The most memory of a GPU that one rank can have.
struct GpuRoom {
  bool on_gpus;
  std::size_t bytes;
};

GpuRoom gpu_room(const beeline::Config& config, const std::vector<beeline::Device>& gpus) {
  if (gpus.empty()) return {false, 0};
  if (!config.threads) {
    // Each process may see other GPUs than this one does; if ranks outnumber the GPUs here, some may run on CPUs.
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

}  // namespace

Machine machine_for(const std::string& device) {
  return {device == "cpu" ? std::vector<beeline::Device>{} : beeline::visible_gpus(),
          beeline::host_device().memory_bytes};
}

std::string why_no_gpu(const beeline::Config& config) {
  if (config.device == "cpu") return "needs a GPU for each rank, and these ranks run on CPUs (device cpu)";
  std::string why_none;
  const std::vector<beeline::Device> gpus = beeline::visible_gpus(&why_none);
  if (gpus.empty()) return "needs a GPU for each rank: " + why_none;
  if (config.threads || config.device != "auto" || static_cast<std::size_t>(config.size) <= gpus.size() ||
      beeline::mps_runs())
    return "";
  return "needs a GPU for each rank, and ranks that are processes share none: with " + std::to_string(gpus.size()) +
         " of them these run on CPUs; run them as threads";
}

void fit(beeline::Config& config, const Need& need, const Machine& machine) {
  const GpuRoom gpu = gpu_room(config, machine.gpus);
  if (gpu.on_gpus)
    require(need.symmetric_bytes <= gpu.bytes, Status::no_resource,
            fmt::format("{} needs {:.1f} GiB of GPU memory a rank, and a rank has {:.1f}: choose a smaller size, or "
                        "more GPUs",
                        need.problem, gibibytes(need.symmetric_bytes), gibibytes(gpu.bytes)));
  const std::size_t of_a_rank = need.pinned_bytes + (gpu.on_gpus ? 0 : need.symmetric_bytes);
  const std::size_t in_all = of_a_rank * static_cast<std::size_t>(config.size) + need.reference_bytes;
  require(in_all <= machine.memory_bytes, Status::no_resource,
          fmt::format("{} needs {:.1f} GiB of host memory, {:.1f} of it for the serial reference, and this machine has "
                      "{:.1f}: choose a smaller size{}",
                      need.problem, gibibytes(in_all), gibibytes(need.reference_bytes), gibibytes(machine.memory_bytes),
                      need.reference_bytes > 0 ? ", or --no-verify" : ""));
  config.heap_bytes = std::max(config.heap_bytes, need.symmetric_bytes);
  config.pinned_heap_bytes = std::max(config.pinned_heap_bytes, need.pinned_bytes);
}

}  // namespace apps
