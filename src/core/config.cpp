// SPDX-License-Identifier: Apache-2.0
#include "beeline/core/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/layout.hpp"
#include "beeline/core/log.hpp"
#include "core/default_heap.hpp"
#include "core/environment.hpp"

namespace beeline {

namespace {

constexpr std::array<std::string_view, 4> level_names = {"error", "warning", "info", "debug"};
constexpr std::array<std::string_view, wait_policies> policy_names = {"automatic", "spin", "yield", "sleep", "event"};
constexpr std::array<std::string_view, 2> gpu_payloads_names = {"staged", "ucx"};
constexpr std::array<std::string_view, 3> memory_keys_names = {"automatic", "always", "never"};

using detail::environment;
using detail::refuse;

template <class T>
void read_number(const char* variable, T& field, T least, T most) {
  if (const auto text = environment(variable)) field = detail::to_number(variable, *text, least, most);
}

/// A size in bytes with an optional binary suffix: 4096, 64K, 1M, 2G.
void read_bytes(const char* variable, std::size_t& field, std::size_t least) {
  const auto text = environment(variable);
  if (!text) return;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  const std::string_view suffix(end, static_cast<std::size_t>(text->data() + text->size() - end));
  const int shift = suffix.empty() ? 0 : suffix == "K" ? 10 : suffix == "M" ? 20 : suffix == "G" ? 30 : -1;
  if (error != std::errc{} || shift < 0 || value > (SIZE_MAX >> shift) || (value << shift) < least)
    refuse(variable, *text, fmt::format("bytes, at least {}, optionally with K, M or G", least));
  field = value << shift;
}

void read_flag(const char* variable, bool& field) {
  const auto text = environment(variable);
  if (!text) return;
  if (*text != "0" && *text != "1") refuse(variable, *text, "0 or 1");
  field = *text == "1";
}

void read_seconds(const char* variable, std::int64_t& field) {
  const auto text = environment(variable);
  if (!text) return;
  char* end = nullptr;
  const double seconds = std::strtod(text->c_str(), &end);
  if (*end != '\0' || !(seconds >= 1e-9) || seconds > 1e6) refuse(variable, *text, "seconds, from 1e-9 to 1000000");
  field = std::llround(seconds * 1e9);
}

void read_numbers(const char* variable, std::vector<int>& field, int least, int most) {
  const auto text = environment(variable);
  if (!text) return;
  field.clear();
  for (std::size_t begin = 0; begin <= text->size();) {
    const std::size_t end = std::min(text->find(',', begin), text->size());
    field.push_back(detail::to_number(variable, text->substr(begin, end - begin), least, most));
    begin = end + 1;
  }
}

template <class Choice, std::size_t count>
void read_choice(const char* variable, Choice& field, const std::array<std::string_view, count>& names) {
  const auto text = environment(variable);
  if (!text) return;
  const auto found = std::find(names.begin(), names.end(), *text);
  if (found == names.end()) refuse(variable, *text, fmt::format("one of {}", fmt::join(names, ", ")));
  field = static_cast<Choice>(found - names.begin());
}

/// Variables that other parts read: programs, tools, builds and tests.
constexpr std::array<std::string_view, 12> other_variables = {
    "BEELINE_BATCHES",  "BEELINE_BIN",          "BEELINE_COMMIT",  "BEELINE_CUDA_ARCHITECTURES",
    "BEELINE_JOBS",     "BEELINE_NCCL",         "BEELINE_OFFLINE", "BEELINE_POWERCAP",
    "BEELINE_PROGRESS", "BEELINE_TORCH_NATIVE", "BEELINE_UCX",     "BEELINE_UPDATE_GENERATED"};

/// Least number of characters to insert, remove or replace (Levenshtein's distance).
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> unknown_variables(const char* const* entries) {
  std::vector<std::string> known;
  for (const ConfigEntry& entry : describe(Config{})) known.push_back(entry.variable);
  std::vector<std::string> warnings;
  for (; entries != nullptr && *entries != nullptr; ++entries) {
    const std::string_view entry = *entries, variable = entry.substr(0, entry.find('='));
    if (!variable.starts_with("BEELINE_") || variable.starts_with("BEELINE_TEST_") ||
        variable.starts_with("BEELINE_WITH_") || std::ranges::find(known, variable) != known.end() ||
        std::ranges::find(other_variables, variable) != other_variables.end())
      continue;
    const auto nearest = std::ranges::min_element(
        known, {}, [variable](const std::string& each) { return edits_between(each, variable); });
    warnings.push_back(
        fmt::format("{} is no variable of Beeline, and is ignored: the nearest one is {}", variable, *nearest));
  }
  return warnings;
}

const char* name(WaitPolicy policy) noexcept { return policy_names[static_cast<std::size_t>(policy)].data(); }

Config Config::from_environment() {
  Config config;
  Place place = find_place();
  config.launcher = std::move(place.launcher);
  config.rank = place.rank;
  config.size = place.size;
  if (config.launcher.name == "beeline") {  // otherwise these may be of an outer `beeline run`
    read_number("BEELINE_SIZE", config.size, 1, static_cast<int>(max_ranks));
    read_number("BEELINE_RANK", config.rank, 0, config.size - 1);
    config.rendezvous = environment("BEELINE_RENDEZVOUS").value_or("");
  }
  read_flag("BEELINE_THREADS", config.threads);
  config.token = environment("BEELINE_TOKEN").value_or("");
  config.device = environment("BEELINE_DEVICE").value_or(config.device);
  read_seconds("BEELINE_DEADLINE_S", config.deadline_ns);
  read_seconds("BEELINE_STREAM_DEADLINE_S", config.stream_deadline_ns);
  read_bytes("BEELINE_HEAP_BYTES", config.heap_bytes, 0);
  read_bytes("BEELINE_PINNED_HEAP_BYTES", config.pinned_heap_bytes, 0);
  read_number("BEELINE_SLOT_SHIFT", config.slot_shift, min_slot_shift, max_slot_shift);
  read_bytes("BEELINE_CHUNK_BYTES", config.chunk_bytes, 1);
  read_flag("BEELINE_PEER_ACCESS", config.peer_access);
  read_number("BEELINE_SPLIT_NODES", config.split_nodes, 1, static_cast<int>(max_ranks));
  read_choice("BEELINE_GPU_PAYLOADS", config.gpu_payloads, gpu_payloads_names);
  read_choice("BEELINE_MEMORY_KEYS", config.memory_keys, memory_keys_names);
  read_number("BEELINE_HOST_THREADS", config.host_threads, 1, 256);
  config.powercap = environment("BEELINE_POWERCAP").value_or(config.powercap);
  read_choice("BEELINE_WAIT_POLICY", config.wait_policy, policy_names);
  read_number("BEELINE_WAIT_PERIOD_US", config.wait_period_us, 1, 1'000'000);
  read_number("BEELINE_ENGINE_THREADS", config.engine_threads, 1, 8);
  read_number("BEELINE_ENGINE_POLL_US", config.engine_poll_us, 0, 1'000'000);
  read_flag("BEELINE_CHECK", config.check);
  read_flag("BEELINE_CPU_STORES", config.cpu_stores);
  read_numbers("BEELINE_ENGINE_CORES", config.engine_cores, 0, 1 << 20);
  read_choice("BEELINE_LOG", config.log_level, level_names);
  static std::atomic<bool> has_warned = false;
  if (config.rank == 0 && config.log_level >= LogLevel::warning && !has_warned.exchange(true))
    for (const std::string& warning : unknown_variables(environ)) log(LogLevel::warning, warning);
  return config;
}

std::vector<ConfigEntry> describe(const Config& config) {
  return {
      {"BEELINE_RANK", fmt::format("{}", config.rank), "this process's rank"},
      {"BEELINE_SIZE", fmt::format("{}", config.size), "ranks in the world"},
      {"BEELINE_THREADS", config.threads ? "1" : "0", "1: all ranks are threads of this process"},
      {"BEELINE_RENDEZVOUS", config.rendezvous, "host:port of the launcher's server"},
      {"BEELINE_TOKEN", config.token.empty() ? "unset" : "set", "the world's secret"},
      {"BEELINE_DEVICE", config.device, "auto, cpu, cuda:ID[,ID...], or an entry for each rank: cuda:0,cpu"},
      {"BEELINE_DEADLINE_S", fmt::format("{}", static_cast<double>(config.deadline_ns) / 1e9),
       "seconds after which a wait fails"},
      {"BEELINE_STREAM_DEADLINE_S", fmt::format("{}", static_cast<double>(config.stream_deadline_ns) / 1e9),
       "seconds after which the host's wait for a stream fails: kernels run this long at most"},
      {"BEELINE_HEAP_BYTES", fmt::format("{}", config.heap_bytes),
       fmt::format("symmetric heap of a rank; 0: {} MiB, or {} MiB if some ranks are host ranks",
                   default_gpu_heap_bytes >> 20, default_host_heap_bytes >> 20)},
      {"BEELINE_PINNED_HEAP_BYTES", fmt::format("{}", config.pinned_heap_bytes), "host-memory heap of a rank"},
      {"BEELINE_SLOT_SHIFT", fmt::format("{}", config.slot_shift), "log2 of a rank's slot in the address range"},
      {"BEELINE_CHUNK_BYTES", fmt::format("{}", config.chunk_bytes), "chunk of staged, pipelined transfers"},
      {"BEELINE_PEER_ACCESS", config.peer_access ? "1" : "0",
       "0: copies are staged through host memory, as if no device reached another's memory"},
      {"BEELINE_SPLIT_NODES", fmt::format("{}", config.split_nodes),
       "nodes that each machine counts as; ranks of different nodes communicate over the network"},
      {"BEELINE_GPU_PAYLOADS", std::string(gpu_payloads_names[static_cast<std::size_t>(config.gpu_payloads)]),
       "how long payloads in GPU memory go to other nodes: staged by this library, or by ucx and its CUDA transports"},
      {"BEELINE_MEMORY_KEYS", std::string(memory_keys_names[static_cast<std::size_t>(config.memory_keys)]),
       "which long puts to other nodes go by memory keys: automatic, always, never"},
      {"BEELINE_WAIT_POLICY", name(config.wait_policy),
       "what CPU threads do between polls: automatic, spin, yield, sleep, event"},
      {"BEELINE_WAIT_PERIOD_US", fmt::format("{}", config.wait_period_us),
       "time between polls of a thread that sleeps, microseconds"},
      {"BEELINE_ENGINE_THREADS", fmt::format("{}", config.engine_threads),
       "threads of a rank that serve command queues"},
      {"BEELINE_ENGINE_POLL_US", fmt::format("{}", config.engine_poll_us),
       "time between polls of an idle engine thread, microseconds; 0: it spins"},
      {"BEELINE_CHECK", config.check ? "1" : "0",
       "1: warns of a signal whose word already has its value, by CPU threads: a wait cannot tell it from the one "
       "before"},
      {"BEELINE_CPU_STORES", config.cpu_stores ? "1" : "0",
       "0: engine threads leave words for GPU memory to streams, also where CPUs can store there"},
      {"BEELINE_ENGINE_CORES", fmt::format("{}", fmt::join(config.engine_cores, ",")),
       "cores that engine threads are bound to, in turn; empty: those near the rank's GPU"},
      {"BEELINE_HOST_THREADS", fmt::format("{}", config.host_threads), "CPU threads that run one block on a host rank"},
      {"BEELINE_POWERCAP", config.powercap, "folder of the kernel's energy counters (RAPL)"},
      {"BEELINE_LOG", std::string(level_names[static_cast<std::size_t>(config.log_level)]), "most detailed log level"},
  };
}

}  // namespace beeline
