// SPDX-License-Identifier: Apache-2.0
// One suite over methods, groups, memory kinds and kinds of world: every shape of world runs every case that suits it.
#include "tests/conformance/suite.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "tests/support/standing_ranks.hpp"
#include "tests/support/test_engine.hpp"

namespace beeline_test {

using beeline::Config;
using beeline::World;

namespace {

bool is_mixed(Devices devices) { return devices == Devices::cpus_and_a_gpu || devices == Devices::cpus_and_two_gpus; }

/// Names a shape: GoogleTest's test suite.
std::string name_of(const WorldShape& shape) {
  constexpr std::array names = {"cpu", "gpus", "one_gpu", "cpus_and_a_gpu", "cpus_and_two_gpus"};
  return fmt::format("{}_{}_{}{}{}", shape.kind == WorldKind::threads ? "threads" : "processes", shape.size,
                     names[static_cast<std::size_t>(shape.devices)],
                     shape.host_threads > 1 ? fmt::format("_{}_host_threads", shape.host_threads) : "",
                     shape.routed        ? "_routed"
                     : shape.peer_access ? ""
                                         : "_no_peer_access");
}

/// What BEELINE_DEVICE says in such a world: a GPU first, or not.
std::string device_choice(const WorldShape& shape) {
  if (shape.devices == Devices::cpu) return "cpu";
  if (shape.devices == Devices::one_gpu) return "cuda:0";
  std::string list = shape.devices == Devices::cpus_and_a_gpu && shape.size > 2 ? "cpu,cuda:0" : "cuda:0,cpu";
  if (shape.devices == Devices::cpus_and_two_gpus) list += ",cuda:1";
  for (auto entries = std::count(list.begin(), list.end(), ',') + 1; entries < shape.size; ++entries) list += ",cpu";
  return list;
}

Config config_of(const WorldShape& shape) {
  Config config = test_config();
  config.host_threads = shape.host_threads;
  if (shape.devices != Devices::gpus) config.device = device_choice(shape);
  if (!shape.peer_access) {
    config.peer_access = false;
    config.chunk_bytes = 50'000;  // several in most copies
  }
  if (shape.routed) config.engines = std::make_shared<TestEngines>();
  return config;
}

/// Why this machine cannot run the shape; empty if it can.
std::string reason(const WorldShape& shape) {
  if (under_thread_sanitizer && shape.kind == WorldKind::processes) return "ThreadSanitizer sees one process";
  if (shape.devices == Devices::cpu) return {};
  std::string why;
  const int gpus = gpus_here(&why);
  if (gpus == 0) return "no GPU: " + why;
  if (shape.devices == Devices::cpus_and_two_gpus && gpus < 2) return "one GPU, two are needed";
  if (!is_mixed(shape.devices) && shape.kind == WorldKind::processes && gpus < shape.size)
    return fmt::format("{} processes need a GPU each, {} here", shape.size, gpus);
  return {};
}

struct ShapeCases {
  WorldShape shape;
  std::vector<Case> cases;
};

/// One rank's part of a case. Returns why it was skipped.
std::string run_case(World& world, const Case& each) {
  try {
    RankTest test(world, each.name);
    each.body(test);
    return {};
  } catch (const CaseSkipped& skipped) {
    return skipped.what();
  }
}

/// One case of a shape. The cases of a shape share a world, until one fails.
class ShapeTest : public ::testing::Test {
 public:
  ShapeTest(std::shared_ptr<const ShapeCases> shape, std::size_t number)
      : shape_(std::move(shape)), number_(static_cast<int>(number)) {}

  static void TearDownTestSuite() {
    if (ranks_) expect_all_passed(ranks_->end());
    ranks_.reset();
  }

  void TestBody() override {
    if (const std::string why = reason(shape_->shape); !why.empty()) GTEST_SKIP() << why;
    if (!ranks_)
      ranks_ = std::make_unique<StandingRanks>(shape_->shape.kind, shape_->shape.size, config_of(shape_->shape),
                                               [shape = shape_](World& world, int number) {
                                                 return run_case(world, shape->cases[static_cast<std::size_t>(number)]);
                                               });
    const StandingRanks::Result result = ranks_->run(number_);
    if (ranks_->ended()) ranks_.reset();
    expect_all_passed(result.outcomes);
    if (!result.skipped.empty()) GTEST_SKIP() << result.skipped;
  }

