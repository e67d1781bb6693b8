// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One step of each means of communication, around the ring of a team's members, with a check of what arrives.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"

namespace beeline_test {

/// Adds the value of its arguments to the object.
struct AddTask {
  static constexpr const char* name = "add";
  struct Arguments {
    std::uint64_t value;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const beeline::Context&, const beeline::Task& task) const {
    if (group.thread_rank() == 0) *static_cast<std::uint64_t*>(task.object) += task.as<Arguments>().value;
  }
};
using AddTasks = beeline::TaskList<AddTask>;

/// The objects that the steps use; created by all members of a team.
struct EveryObject {
  explicit EveryObject(beeline::Team& of)
      : team(of), world(of.world()), next((of.rank() + 1) % of.size()),
        previous((of.rank() + of.size() - 1) % of.size()) {
    tasks.register_function<AddTask>({sum.data(), nullptr, 0, nullptr});
  }

  beeline::Team& team;
  beeline::World& world;
  const int next, previous;  ///< in the team
  std::uint64_t round = 0;   ///< of steps
  static constexpr std::size_t count = 10'000;
  beeline::SymmetricArray<std::uint64_t> out{team, count}, in{team, count}, sum{team, 1}, results{team, 2};
  beeline::Signals arrived{team, 1};
  beeline::Collectives collectives{team};
  beeline::Messages messages{team};
  beeline::PacketRings packets{team, 256, 4};
  beeline::CommandQueues queues{team}, device_queues{team, 1, {.engine = beeline::EngineKind::device}};
  beeline::Triggers engine{team};
  beeline::Triggers guarded{team, {.by = beeline::TriggeredBy::guarded_stream}};
  beeline::Triggers streams{team, {.by = beeline::TriggeredBy::stream}};
  beeline::Tasks<AddTasks> tasks{team, {.queues = 1, .depth = 4, .workers = 1}};
  beeline::HybridTransfers hybrid{team, {.threshold_bytes = 1, .chunk_bytes = 4096, .chunks = 2}};
  beeline::StagedChannel staged{world, 4096, 2};
  std::optional<beeline::DistributedArray<std::uint64_t>> array{std::in_place, world, count * 64};
};

/// One step of all members. Throws if the world fails, or if the data that arrive are wrong.
struct Path {
  const char* name;
  void (*step)(EveryObject&);
  bool on_gpus = true;  ///< otherwise GPU ranks do nothing
};

/// The paths of host ranks and of GPU ranks.
[[nodiscard]] const std::vector<Path>& every_path();

/// Two steps of each path.
///   when  of the test, for errors
void use_every_path(EveryObject& use, const char* when);

/// Sends to the next member by each means that does not wait for its receiver. Nothing is received.
void send_in_vain(EveryObject& use);

}  // namespace beeline_test
