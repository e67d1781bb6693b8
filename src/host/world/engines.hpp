// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The engines of a rank: one for peers that loads and stores do not reach, and one for command queues.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/transport/engine.hpp"
#include "control/host_engine.hpp"
#include "control/refusals.hpp"

namespace beeline {

/// Thread-safe.
class Engines {
 public:
  ///   config       outlives this object
  ///   make_client  describes this rank to an engine
  Engines(const Config& config, const Device& device, std::function<EngineClient()> make_client)
      : config_(config), device_(device), make_client_(std::move(make_client)) {}

  /// Sets the engine of peers that loads and stores do not reach.
  void use(std::unique_ptr<Engine> engine) { of_peers_ = std::move(engine); }
  /// The engine of peers that loads and stores do not reach; nullptr: there are no such peers.
  [[nodiscard]] Engine* of_peers() const { return of_peers_.get(); }

  /// An engine for command queues, configured by `config` except for its number of threads.
  [[nodiscard]] std::unique_ptr<HostEngine> make_host_engine(int threads, bool is_timed);
  /// The engine that serves command queues; the first call starts it.
  [[nodiscard]] HostEngine& of_queues();
  [[nodiscard]] EngineClient client() const { return make_client_(); }

  /// Refusals of commands by device engines, by ring.
  [[nodiscard]] Refusals& device_refusals() { return device_refusals_; }
  /// Refusals by engines of command queues since the last call.
  [[nodiscard]] std::vector<std::string> take_refusals();

  /// Keeps a buffer that an engine may still use after a deadline.
  void abandon(std::vector<std::byte> buffer);
  /// Ends the engines' threads.
  void end();

 private:
  /// Opens windows on the node's GPU memory when an engine first needs them.
  void open_windows();

  const Config& config_;
  const Device device_;
  const std::function<EngineClient()> make_client_;
  Refusals device_refusals_;
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> abandoned_;  ///< guarded by mutex_, as are the members below
  std::unique_ptr<HostEngine> of_queues_;          ///< nullptr until the first queues are made
  std::once_flag windows_are_open_;
  std::shared_ptr<const GpuWindows> windows_;  ///< for engines of command queues; nullptr: none, or not needed yet
  std::unique_ptr<Engine> of_peers_;
};

}  // namespace beeline
