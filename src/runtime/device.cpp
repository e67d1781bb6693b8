// SPDX-License-Identifier: Apache-2.0
#include "beeline/runtime/device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <string_view>

#include "beeline/core/error.hpp"
#include "core/text_file.hpp"

namespace beeline {

namespace {

std::string cpu_model() {
  const std::string info = read_text("/proc/cpuinfo");
  for (const std::string_view line : lines_of(info))
    if (line.starts_with("model name")) return std::string(line.substr(line.find(':') + 2));
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
  if (number && index >= 0 && index < static_cast<int>(inventory.gpus.size())) return index;
  std::string why_none;
  if (inventory.gpus.empty()) static_cast<void>(visible_gpus(&why_none));
  throw Error(Status::invalid_argument,
              fmt::format("device \"cuda:{}\" is not here: {} GPU(s) visible{}{}{}", id, inventory.gpus.size(),
                          inventory.gpus.empty() ? "" : ": ", fmt::join(inventory.gpus, ", "),
                          why_none.empty() ? "" : fmt::format(" ({}); --device cpu runs on CPUs", why_none)));
}

constexpr std::string_view cuda_prefix = "cuda:";

/// The GPU that `rank` wants, before conflicts are resolved.
int wanted_gpu(int rank, const DeviceInventory& inventory) {
  if (inventory.choice == "cpu") return -1;
  if (inventory.choice == "auto") return inventory.gpus.empty() ? -1 : rank % static_cast<int>(inventory.gpus.size());
  return find_gpu(inventory.choice.substr(cuda_prefix.size()), inventory);
}

/// Takes the GPUs away from all ranks with the choice "auto".
void give_up_automatic(std::vector<int>& wanted, const std::vector<DeviceInventory>& inventories) {
  for (std::size_t rank = 0; rank < wanted.size(); ++rank)
    if (inventories[rank].choice == "auto") wanted[rank] = -1;
}

bool an_automatic_rank_has_none(const std::vector<int>& wanted, const std::vector<DeviceInventory>& inventories) {
  for (std::size_t rank = 0; rank < wanted.size(); ++rank)
    if (inventories[rank].choice == "auto" && wanted[rank] < 0) return true;
  return false;
}

[[noreturn]] void refuse_syntax(const std::string& choice) {
  throw Error(Status::invalid_argument,
              fmt::format("device \"{}\": expected auto, cpu, cuda:ID[,ID...], or an entry for each rank, each cpu or "
                          "cuda:ID",
                          choice));
}

/// The first rank whose GPU is also used by another process, or -1.
int conflicting_rank(const std::vector<int>& wanted, const std::vector<DeviceInventory>& inventories) {
  std::map<std::string, std::uint64_t> owner;
  for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
    if (wanted[rank] < 0) continue;
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

std::vector<std::string> devices_of_ranks(const std::string& choice, int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  if (choice == "auto" || choice == "cpu") return std::vector<std::string>(count, choice);
  std::vector<std::string> entries = split(choice);
  const auto names_a_device = [](const std::string& entry) { return entry == "cpu" || entry.starts_with(cuda_prefix); };
  const auto bare =
      std::count_if(entries.begin(), entries.end(), [&](const std::string& e) { return !names_a_device(e); });
  const bool in_turn = entries.front().starts_with(cuda_prefix) && bare + 1 == static_cast<long>(entries.size());
  if (in_turn)
    for (std::size_t i = 1; i < entries.size(); ++i) entries[i].insert(0, cuda_prefix);
  if ((bare > 0 && !in_turn) || std::find(entries.begin(), entries.end(), cuda_prefix) != entries.end())
    refuse_syntax(choice);
  require(in_turn || entries.size() == count, Status::invalid_argument,
          fmt::format("device \"{}\": a list of {} devices for {} ranks; it needs an entry for each", choice,
                      entries.size(), ranks));
  std::vector<std::string> all;
  for (std::size_t rank = 0; rank < count; ++rank) all.push_back(entries[rank % entries.size()]);
  return all;
}

int choose_gpu(int rank, const std::vector<DeviceInventory>& inventories, bool mps) {
  std::vector<int> wanted;
  for (std::size_t each = 0; each < inventories.size(); ++each)
    wanted.push_back(wanted_gpu(static_cast<int>(each), inventories[each]));
  const auto conflict = [&] { return mps ? -1 : conflicting_rank(wanted, inventories); };
  if (an_automatic_rank_has_none(wanted, inventories) || conflict() >= 0) give_up_automatic(wanted, inventories);
  require(conflict() < 0, Status::no_resource,
          fmt::format("rank {} would share its GPU with another process, which needs MPS: give each rank its own GPU, "
                      "or run the ranks as threads (--threads)",
                      conflict()));
  return wanted[static_cast<std::size_t>(rank)];
}

int choose_reaching_gpu(int rank, const std::vector<DeviceInventory>& inventories,
                        const std::vector<std::string>& owned) {
  const std::vector<std::string>& seen = inventories[static_cast<std::size_t>(rank)].gpus;
  std::vector<int> candidates;
  for (const std::string& uuid : owned) {
    const auto here = std::find(seen.begin(), seen.end(), uuid);
    const int index = static_cast<int>(here - seen.begin());
    if (here != seen.end() && std::find(candidates.begin(), candidates.end(), index) == candidates.end())
      candidates.push_back(index);
  }
  return candidates.empty() ? -1 : candidates[static_cast<std::size_t>(rank) % candidates.size()];
}

bool kernels_have_host_atomics(const std::vector<Device>& devices, int rank) {
  const Device& own = devices[static_cast<std::size_t>(rank)];
  if (!own.is_gpu() || own.host_atomics) return true;
  return std::all_of(devices.begin(), devices.end(), [&](const Device& each) { return each.uuid == own.uuid; });
}

}  // namespace beeline
