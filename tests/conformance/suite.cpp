// SPDX-License-Identifier: Apache-2.0
// One suite over methods, groups, memory kinds and kinds of world: every shape of world runs every case that suits it.
#include "tests/conformance/suite.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/conformance/rank_test.hpp"

namespace beeline_test {

using beeline::Config;
using beeline::World;

std::string shape_name(const ::testing::TestParamInfo<WorldShape>& info) {
  const WorldShape& shape = info.param;
  constexpr std::array names = {"cpu", "gpus", "one_gpu", "cpus_and_a_gpu", "cpus_and_two_gpus"};
  return fmt::format("{}_{}_{}{}", shape.kind == WorldKind::threads ? "threads" : "processes", shape.size,
                     names[static_cast<std::size_t>(shape.devices)],
                     shape.host_threads > 1 ? fmt::format("_{}_host_threads", shape.host_threads) : "") +
         (shape.peer_access ? "" : "_no_peer_access");
}

namespace {

bool is_mixed(Devices devices) { return devices == Devices::cpus_and_a_gpu || devices == Devices::cpus_and_two_gpus; }

/// BEELINE_TEST_CASES: parts of names, comma-separated; unset: all cases.
bool is_wanted(const std::string& name) {
  const char* wanted = std::getenv("BEELINE_TEST_CASES");
  if (wanted == nullptr) return true;
  std::istringstream parts(wanted);
  for (std::string part; std::getline(parts, part, ',');)
    if (name.find(part) != std::string::npos) return true;
  return false;
}

std::vector<Case> cases_of(const WorldShape& shape) {
  if (shape.crowd) return crowd_cases();
  std::vector<std::vector<Case>> kinds = {access_cases(), memory_cases(), stream_cases(), staged_cases(),
                                          wait_any_cases()};
  if (!shape.peer_access)
    kinds = {copy_cases(), registered_cases(), stream_cases(), staged_cases()};
  else if (!is_mixed(shape.devices))  // there the ranks' kernels do not all make the same choices
    for (const auto& some :
         {distributed_cases(), registered_cases(), put_get_cases(), bulk_cases(), strided_cases(), signal_cases(),
          context_cases(), atomic_cases(), barrier_cases(), team_cases(), packet_cases(), packets128_cases()})
      kinds.push_back(some);
  std::vector<Case> all;
  for (const std::vector<Case>& some : kinds) all.insert(all.end(), some.begin(), some.end());
  return all;
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

}  // namespace

std::vector<Case> copy_cases() {
  std::vector<Case> all;
  for (const auto& some : {memory_cases(), distributed_cases()})
    for (const Case& each : some)
      if (const std::string_view name = each.name;
          name != "kernels_store_to_global_addresses" && name != "elements_by_plain_pointer")
        all.push_back(each);
  return all;
}

namespace {

/// Why this machine cannot run the shape; empty if it can.
std::string obstacle(const WorldShape& shape) {
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

void run_cases(World& world, const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    const auto start = std::chrono::steady_clock::now();
    try {
      RankTest test(world, each.name);
      each.body(test);
      world.barrier();
    } catch (const std::exception& error) {
      throw CheckFailure(fmt::format("{}: {}", each.name, error.what()));
    }
    const auto ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
    if (world.rank() == 0) std::fputs(fmt::format("  {:6} ms  {}\n", ms, each.name).c_str(), stdout);
  }
}

}  // namespace

std::vector<Case> collective_cases() {
  std::vector<Case> all;
  for (const auto& some : {allreduce_cases(), movement_cases(), named_barrier_cases(), reduce_cases(),
                           special_value_cases(), team_channel_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

void run_suite(const WorldShape& shape) { run_suite(shape, cases_of(shape)); }

void run_suite(const WorldShape& shape, const std::vector<Case>& every) {
  if (const std::string why = obstacle(shape); !why.empty()) GTEST_SKIP() << why;
  Config config = test_config();
  config.host_threads = shape.host_threads;
  if (shape.devices != Devices::gpus) config.device = device_choice(shape);
  if (!shape.peer_access) {
    config.peer_access = false;
    config.chunk_bytes = 50'000;  // several in most copies
  }
  std::vector<Case> cases;
  for (const Case& each : every)
    if (each.least_ranks <= shape.size && is_wanted(each.name)) cases.push_back(each);
  ASSERT_FALSE(cases.empty()) << "BEELINE_TEST_CASES names no case";
  expect_all_passed(run_ranks(
      shape.kind, shape.size, [&](World& world) { run_cases(world, cases); }, config));
}

}  // namespace beeline_test
