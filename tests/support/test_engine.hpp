// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// An engine for tests: a thread for each rank, which does what is posted to peers that loads and stores could reach,
/// too: on a host rank by itself, on a GPU rank by its copy engine and kernels of one thread.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "beeline/transport/engine.hpp"

namespace beeline_test {

/// How engines of a world behave. All peers are reached by them, unless said otherwise.
struct EnginePlan {
  int direct_peer = -1;                           ///< reached by loads and stores
  int refused_peer = -1;                          ///< reached by nothing
  std::string reason = "a test says so";          ///< of every route that is not direct
  std::uint64_t stuck_after = ~std::uint64_t{0};  ///< commands of a ring that are served; then none is, for ever
  int pause_us = 0;                               ///< before each look at the rings
  int ns_per_byte = 0;                            ///< that a put or get takes
  std::shared_ptr<std::atomic<bool>> gate;        ///< while it is false, no command is served; nullptr: all are
};

/// What an engine does commands with, in their order.
class CommandWorker {
 public:
  virtual ~CommandWorker() = default;
  /// Begins a put or get.
  virtual void move(const beeline::Command& command, std::byte* remote) = 0;
  /// Begins to change a word; what it held is `result(slot)` when all is over.
  virtual void change(const beeline::Command& command, std::byte* remote, std::size_t slot) = 0;
  /// Whether all that was begun is over.
  [[nodiscard]] virtual bool over() = 0;
  [[nodiscard]] virtual std::uint64_t result(std::size_t slot) const = 0;
};

/// Commands that are under way at a time, of one ring.
inline constexpr std::size_t engine_batch = 64;

/// That of a GPU rank; throws unavailable in builds without CUDA.
[[nodiscard]] std::unique_ptr<CommandWorker> make_gpu_worker(const beeline::EngineClient& client);

class TestEngines final : public beeline::EngineMaker {
 public:
  explicit TestEngines(EnginePlan plan = {}) : plan_(std::move(plan)) {}
  [[nodiscard]] std::unique_ptr<beeline::Engine> make(int rank,
                                                      const std::vector<beeline::Device>& devices) const override;

 private:
  const EnginePlan plan_;
};

}  // namespace beeline_test
