// SPDX-License-Identifier: Apache-2.0
#include "core/setting.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <type_traits>

#include "beeline/core/layout.hpp"
#include "core/default_heap.hpp"
#include "core/environment.hpp"

namespace beeline {

namespace {

constexpr std::array<std::string_view, 4> level_names = {"error", "warning", "info", "debug"};
constexpr std::array<std::string_view, wait_policies> policy_names = {"automatic", "spin", "yield", "sleep", "event"};
constexpr std::array<std::string_view, 2> gpu_payloads_names = {"staged", "ucx"};
constexpr std::array<std::string_view, 3> memory_keys_names = {"automatic", "always", "never"};

using detail::Setting;

[[noreturn]] void refuse(const Setting& setting, const std::string& text) {
  detail::refuse(setting.variable, text, setting.values());
}

// Kinds of settings. `field` is a pointer to a member of Config.

template <auto field>
struct Text {
  static std::string values() { return "text"; }
  static void read(Config& config, const Setting&, const std::string& text) { config.*field = text; }
  static std::string show(const Config& config) { return config.*field; }
};

/// A text that is never shown.
template <auto field>
struct Secret : Text<field> {
  static std::string show(const Config& config) { return (config.*field).empty() ? "unset" : "set"; }
};

template <auto field>
struct Flag {
  static std::string values() { return "0 or 1"; }
  static void read(Config& config, const Setting& setting, const std::string& text) {
    if (text != "0" && text != "1") refuse(setting, text);
    config.*field = text == "1";
  }
  static std::string show(const Config& config) { return config.*field ? "1" : "0"; }
};

template <auto field, auto least, auto most>
struct Number {
  static std::string values() { return fmt::format("a number from {} to {}", least, most); }
  static void read(Config& config, const Setting& setting, const std::string& text) {
    config.*field =
        detail::to_number<std::remove_reference_t<decltype(config.*field)>>(setting.variable, text, least, most);
  }
  static std::string show(const Config& config) { return fmt::format("{}", config.*field); }
};

struct Rank : Number<&Config::rank, 0, static_cast<int>(max_ranks) - 1> {
  static void read(Config& config, const Setting& setting, const std::string& text) {
    config.rank = detail::to_number(setting.variable, text, 0, config.size - 1);
  }
};

template <auto field, int least, int most>
struct Numbers {
  static std::string values() { return fmt::format("numbers from {} to {}, separated by commas", least, most); }
  static void read(Config& config, const Setting& setting, const std::string& text) {
    (config.*field).clear();
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      (config.*field).push_back(detail::to_number(setting.variable, text.substr(begin, end - begin), least, most));
      begin = end + 1;
    }
  }
  static std::string show(const Config& config) { return fmt::format("{}", fmt::join(config.*field, ",")); }
};

template <auto field, std::size_t least>
struct Bytes {
  static std::string values() { return fmt::format("bytes, at least {}, optionally with K, M or G", least); }
  static void read(Config& config, const Setting& setting, const std::string& text) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const int shift = suffix.empty() ? 0 : suffix == "K" ? 10 : suffix == "M" ? 20 : suffix == "G" ? 30 : -1;
    if (error != std::errc{} || shift < 0 || value > (SIZE_MAX >> shift) || (value << shift) < least)
      refuse(setting, text);
    config.*field = value << shift;
  }
  static std::string show(const Config& config) { return fmt::format("{}", config.*field); }
};

/// A field in nanoseconds.
template <auto field>
struct Seconds {
  static std::string values() { return "seconds, from 1e-9 to 1000000"; }
  static void read(Config& config, const Setting& setting, const std::string& text) {
    char* end = nullptr;
    const double seconds = std::strtod(text.c_str(), &end);
    if (*end != '\0' || !(seconds >= 1e-9) || seconds > 1e6) refuse(setting, text);
    config.*field = std::llround(seconds * 1e9);
  }
  static std::string show(const Config& config) { return fmt::format("{}", static_cast<double>(config.*field) / 1e9); }
};

/// An enumeration whose values have the names `names`, in order.
template <auto field, const auto& names>
struct Choice {
  static std::string values() { return fmt::format("one of {}", fmt::join(names, ", ")); }
  static void read(Config& config, const Setting& setting, const std::string& text) {
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) refuse(setting, text);
    config.*field = static_cast<std::remove_reference_t<decltype(config.*field)>>(found - names.begin());
  }
  static std::string show(const Config& config) { return std::string(names[static_cast<std::size_t>(config.*field)]); }
};

template <class Kind>
constexpr Setting row(const char* variable, const char* meaning, bool is_of_launcher = false) {
  return {variable, meaning, is_of_launcher, &Kind::values, &Kind::read, &Kind::show};
}

constexpr int most_ranks = static_cast<int>(max_ranks);
static_assert(default_gpu_heap_bytes >> 20 == 1024 && default_host_heap_bytes >> 20 == 256, "as the row below says");

