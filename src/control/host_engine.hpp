// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The engine of a rank: host threads that serve command queues (docs/control.md).

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "beeline/control/engine_statistics.hpp"
#include "beeline/transport/engine.hpp"

namespace beeline {

class EngineThread;
class GpuWindows;
class TriggerTable;

/// How an engine's threads run.
struct EngineOptions {
  int threads = 1;
  int poll_us = 100;         ///< between looks of a thread that has nothing to do; 0: it spins
  std::vector<int> cores{};  ///< that the threads of all ranks are bound to, in turn; none: see `near`
  std::vector<int> near{};   ///< cores near the rank's device: without `cores` its threads run there; none: anywhere
  bool is_timed = false;     ///< whether the parts of its work are timed
  std::shared_ptr<const GpuWindows> windows{};  ///< on GPU memory that the threads store into; nullptr: none
};

/// Serves command queues of one rank. Thread-safe.
class HostEngine {
 public:
  /// Throws no_resource where the system gives no threads, invalid_argument for a core that this process has not.
  HostEngine(const EngineClient& client, const EngineOptions& options);
  /// Ends the threads; commands that are not done by then stay so.
  ~HostEngine();
  HostEngine(const HostEngine&) = delete;
  HostEngine& operator=(const HostEngine&) = delete;

  /// Whether threads of engines of this process call a GPU's driver, which other callers hold up.
  [[nodiscard]] static bool call_driver() { return of_gpus_ > 0; }

  /// Serves a ring from now on, by the thread that has the fewest.
  void add(CommandRing& ring, std::uint64_t* told = nullptr);
  /// No longer; returns when no thread uses it any more. What has begun is over.
  void remove(CommandRing& ring);
  /// Counts the triggers that are posted to these rings, which it serves, and does what they fire, until it serves them
  /// no longer.
  void serve_triggers(CommandRing& ring, TriggerTable& table, std::uint32_t queue);

  [[nodiscard]] EngineStatistics statistics() const;
  /// Why the first command of a ring was refused that was; empty: none.
  [[nodiscard]] std::string refusal(const CommandRing& ring) const;
  /// The same of all rings, of those that were not taken before.
  [[nodiscard]] std::vector<std::string> take_refusals();

 private:
  static std::atomic<int> of_gpus_;  ///< engines of GPU ranks
  const bool is_of_gpu_;
  const std::shared_ptr<const GpuWindows> windows_;
  std::mutex mutex_;  ///< of the distribution of rings
  std::vector<std::unique_ptr<EngineThread>> threads_;
};

}  // namespace beeline
