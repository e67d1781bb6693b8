// SPDX-License-Identifier: Apache-2.0
// One suite over methods, groups, memory kinds and kinds of world: every shape of world runs each case that suits it.
#include "tests/conformance/suite.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "beeline/transports/transports.hpp"
#include "tests/support/standing_ranks.hpp"
#include "tests/support/test_engine.hpp"

namespace beeline_test {

using beeline::Config;
using beeline::World;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool under_address_sanitizer = true;
#else
constexpr bool under_address_sanitizer = false;
#endif

bool is_mixed(Devices devices) { return devices == Devices::cpus_and_a_gpu || devices == Devices::cpus_and_two_gpus; }

/// An engine that carries transfers to other ranks in routed shapes, which run once for each such engine.
struct EngineRow {
  const char* name;
  bool on_gpus;       ///< it serves GPU ranks, too
  bool same_threads;  ///< its threads act like those of the library's engine
  std::shared_ptr<const beeline::EngineMaker> (*make)();
};
const EngineRow engine_rows[] = {
    {"routed", true, true,
     []() -> std::shared_ptr<const beeline::EngineMaker> {
       EnginePlan plan;
       plan.reorders = true;  // so that no case depends on more order than is guaranteed
       return std::make_shared<TestEngines>(plan);
     }},
    {"by_library", true, false, []() -> std::shared_ptr<const beeline::EngineMaker> { return host_engines(); }}};

/// The engines for a shape; nullptr: ranks use no engine.
std::vector<const EngineRow*> engines_of(const WorldShape& shape) {
  if (!shape.routed) return {nullptr};
  std::vector<const EngineRow*> all;
  for (const EngineRow& row : engine_rows)
    if (row.on_gpus || shape.devices == Devices::cpu) all.push_back(&row);
  return all;
}

/// The name of a shape, which is GoogleTest's test suite.
std::string name_of(const WorldShape& shape, const EngineRow* engine) {
  constexpr std::array names = {"cpu", "gpus", "one_gpu", "cpus_and_a_gpu", "cpus_and_two_gpus"};
  const std::string_view list = shape.transports;
  const std::string transport =
      std::string(list.substr(0, list.find_first_of(":,"))) + (shape.secure ? "_with_tls" : "");
  return fmt::format("{}_{}_{}{}{}", shape.kind == WorldKind::threads ? "threads" : "processes", shape.size,
                     names[static_cast<std::size_t>(shape.devices)],
                     shape.nodes > 1 ? fmt::format("_on_{}_nodes{}{}", shape.nodes, shape.keyed ? "_by_keys" : "",
                                                   transport.empty() ? "" : "_by_" + transport)
                     : shape.host_threads > 1 ? fmt::format("_{}_host_threads", shape.host_threads)
                                              : "",
                     engine != nullptr   ? fmt::format("_{}", engine->name)
                     : shape.peer_access ? ""
                                         : "_no_peer_access");
}

/// BEELINE_DEVICE for such a world: the first rank has a GPU, or has not.
std::string device_choice(const WorldShape& shape) {
  if (shape.devices == Devices::cpu) return "cpu";
  if (shape.devices == Devices::one_gpu) return "cuda:0";
  std::string list = shape.devices == Devices::cpus_and_a_gpu && shape.size > 2 ? "cpu,cuda:0" : "cuda:0,cpu";
  if (shape.devices == Devices::cpus_and_two_gpus) list += ",cuda:1";
  for (auto entries = std::count(list.begin(), list.end(), ',') + 1; entries < shape.size; ++entries) list += ",cpu";
  return list;
}

Config config_of(const WorldShape& shape, const EngineRow* engine) {
  Config config = test_config();
  config.host_threads = shape.host_threads;
  config.split_nodes = shape.nodes;
  config.transports = shape.transports;
  config.secure = shape.secure;
  if (shape.keyed) config.memory_keys = beeline::MemoryKeys::always;
  if (shape.devices != Devices::gpus) config.device = device_choice(shape);
  if (!shape.peer_access) {
    config.peer_access = false;
    config.chunk_bytes = 50'000;  // several in most copies
  }
  if (engine != nullptr) config.engines = engine->make();
  return config;
}

/// Whether a shape need not run under AddressSanitizer, because ThreadSanitizer runs it, and its cases run here with
/// processes, too. Threads that ThreadSanitizer leaves out run here.
bool is_left_to_thread_sanitizer(const WorldShape& shape, const EngineRow* engine) {
  const bool of_cpus = shape.kind == WorldKind::threads && shape.devices == Devices::cpu;
  return of_cpus && shape.size > 1 && shape.nodes == 1 && !shape.crowd && !shape.same_threads &&
         (engine == nullptr || !engine->same_threads);
}

/// Why this machine cannot run the shape; empty if it can.
std::string reason(const WorldShape& shape, const EngineRow* engine) {
  if (under_thread_sanitizer && shape.kind == WorldKind::processes) return "ThreadSanitizer sees one process";
  if (under_thread_sanitizer && (shape.same_threads || (engine != nullptr && engine->same_threads)))
    return "other shapes have the same threads";
  // Worlds without encryption have the same threads, and unit tests cover encrypted connections.
  if (under_thread_sanitizer && shape.secure) return "ThreadSanitizer does not see into OpenSSL";
  if (under_address_sanitizer && is_left_to_thread_sanitizer(shape, engine))
    return "ThreadSanitizer's run has these threads, and processes run the same cases here";
  if (shape.nodes > 1)
    if (std::string why = beeline::no_network_reason(shape.transports, shape.secure); !why.empty()) return why;
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
  const EngineRow* engine;
  std::vector<Case> cases;
};

/// Runs one rank's part of a case. Returns why it was skipped.
std::string run_case(World& world, const Case& each) {
  try {
    RankTest test(world, each.name);
    each.body(test);
    return {};
  } catch (const CaseSkipped& skipped) {
    return skipped.what();
  }
}

/// One case of a shape. The cases of a shape share a world until one fails.
class ShapeTest : public ::testing::Test {
 public:
  ShapeTest(std::shared_ptr<const ShapeCases> shape, std::size_t number)
      : shape_(std::move(shape)), number_(static_cast<int>(number)) {}

