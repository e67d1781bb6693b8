// SPDX-License-Identifier: Apache-2.0
#include "environment/environment.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <map>
#include <span>

#include "beeline_commit.hpp"
#include "environment/gpu_state.hpp"

extern char** environ;

namespace beeline::bench {

namespace {

using Json = nlohmann::ordered_json;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// The build's commit and whether the working tree differed from it; null if the build had no repository.
void add_commit(Json& record) {
  const std::string described = BEELINE_COMMIT;
  const std::size_t mark = described.find("-dirty");
  record["commit"] = described.empty() ? Json(nullptr) : Json(described.substr(0, mark));
  record["dirty"] = described.empty() ? Json(nullptr) : Json(mark != std::string::npos);
}

Json without_paths(const std::vector<std::string>& arguments) {
  Json kept = Json::array();
  for (const std::string& argument : arguments)
    kept.push_back(argument.starts_with('/') ? std::filesystem::path(argument).filename().string() : argument);
  return kept;
}

/// BEELINE_*, CUDA_* and UCX_* variables, sorted.
Json variables() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=')), value = text.substr(name.size() + 1);
    const bool ours = name.starts_with("BEELINE_") || name.starts_with("CUDA_") || name.starts_with("UCX_");
    if (!ours || name == "BEELINE_TOKEN" || name == "BEELINE_RENDEZVOUS" || name == "BEELINE_RANK") continue;
    if (!value.starts_with('/')) found[name] = value;
  }
  return found;
}

Json host_record() {
  utsname system{};
  uname(&system);
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  const Device host = host_device();
  return {{"cpu", host.name},
          {"cores_online", sysconf(_SC_NPROCESSORS_ONLN)},
          {"cores_allowed", known ? Json(CPU_COUNT(&allowed)) : Json(nullptr)},
          {"memory_bytes", host.memory_bytes},
          {"kernel", fmt::format("{} {}", system.sysname, system.release)}};
}

Json build_record() {
  return {
      {"compiler", fmt::format("{} {}", BEELINE_COMPILER_NAME, BEELINE_COMPILER_VERSION)},
      {"type", BEELINE_BUILD_TYPE},
      {"cuda_architectures", std::string(BEELINE_ARCHITECTURES).empty() ? Json(nullptr) : Json(BEELINE_ARCHITECTURES)}};
}

Json describe(const Device& device) {
  return {{"kind", device.is_gpu() ? "gpu" : "host"},
          {"name", device.name},
          {"uuid", device.is_gpu() ? Json(device.uuid) : Json(nullptr)},
          {"multiprocessors", device.is_gpu() ? Json(device.multiprocessors) : Json(nullptr)},
          {"memory_bytes", device.memory_bytes},
          {"state", device.is_gpu() ? gpu_state(device.uuid) : Json(nullptr)}};
}

/// The devices of all ranks; each rank describes its own.
Json devices_of(World& world) {
  Json described = {{"rank", world.rank()}};
  described.update(describe(world.device()));
  const std::string text = described.dump();
  Json devices = Json::array();
  for (const auto& other : world.allgather(std::as_bytes(std::span(text))))
    devices.push_back(Json::parse(reinterpret_cast<const char*>(other.data()),
                                  reinterpret_cast<const char*>(other.data()) + other.size()));
  return devices;
}

/// What does not depend on ranks and devices.
Json begin_record(const std::vector<std::string>& arguments) {
  Json record = {{"event", "environment"}, {"schema_version", schema_version}, {"time", utc_now()}};
  add_commit(record);
  record["arguments"] = without_paths(arguments);
  record["variables"] = variables();
  record["build"] = build_record();
  return record;
}

}  // namespace

Json environment_record(World& world, const std::vector<std::string>& arguments) {
  Json record = begin_record(arguments);
  record["ranks"] = world.size();
  record["rank_kind"] = world.config().threads ? "threads" : "processes";
  record["host_threads"] = world.config().host_threads;
  record["host"] = host_record();
  record["cuda"] = cuda_versions();
  record["devices"] = devices_of(world);
  std::vector<Device> devices;
  for (int rank = 0; rank < world.size(); ++rank) devices.push_back(world.device(rank));
  record["topology"] = gpu_topology(devices);
  return record;
}

Json environment_record(const std::vector<Device>& devices, const std::vector<std::string>& arguments) {
  Json record = begin_record(arguments);
  record["host"] = host_record();
  record["cuda"] = cuda_versions();
  record["devices"] = Json::array();
  for (const Device& device : devices) record["devices"].push_back(describe(device));
  record["topology"] = gpu_topology(devices);
  return record;
}

}  // namespace beeline::bench
