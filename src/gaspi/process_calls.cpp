// SPDX-License-Identifier: Apache-2.0
// Starting and ending of ranks, connections, the state of ranks.
#include <fmt/format.h>

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "gaspi/checks.hpp"
#include "gaspi/connections.hpp"
#include "gaspi/life.hpp"
#include "gaspi/service.hpp"

using namespace beeline::gaspi;

namespace {

int node_of(const Process& process, int rank) {
  beeline_device device{};
  device.struct_bytes = sizeof device;
  require_ok(beeline_world_device(process.world(), rank, &device));
  return device.node;
}

/// The number of ranks below `end` on this rank's node.
gaspi_rank_t count_on_node(const Process& process, int end) {
  const int mine = node_of(process, process.rank());
  gaspi_rank_t count = 0;
  for (int rank = 0; rank < end; ++rank)
    if (node_of(process, rank) == mine) ++count;
  return count;
}

/// Waits at most `slice_ns` for a heartbeat of `rank` other than `first`, which it sets if it has no value.
beeline_status ping(Process& process, int rank, std::optional<std::uint64_t>& first, std::uint64_t slice_ns) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(slice_ns);
  do {
    std::uint64_t beats = 0;
    if (!process.health().is_healthy(rank)) return BEELINE_TIMEOUT;
    if (!process.service().read_heartbeat(rank, beats)) return BEELINE_ABORTED;
    if (first.value_or(beats) != beats) return BEELINE_OK;
    first = beats;
    if (slice_ns != 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  } while (std::chrono::steady_clock::now() < end);
  return BEELINE_TIMEOUT;
}

/// The heartbeats at which pings have begun that timed out. The next ping of the rank continues from there.
class Pings {
 public:
  [[nodiscard]] std::optional<std::uint64_t> take(int rank) {
    const std::lock_guard lock(mutex_);
    const auto found = first_.find(rank);
    if (found == first_.end()) return {};
    const std::uint64_t beats = found->second;
    first_.erase(found);
    return beats;
  }
  void keep(int rank, std::uint64_t beats) {
    const std::lock_guard lock(mutex_);
    first_[rank] = beats;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::uint64_t> first_;
} pings;

}  // namespace

extern "C" gaspi_return_t pgaspi_proc_init(gaspi_timeout_t timeout_ms) {
  return call_any_time("gaspi_proc_init", [&] { return begin_process(timeout_ms); });
}

extern "C" gaspi_return_t pgaspi_proc_term(gaspi_timeout_t timeout_ms) {
  return call_any_time("gaspi_proc_term", [&] { return end_process(timeout_ms); });
}

extern "C" gaspi_return_t pgaspi_initialized(gaspi_number_t* initialized) {
  return call_any_time("gaspi_initialized", [&] {
    require_pointer(initialized, "initialized");
    *initialized = Process::running() != nullptr ? 1 : 0;
  });
}

extern "C" gaspi_return_t pgaspi_proc_num(gaspi_rank_t* proc_num) {
  return answer_by("gaspi_proc_num", proc_num, "proc_num", [](const Process& process) { return process.size(); });
}

extern "C" gaspi_return_t pgaspi_proc_rank(gaspi_rank_t* rank) {
  return answer_by("gaspi_proc_rank", rank, "rank", [](const Process& process) { return process.rank(); });
}

extern "C" gaspi_return_t pgaspi_proc_local_rank(gaspi_rank_t* local_rank) {
  return answer_by("gaspi_proc_local_rank", local_rank, "local_rank",
                   [](const Process& process) { return count_on_node(process, process.rank()); });
}

extern "C" gaspi_return_t pgaspi_proc_local_num(gaspi_rank_t* local_num) {
  return answer_by("gaspi_proc_local_num", local_num, "local_num",
                   [](const Process& process) { return count_on_node(process, process.size()); });
}

extern "C" gaspi_return_t pgaspi_proc_kill(gaspi_rank_t rank, gaspi_timeout_t timeout_ms) {
  return call("gaspi_proc_kill", [&](Process& process) {
    require_rank(process, rank);
    if (rank == process.rank()) refuse(GASPI_ERR_INV_RANK, "a rank does not end itself");
    return process.service().perform({.action = Action::kill, .id = rank}, {.what = "the end of rank", .number = rank},
                                     timeout_ms);
  });
}

extern "C" gaspi_return_t pgaspi_connect(gaspi_rank_t rank, gaspi_timeout_t) {
  return call("gaspi_connect", [&](Process& process) {
    require_rank(process, rank);
    if (!process.health().is_healthy(rank))
      throw Failure(fmt::format("rank {} has failed: {}", rank, process.health().reason(rank)));
    process.connections().set(rank, true);
  });
}

extern "C" gaspi_return_t pgaspi_disconnect(gaspi_rank_t rank, gaspi_timeout_t) {
  return call("gaspi_disconnect", [&](Process& process) {
    require_rank(process, rank);
    process.connections().set(rank, false);
  });
}

extern "C" gaspi_return_t pgaspi_state_vec_get(gaspi_state_vector_t state_vector) {
  return call("gaspi_state_vec_get", [&](const Process& process) {
    require_pointer(state_vector, "state_vector");
    for (int rank = 0; rank < process.size(); ++rank)
      state_vector[rank] = process.health().is_healthy(rank) ? GASPI_STATE_HEALTHY : GASPI_STATE_CORRUPT;
  });
}

extern "C" gaspi_return_t pgaspi_proc_ping(gaspi_rank_t rank, gaspi_timeout_t timeout_ms) {
  return call("gaspi_proc_ping", [&](Process& process) {
    require_rank(process, rank);
    const int needed[] = {rank};
    std::optional<std::uint64_t> first = pings.take(rank);
    const Awaited awaited{.what = "an answer of rank", .number = rank, .needed = needed};
    const Result result =
        wait_for(process, awaited, timeout_ms, [&](std::uint64_t ns) { return ping(process, rank, first, ns); });
    if (result == Result::timeout && first) pings.keep(rank, *first);
    return result;
  });
}

GASPI_EXPORT(proc_init);
GASPI_EXPORT(proc_term);
GASPI_EXPORT(initialized);
GASPI_EXPORT(proc_num);
GASPI_EXPORT(proc_rank);
GASPI_EXPORT(proc_local_rank);
GASPI_EXPORT(proc_local_num);
GASPI_EXPORT(proc_kill);
GASPI_EXPORT(connect);
GASPI_EXPORT(disconnect);
GASPI_EXPORT(state_vec_get);
GASPI_EXPORT(proc_ping);