  static void TearDownTestSuite() {
    if (ranks_) expect_all_passed(ranks_->end());
    ranks_.reset();
  }

  void TestBody() override {
    if (const std::string why = reason(shape_->shape, shape_->engine); !why.empty()) GTEST_SKIP() << why;
    if (!ranks_)
      ranks_ = std::make_unique<StandingRanks>(shape_->shape.kind, shape_->shape.size,
                                               config_of(shape_->shape, shape_->engine),
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

/// The cases of every group, in the order of the files and of their definitions.
std::map<CaseGroup, std::vector<Case>>& listed_cases() {
  static std::map<CaseGroup, std::vector<Case>> cases;
  return cases;
}

}  // namespace

bool list_case(CaseGroup group, const Case& listed) {
  listed_cases()[group].push_back(listed);
  return true;
}

std::vector<Case> cases_of(std::initializer_list<CaseGroup> groups) {
  std::vector<Case> all;
  for (const CaseGroup group : groups) {
    const std::vector<Case>& some = listed_cases().at(group);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<Case> conformance_cases(const WorldShape& shape) {
  using enum CaseGroup;
  if (shape.crowd) return cases_of({crowded});
  if (shape.nodes > 1 && shape.devices != Devices::cpu)
    return cases_of({distributed, stream, staged, registered, put_get, bulk, strided, signal, wait_any, atomic, barrier,
                     packet, post, trigger, task});
  if (shape.keyed) return cases_of({distributed, stream, registered, put_get, strided, signal, atomic, network});
  if (shape.nodes > 1)
    return cases_of({memory, distributed, stream, staged, registered, put_get, bulk, strided, signal, wait_any, atomic,
                     barrier, packet, network, post, trigger, task});
  if (shape.routed) return cases_of({put_get, bulk, strided, signal, wait_any, atomic, barrier, route, post, trigger});
  if (!shape.peer_access) return cases_of({memory, distributed, registered, stream, staged});
  return cases_of({access,  memory, distributed, pointer, stream,  staged, wait_any, registered, put_get, bulk,
                   strided, signal, context,     atomic,  barrier, team,   packet,   post,       trigger, task});
}

std::vector<WorldShape> channel_shapes(std::initializer_list<int> crowds) {
  constexpr WorldKind threads = WorldKind::threads, processes = WorldKind::processes;
  // Processes first: a program that runs all shapes must fork before its threads use CUDA.
  std::vector<WorldShape> shapes = {
      {processes, 2, 1, Devices::cpu, false},
      {processes, 4, 2, Devices::cpu, false},
      {processes, 2, 1, Devices::gpus, false},
      {processes, 4, 1, Devices::gpus, false},
      {processes, 4, 1, Devices::cpus_and_a_gpu, false},
      {.kind = processes, .size = 5, .nodes = 3},
      {.kind = processes, .size = 2, .devices = Devices::gpus, .nodes = 2},
      {.kind = processes, .size = 3, .devices = Devices::cpus_and_two_gpus, .nodes = 2},
      {.kind = threads, .size = 4, .nodes = 2, .transports = "sockets"},
      {.kind = threads, .size = 2, .host_threads = 2, .nodes = 2, .transports = "sockets", .secure = true},
      {.kind = threads, .size = 2, .devices = Devices::one_gpu, .nodes = 2},
      {.kind = threads, .size = 3, .devices = Devices::one_gpu, .nodes = 2},
      {.kind = threads, .size = 4, .devices = Devices::cpus_and_a_gpu, .nodes = 2},
      {threads, 1, 1, Devices::cpu, false},
      {threads, 2, 3, Devices::cpu, false},
      {threads, 5, 1, Devices::cpu, false},
      {threads, 1, 1, Devices::gpus, false},
      {threads, 3, 1, Devices::one_gpu, false},
      {threads, 2, 1, Devices::gpus, false},
      {threads, 4, 1, Devices::gpus, false},
      {threads, 2, 1, Devices::cpus_and_a_gpu, false}};
  for (const int ranks : crowds)
    shapes.push_back({.kind = threads, .size = ranks, .crowd = true, .same_threads = ranks != std::min(crowds)});
  return shapes;
}

int run_suite(int argc, char** argv, const std::vector<WorldShape>& shapes,
              std::vector<Case> (*suitable)(const WorldShape&)) {
  ::testing::InitGoogleTest(&argc, argv);
  // UCX's hooks of memory functions run in threads whose end the sanitizer has already seen.
  if (under_thread_sanitizer) ::setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 0);
  for (const WorldShape& shape : shapes)
    for (const EngineRow* engine : engines_of(shape)) {
      const auto registered = std::make_shared<ShapeCases>(ShapeCases{shape, engine, {}});
      for (const Case& each : suitable(shape))
        if (each.least_ranks <= shape.size) registered->cases.push_back(each);
      for (std::size_t number = 0; number < registered->cases.size(); ++number)
        ::testing::RegisterTest(name_of(shape, engine).c_str(), registered->cases[number].name, nullptr, nullptr,
                                __FILE__, __LINE__,
                                [registered, number]() -> ShapeTest* { return new ShapeTest(registered, number); });
    }
  return RUN_ALL_TESTS();
}

}  // namespace beeline_test
