// SPDX-License-Identifier: Apache-2.0
// beeline-info: one JSON object that says what this machine, this build and this configuration offer.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <thread>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "beeline/core/registry.hpp"
#include "beeline/host/packets.hpp"
#include "beeline/host/paths.hpp"
#include "beeline/host/run.hpp"
#include "beeline/hpe/files.hpp"
#include "beeline/runtime/device.hpp"
#include "beeline/runtime/gpu_place.hpp"
#include "beeline/transports/transports.hpp"

namespace {

using beeline::Device;
using nlohmann::json;

json text_or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

json device_entry(const Device& device) {
  return {{"kind", device.is_gpu() ? "gpu" : "host"},
          {"index", device.is_gpu() ? json(device.index) : json(nullptr)},
          {"name", device.name},
          {"uuid", text_or_null(device.uuid)},
          {"memory_bytes", device.memory_bytes},
          {"multiprocessors", device.is_gpu() ? json(device.multiprocessors) : json(nullptr)}};
}

json links(const std::vector<Device>& gpus, bool peers) {
  json all = json::array();
  for (const Device& from : gpus)
    for (const Device& to : gpus)
      if (from.index != to.index) {
        const bool direct = peers && beeline::peer_access(from.index, to.index);
        all.push_back({{"from", from.index},
                       {"to", to.index},
                       {"peer_access", direct},
                       {"copies", direct ? "direct" : "staged through host memory"}});
      }
  return all;
}

bool all_peers(const std::vector<Device>& gpus, bool peers) {
  for (const Device& from : gpus)
    for (const Device& to : gpus)
      if (from.index != to.index && !(peers && beeline::peer_access(from.index, to.index))) return false;
  return true;
}

/// Why host engines do not store words into the memory of each of these GPUs; empty if they do where a heap fits the
/// GPU's address window.
std::string reason_against_cpu_stores(const std::vector<Device>& gpus) {
  if (!beeline::Config::from_environment().cpu_stores) return "BEELINE_CPU_STORES=0";
  for (const Device& gpu : gpus)
    if (const std::string reason = beeline::no_cpu_stores_reason(gpu.index); !reason.empty()) return reason;
  return "";
}

/// Which devices access which memory directly (docs/design.md, one address range).
json access_matrix(const std::vector<Device>& gpus, bool peers) {
  json matrix = json::array();
  const auto add = [&](const char* from, const char* to, const std::string& how) {
    matrix.push_back({{"from", from}, {"to", to}, {"how", how}});
  };
  if (!gpus.empty()) {
    add("GPU kernel", "GPU memory of the node",
        all_peers(gpus, peers) ? "load, store, atomic"
                               : "own memory only: not every pair has peer access; copies are staged");
    add("GPU kernel", "host memory of the node",
        "load, store (aligned, up to 8 bytes whole); atomics refused where CPUs take part");
    const std::string reason = reason_against_cpu_stores(gpus);
    add("CPU thread", "GPU memory of the node",
        reason.empty() ? "copies and stream writes; threads of an engine also store words; the rest refused"
                       : "copies and stream writes only; the rest refused: " + reason);
  }
  add("CPU thread", "host memory of the node", "load, store, atomic");
  return matrix;
}

/// Why a world with one rank on each of these GPUs cannot use ll128; empty if it can.
std::string no_lines_reason(const std::vector<Device>& gpus) {
  if (gpus.empty()) return "only GPUs store whole lines, and there is none";
  beeline::Config config = beeline::Config::from_environment();
  config.threads = true;
  config.rank = 0;
  config.size = static_cast<int>(gpus.size());
  config.device = "auto";
  config.heap_bytes = std::size_t{16} << 20;
  config.pinned_heap_bytes = std::size_t{1} << 20;
  std::string found;
  const int failed = beeline::run(config, [&](beeline::World& world) {
    const std::string reason = beeline::no_ll128_reason(world);
    if (world.rank() == 0) found = reason;
  });
  return failed != 0 ? "the self-test failed" : found;
}

/// Why the algorithm is not available among these GPUs (among host ranks where there are none); empty if it is.
std::string reason(const beeline::AlgorithmInfo& info, const std::vector<Device>& gpus, bool peers) {
  if (info.path != beeline::Path::staged && !all_peers(gpus, peers)) return "no peer access between some GPUs";
  if ((info.needs & beeline::needs::whole_lines) != 0) {
    static const std::string found = no_lines_reason(gpus);  // some ms
    return found;
  }
  if ((info.needs & beeline::needs::bulk_copies) != 0)
    for (const Device& gpu : gpus)
      if (const int has = beeline::compute_capability(gpu.index); has < 90)
        return fmt::format("GPU {} has compute capability {}.{}", gpu.index, has / 10, has % 10);
  return {};
}

/// The controls (who issues the operation) that offer the operation by this algorithm.
json controls_of(const beeline::MethodRow& row) {
  json all = json::array();
  for (const beeline::Control control :
       {beeline::Control::device, beeline::Control::stream, beeline::Control::host, beeline::Control::proxy})
    if (row.is_by(control)) all.push_back({{"control", name(control)}, {"id", row.method(control).id()}});
  return all;
}

/// The registry's algorithms, each with the operations that have it.
json method_entries(const std::vector<Device>& gpus, bool peers) {
  json all = json::array();
  for (const beeline::AlgorithmInfo& info : beeline::algorithm_infos) {
    json operations = json::object();
    for (const beeline::MethodRow& row : beeline::method_rows)
      if (row.algorithm == info.algorithm) operations[name(row.operation)] = controls_of(row);
    const std::string why_not = reason(info, gpus, peers);
    all.push_back({{"id", info.name},
                   {"summary", info.summary},
                   {"available", why_not.empty()},
                   {"needs", needs_of(info)},
                   {"reason", text_or_null(why_not)},
                   {"operations", operations}});
  }
  return all;
}

/// How files are moved (docs/files.md).
json files() {
  const beeline::hpe::FileSupport support = beeline::hpe::file_support();
  return {{"io_uring", {{"available", support.no_uring.empty()}, {"reason", text_or_null(support.no_uring)}}},
          {"gds", {{"available", support.no_gds.empty()}, {"reason", text_or_null(support.no_gds)}}}};
}

/// Which launcher started this process, if the environment names one.
json launcher(const beeline::Config& config) {
  const beeline::Launcher& found = config.launcher;
  return {{"name", found.name == "none" ? json(nullptr) : json(found.name)},
          {"rank", config.rank},
          {"size", config.size},
          {"job", text_or_null(found.job)},
          {"one_host", found.one_host}};
}

/// Whether worlds may span several nodes.
json network() {
  const std::string reason = beeline::no_network_reason();
  json transports = json::array();
  for (const beeline::TransportInfo& each : beeline::transports())
    transports.push_back({{"name", each.name},
                          {"available", each.reason.empty()},
                          {"reason", text_or_null(each.reason)},
                          {"device_memory", each.device_memory},
                          {"settings", each.settings}});
  return {{"available", reason.empty()}, {"reason", text_or_null(reason)}, {"transports", transports}};
}

/// The cores of the engine threads that serve each of these GPUs, unless BEELINE_ENGINE_CORES names others.
json engine_entries(const std::vector<Device>& gpus) {
  json all = json::array();
  for (const Device& gpu : gpus) {
    const beeline::NearCores near = beeline::cores_near_gpu(gpu.index);
    all.push_back({{"gpu", gpu.index},
                   {"pci", beeline::pci_address(gpu.index)},
                   {"near_cores", near.cores},
                   {"reason", text_or_null(near.reason)}});
  }
  return all;
}

/// The engines that serve command queues on this machine, and the commands that each carries out.
json command_engines(const beeline::Config& config) {
  return {{{"id", "host"},
           {"method", "proxy/copy_engine/signal"},
           {"served_by", "threads of the host"},
           {"threads", config.engine_threads},
           {"poll_us", config.engine_poll_us},
           {"commands", "put, get, copy, signal, atomic, trigger"}},
          {{"id", "device"},
           {"method", "proxy/peer/signal"},
           {"served_by", "a block of the rank's device, in leases; the host does what it hands over"},
           {"threads", nullptr},
           {"poll_us", config.engine_poll_us},
           {"commands", "put, get, signal, atomic, trigger; copy by the host"}}};
}

json configuration(const beeline::Config& config) {
  json all = json::array();
  for (const auto& entry : beeline::describe(config))
    all.push_back(
        {{"variable", entry.variable}, {"value", entry.value}, {"values", entry.values}, {"meaning", entry.meaning}});
  return all;
}

json report() {
  const beeline::Config config = beeline::Config::from_environment();
  std::string no_gpu;
  const std::vector<Device> gpus = beeline::visible_gpus(&no_gpu);
  const beeline::CudaVersions versions = beeline::cuda_versions();
  const Device host = beeline::host_device();
  utsname system{};
  uname(&system);
  json devices = json::array({device_entry(host)});
  for (const Device& gpu : gpus) devices.push_back(device_entry(gpu));
  return {
      {"version", BEELINE_VERSION_TEXT},
      {"build",
       {{"cuda", beeline::built_with_cuda()},
        {"compiler", BEELINE_COMPILER},
        {"architectures", BEELINE_ARCHITECTURES}}},
      {"devices", devices},
      {"no_gpu_reason", gpus.empty() ? json(no_gpu) : json(nullptr)},
      {"driver", {{"cuda_driver", text_or_null(versions.driver)}, {"cuda_runtime", text_or_null(versions.runtime)}}},
      {"links", links(gpus, config.peer_access)},
      {"access", access_matrix(gpus, config.peer_access)},
      {"methods", method_entries(gpus, config.peer_access)},
      {"engines", engine_entries(gpus)},
      {"command_engines", command_engines(config)},
      {"network", network()},
      {"files", files()},
      {"launcher", launcher(config)},
      {"configuration", configuration(config)},
      {"host", {{"cpu", host.name}, {"cores", std::thread::hardware_concurrency()}, {"kernel", system.release}}}};
}

/// Collective: how each rank reaches every other rank, in rank order; prints on rank 0.
void print_paths(beeline::World& world) {
  json mine = json::array();
  for (int to = 0; to < world.size(); ++to) {
    if (to == world.rank()) continue;
    const beeline::PathToRank found = beeline::path_to(world, to);
    mine.push_back({{"from", world.rank()},
                    {"to", to},
                    {"operations", found.operations},
                    {"copies", found.copies},
                    {"reason", found.reason}});
  }
  const std::string text = mine.dump();
  json paths = json::array();
  for (const std::vector<std::byte>& each : world.allgather(std::as_bytes(std::span(text)))) {
    const auto* const first = reinterpret_cast<const char*>(each.data());
    for (const json& path : json::parse(first, first + each.size())) paths.push_back(path);
  }
  if (world.rank() == 0) std::puts(json{{"paths", paths}}.dump().c_str());
}

}  // namespace

/// With `--paths`, the ranks that a launcher has started print how they reach each other.
int main(int argument_count, char** arguments) {
  try {
    if (argument_count > 1 && std::string_view(arguments[1]) == "--paths") return beeline::run(print_paths);
    std::puts(report().dump().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fputs(fmt::format("beeline-info: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
}
