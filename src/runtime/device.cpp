// SPDX-License-Identifier: Apache-2.0
#include "beeline/runtime/device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string_view>

#include "beeline/core/error.hpp"

namespace beeline {

namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "CPU";
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const auto comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

int find_gpu(const std::string& id, const DeviceInventory& inventory) {
  const auto by_uuid = std::find(inventory.gpus.begin(), inventory.gpus.end(), id);
  if (by_uuid != inventory.gpus.end()) return static_cast<int>(by_uuid - inventory.gpus.begin());
  int index = -1;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), index);
  const bool number = error == std::errc{} && end == id.data() + id.size();
  if (!number || index < 0 || index >= static_cast<int>(inventory.gpus.size()))
    throw Error(Status::invalid_argument,
                fmt::format("device \"cuda:{}\" is not here: {} GPU(s) visible{}{}", id, inventory.gpus.size(),
                            inventory.gpus.empty() ? "" : ": ", fmt::join(inventory.gpus, ", ")));
  return index;
}

/// The GPU of `rank` before conflicts are looked at.
int wanted_gpu(const std::string& choice, int rank, const DeviceInventory& inventory) {
  if (choice == "auto") return inventory.gpus.empty() ? -1 : rank % static_cast<int>(inventory.gpus.size());
  const std::vector<std::string> ids = split(std::string_view(choice).substr(5));
  return find_gpu(ids[static_cast<std::size_t>(rank) % ids.size()], inventory);
}

/// The first rank whose GPU another process has too, or -1.
int conflicting_rank(const std::vector<int>& wanted, const std::vector<DeviceInventory>& inventories) {
  std::map<std::string, std::uint64_t> owner;
  for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
    const auto& inventory = inventories[rank];
    const auto [entry, added] =
        owner.try_emplace(inventory.gpus[static_cast<std::size_t>(wanted[rank])], inventory.process);
    if (!added && entry->second != inventory.process) return static_cast<int>(rank);
  }
  return -1;
}

}  // namespace

Device host_device() {
  Device device;
  device.name = cpu_model();
  device.memory_bytes =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return device;
}

bool mps_runs() {
  const char* folder = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  return access(fmt::format("{}/control", folder == nullptr ? "/tmp/nvidia-mps" : folder).c_str(), F_OK) == 0;
}

int choose_gpu(const std::string& choice, int rank, const std::vector<DeviceInventory>& inventories, bool mps) {
  if (choice == "cpu") return -1;
  const bool automatic = choice == "auto";
  if (!automatic && (!choice.starts_with("cuda:") || choice.size() == 5))
    throw Error(Status::invalid_argument, fmt::format("device \"{}\": expected auto, cpu, or cuda:ID[,ID...]", choice));
  std::vector<int> wanted;
  for (std::size_t r = 0; r < inventories.size(); ++r)
    wanted.push_back(wanted_gpu(choice, static_cast<int>(r), inventories[r]));
  if (automatic && std::find(wanted.begin(), wanted.end(), -1) != wanted.end()) return -1;
  const int conflict = mps ? -1 : conflicting_rank(wanted, inventories);
  if (conflict < 0) return wanted[static_cast<std::size_t>(rank)];
  if (automatic) return -1;
  throw Error(
      Status::no_resource,
      fmt::format("rank {} would share its GPU with another process, which needs MPS: give each rank its own GPU, "
                  "or run the ranks as threads (--threads)",
                  conflict));
}

}  // namespace beeline