 private:
  inline static std::unique_ptr<StandingRanks> ranks_;

  std::shared_ptr<const ShapeCases> shape_;
  int number_;
};

}  // namespace

std::vector<Case> conformance_cases(const WorldShape& shape) {
  if (shape.crowd) return crowd_cases();
  if (shape.routed) return routed_cases();
  std::vector<std::vector<Case>> kinds = {access_cases(), memory_cases(), stream_cases(), staged_cases(),
                                          wait_any_cases()};
  if (!shape.peer_access)
    kinds = {copy_cases(), registered_cases(), stream_cases(), staged_cases()};
  else
    for (const auto& some :
         {distributed_cases(), registered_cases(), put_get_cases(), bulk_cases(), strided_cases(), signal_cases(),
          context_cases(), atomic_cases(), barrier_cases(), team_cases(), packet_cases(), packets128_cases()})
      kinds.push_back(some);
  std::vector<Case> all;
  for (const std::vector<Case>& some : kinds) all.insert(all.end(), some.begin(), some.end());
  return all;
}

std::vector<Case> routed_cases() {
  std::vector<Case> all;
  for (const auto& some : {put_get_cases(), bulk_cases(), strided_cases(), signal_cases(), wait_any_cases(),
                           atomic_cases(), route_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

std::vector<Case> copy_cases() {
  std::vector<Case> all;
  for (const auto& some : {memory_cases(), distributed_cases()})
    for (const Case& each : some)
      if (const std::string_view name = each.name;
          name != "kernels_store_to_global_addresses" && name != "elements_by_plain_pointer")
        all.push_back(each);
  return all;
}

std::vector<Case> collective_cases() {
  std::vector<Case> all;
  for (const auto& some : {allreduce_cases(), grid_session_cases(), movement_cases(), named_barrier_cases(),
                           reduce_cases(), special_value_cases(), team_channel_cases(), typed_collective_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

std::vector<WorldShape> channel_shapes(std::initializer_list<int> crowds) {
  constexpr WorldKind threads = WorldKind::threads, processes = WorldKind::processes;
  // Processes first: what runs all shapes in one process must fork before its threads use CUDA.
  std::vector<WorldShape> shapes = {{processes, 2, 1, Devices::cpu, false},
                                    {processes, 4, 2, Devices::cpu, false},
                                    {processes, 2, 1, Devices::gpus, false},
                                    {processes, 4, 1, Devices::gpus, false},
                                    {processes, 4, 1, Devices::cpus_and_a_gpu, false},
                                    {threads, 1, 1, Devices::cpu, false},
                                    {threads, 2, 3, Devices::cpu, false},
                                    {threads, 5, 1, Devices::cpu, false},
                                    {threads, 1, 1, Devices::gpus, false},
                                    {threads, 3, 1, Devices::one_gpu, false},
                                    {threads, 2, 1, Devices::gpus, false},
                                    {threads, 4, 1, Devices::gpus, false},
                                    {threads, 2, 1, Devices::cpus_and_a_gpu, false}};
  for (const int ranks : crowds) shapes.push_back({threads, ranks, 1, Devices::cpu, true});
  return shapes;
}

bool register_shapes(const std::vector<WorldShape>& shapes, std::vector<Case> (*cases_of)(const WorldShape&)) {
  for (const WorldShape& shape : shapes) {
    const auto registered = std::make_shared<ShapeCases>(ShapeCases{shape, {}});
    for (const Case& each : cases_of(shape))
      if (each.least_ranks <= shape.size) registered->cases.push_back(each);
    for (std::size_t number = 0; number < registered->cases.size(); ++number)
      ::testing::RegisterTest(name_of(shape).c_str(), registered->cases[number].name, nullptr, nullptr, __FILE__,
                              __LINE__,
                              [registered, number]() -> ShapeTest* { return new ShapeTest(registered, number); });
  }
  return true;
}

}  // namespace beeline_test