constexpr std::array rows = {
    row<Number<&Config::size, 1, most_ranks>>("BEELINE_SIZE", "ranks in the world", true),
    row<Rank>("BEELINE_RANK", "this process's rank", true),
    row<Text<&Config::rendezvous>>("BEELINE_RENDEZVOUS", "host:port of the launcher's server", true),
    row<Secret<&Config::token>>("BEELINE_TOKEN", "the world's secret"),
    row<Flag<&Config::secure>>("BEELINE_SECURE",
                               "1: TLS 1.3 with keys from the token, for the rendezvous and between nodes, which "
                               "sockets connect"),
    row<Flag<&Config::threads>>("BEELINE_THREADS", "1: all ranks are threads of this process"),
    row<Text<&Config::device>>("BEELINE_DEVICE", "auto, cpu, cuda:ID[,ID...], or an entry for each rank: cuda:0,cpu"),
    row<Seconds<&Config::deadline_ns>>("BEELINE_DEADLINE_S", "seconds after which a wait fails"),
    row<Seconds<&Config::stream_deadline_ns>>(
        "BEELINE_STREAM_DEADLINE_S",
        "seconds after which the host's wait for a stream fails: kernels run this long at most"),
    row<Bytes<&Config::heap_bytes, 0>>(
        "BEELINE_HEAP_BYTES", "symmetric heap of a rank; 0: 1024 MiB, or 256 MiB if some ranks are host ranks"),
    row<Bytes<&Config::pinned_heap_bytes, 0>>("BEELINE_PINNED_HEAP_BYTES", "host-memory heap of a rank"),
    row<Number<&Config::slot_shift, min_slot_shift, max_slot_shift>>(
        "BEELINE_SLOT_SHIFT", "log2 of a rank's slot in the address range; raised for heaps that need larger slots"),
    row<Bytes<&Config::chunk_bytes, 1>>("BEELINE_CHUNK_BYTES", "chunk of staged, pipelined transfers"),
    row<Bytes<&Config::hybrid_threshold_bytes, 0>>(
        "BEELINE_HYBRID_THRESHOLD_BYTES", "longest hybrid transfer that goes directly; 0: it depends on the path"),
    row<Bytes<&Config::hybrid_chunk_bytes, 1>>("BEELINE_HYBRID_CHUNK_BYTES", "largest chunk of hybrid transfers"),
    row<Number<&Config::hybrid_chunks, 1, 64>>("BEELINE_HYBRID_CHUNKS", "chunks of a hybrid transfer in flight"),
    row<Flag<&Config::peer_access>>(
        "BEELINE_PEER_ACCESS", "0: copies are staged through host memory, as if no device reached another's memory"),
    row<Number<&Config::split_nodes, 1, most_ranks>>(
        "BEELINE_SPLIT_NODES",
        "nodes that each machine counts as; ranks of different nodes communicate over the network"),
    row<Text<&Config::transports>>("BEELINE_TRANSPORTS",
                                   "transports between nodes, in order of preference, each with its settings: "
                                   "ucx,sockets:delay_us=100; empty: the first one that this build has"),
    row<Choice<&Config::gpu_payloads, gpu_payloads_names>>(
        "BEELINE_GPU_PAYLOADS",
        "how long payloads in GPU memory go to other nodes: staged by this library, or by ucx and its CUDA transports"),
    row<Choice<&Config::memory_keys, memory_keys_names>>("BEELINE_MEMORY_KEYS",
                                                         "which puts to and gets from other nodes use memory keys"),
    row<Choice<&Config::wait_policy, policy_names>>("BEELINE_WAIT_POLICY", "what CPU threads do between polls"),
    row<Number<&Config::wait_period_us, 1, 1'000'000>>("BEELINE_WAIT_PERIOD_US",
                                                       "time between polls of a thread that sleeps, microseconds"),
    row<Number<&Config::engine_threads, 1, 8>>("BEELINE_ENGINE_THREADS", "threads of a rank that serve command queues"),
    row<Number<&Config::engine_poll_us, 0, 1'000'000>>(
        "BEELINE_ENGINE_POLL_US", "time between polls of an idle engine thread, microseconds; 0: it spins"),
    row<Numbers<&Config::engine_cores, 0, 1 << 20>>(
        "BEELINE_ENGINE_CORES", "cores that engine threads are bound to, in turn; empty: those near the rank's GPU"),
    row<Flag<&Config::check>>(
        "BEELINE_CHECK",
        "1: warns of a signal whose word already has its value, by CPU threads: a wait cannot tell it from the one "
        "before"),
    row<Flag<&Config::cpu_stores>>(
        "BEELINE_CPU_STORES",
        "0: engine threads leave words for GPU memory to streams, also where CPUs can store there"),
    row<Number<&Config::host_threads, 1, 256>>("BEELINE_HOST_THREADS", "CPU threads that run one block on a host rank"),
    row<Text<&Config::powercap>>("BEELINE_POWERCAP", "folder of the kernel's energy counters (RAPL)"),
    row<Choice<&Config::log_level, level_names>>("BEELINE_LOG", "most detailed log level"),
};

}  // namespace

std::span<const Setting> detail::settings() { return rows; }

void detail::read_environment(Config& config, bool of_launcher) {
  for (const Setting& setting : rows)
    if (const auto text = environment(setting.variable); text && (of_launcher || !setting.is_of_launcher))
      setting.read(config, setting, *text);
}

const char* name(WaitPolicy policy) noexcept { return policy_names[static_cast<std::size_t>(policy)].data(); }

}  // namespace beeline
