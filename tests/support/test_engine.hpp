// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// An engine for tests. It carries out commands also to peers that loads and stores could reach; it can be slow, or
/// stop.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "beeline/transport/engine.hpp"

namespace beeline_test {

/// How engines of a world behave. They serve all peers unless a field says otherwise.
struct EnginePlan {
  int direct_peer = -1;                           ///< this peer is reached by loads and stores
  int refused_peer = -1;                          ///< this peer is not reached at all
  std::string reason = "a test says so";          ///< given for every route that is not direct
  std::uint64_t stuck_after = ~std::uint64_t{0};  ///< commands of a ring that are served; later ones never are
  int pause_us = 0;                               ///< before each poll of the rings
  int ns_per_byte = 0;                            ///< time that a put or get takes
  bool reorders = false;                          ///< commands to different peers: the highest rank's come first
  std::shared_ptr<std::atomic<bool>> gate;        ///< while it is false, no command is served; nullptr: all are served
};

class TestEngines final : public beeline::EngineMaker {
 public:
  explicit TestEngines(EnginePlan plan = {}) : plan_(std::move(plan)) {}
  [[nodiscard]] std::unique_ptr<beeline::Engine> make(int rank,
                                                      const std::vector<beeline::Device>& devices) const override;

 private:
  const EnginePlan plan_;
};

/// Makes the library's engines of host threads.
[[nodiscard]] std::shared_ptr<const beeline::EngineMaker> host_engines();

}  // namespace beeline_test
