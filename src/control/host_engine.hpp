// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The engine of host threads (docs/control.md).

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "beeline/control/engine_statistics.hpp"
#include "beeline/transport/engine.hpp"
#include "control/refusals.hpp"

namespace beeline {

class EngineThread;
class GpuWindows;
class HostTriggers;

/// How an engine's threads run.
struct EngineOptions {
  int threads = 1;
  int poll_us = 100;         ///< time between looks of an idle thread; 0: it spins
  std::vector<int> cores{};  ///< cores for the threads of all ranks, in turn; empty: see `near`
  std::vector<int> near{};   ///< cores near the rank's device: without `cores` its threads run there; empty: anywhere
  bool is_timed = false;     ///< whether the parts of its work are timed
  std::shared_ptr<const GpuWindows> windows{};  ///< on GPU memory that the threads store into; nullptr: none
  std::string reason = "threads of the host carry operations";  ///< the reason in routes to peers
};

/// Serves command queues of one rank, and the rings of operations that a world routes to it. Thread-safe after `serve`.
class HostEngine final : public Engine {
 public:
  explicit HostEngine(EngineOptions options = {});
  /// Serves `client` at once. Throws as `serve`.
  HostEngine(const EngineClient& client, EngineOptions options);
  /// Ends the threads; unfinished commands stay unfinished.
  ~HostEngine() override;

  /// Whether engines of this process have threads that call a GPU's driver, which other callers of the driver can
  /// delay.
  [[nodiscard]] static bool call_driver() { return of_gpus_ > 0; }

  [[nodiscard]] PeerRoute route_to(int) const override { return {PeerAccess::engine, options_.reason}; }
  /// Throws no_resource if the system gives no threads, invalid_argument for a core that this process may not use.
  void serve(const EngineClient& client) override;

  /// Serves a source from now on, by the thread that has the fewest sources.
  ///   source  must live until its removal, or this engine's end
  ///   mirror  see CommandWorker::end_ring
  void add(CommandSource& source, std::uint64_t* mirror = nullptr);
  /// Ends the service of a source. Returns once no thread uses the source; commands that have begun are over.
  void remove(const CommandSource& source);
  /// From now on, counts the triggers posted to a source that this engine serves, and carries out the operations that
  /// they fire, until the source is removed.
  void serve_triggers(const CommandSource& source, HostTriggers& table, std::uint32_t queue);

  [[nodiscard]] EngineStatistics statistics() const;
  /// Refusals of commands, by source.
  [[nodiscard]] Refusals& refusals() { return refusals_; }

 private:
  static std::atomic<int> of_gpus_;  ///< engines of GPU ranks
  const EngineOptions options_;
  bool is_of_gpu_ = false;
  std::deque<CommandReader> own_;  ///< the rings of operations that are routed to this engine
  Refusals refusals_;
  std::mutex mutex_;  ///< guards the distribution of sources
  std::vector<std::unique_ptr<EngineThread>> threads_;
};

/// Makes host engines, which carry all operations of their ranks.
class HostEngines final : public EngineMaker {
 public:
  explicit HostEngines(EngineOptions options = {}) : options_(std::move(options)) {}
  [[nodiscard]] std::unique_ptr<Engine> make(int rank, const std::vector<Device>& devices) const override;

 private:
  const EngineOptions options_;
};

}  // namespace beeline
