// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The engines of a rank: that of peers that loads and stores do not reach, and that of command queues.

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

/// Any thread may use it.
class Engines {
 public:
  ///   config       outlives it
  ///   make_client  describes this rank to an engine
  Engines(const Config& config, const Device& device, std::function<EngineClient()> make_client)
      : config_(config), device_(device), make_client_(std::move(make_client)) {}

  /// Takes the engine of peers that loads and stores do not reach.
  void use(std::unique_ptr<Engine> engine) { of_peers_ = std::move(engine); }
  /// nullptr: there are no such peers.
  [[nodiscard]] Engine* of_peers() const { return of_peers_.get(); }

  /// An engine for command queues, as the configuration has it but for its number of threads.
  [[nodiscard]] std::unique_ptr<HostEngine> make_host_engine(int threads, bool is_timed);
  /// The engine that serves command queues; starts it.
  [[nodiscard]] HostEngine& of_queues();
  [[nodiscard]] EngineClient client() const { return make_client_(); }

  /// Of the commands of device engines, by ring.
  [[nodiscard]] Refusals& device_refusals() { return device_refusals_; }
  /// What engines of command queues have refused since the last call.
  [[nodiscard]] std::vector<std::string> take_refusals();

  /// Keeps a buffer that an engine may still use after a deadline.
  void abandon(std::vector<std::byte> buffer);
  /// Ends the engines' threads.
  void end();

 private:
  /// Opens windows on the node's GPU memory, the first time that an engine needs them.
  void open_windows();

  const Config& config_;
  const Device device_;
  const std::function<EngineClient()> make_client_;
  Refusals device_refusals_;
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> abandoned_;  ///< guarded by mutex_, as what follows
  std::unique_ptr<HostEngine> of_queues_;          ///< nullptr until the first queues are made
  std::once_flag windows_are_open_;
  std::shared_ptr<const GpuWindows> windows_;  ///< of engines of command queues; nullptr: none, or none needed yet
  std::unique_ptr<Engine> of_peers_;
};

}  // namespace beeline
