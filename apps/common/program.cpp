// SPDX-License-Identifier: Apache-2.0
#include "common/program.hpp"

#include <atomic>
#include <cstdio>

#include "beeline/host/run.hpp"
#include "beeline/runtime/device.hpp"
#include "environment/environment.hpp"

namespace apps {

Json method_line(const std::string& name, const std::string& summary, const std::string& why_not) {
  return {{"event", "method"},
          {"name", name},
          {"summary", summary},
          {"available", why_not.empty()},
          {"reason", why_not.empty() ? Json() : Json(why_not)}};
}

void print_line(const beeline::World& world, const Json& line) {
  if (world.rank() != 0) return;
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

void print_progress(const beeline::World& world, const std::string& method, int done, int total) {
  print_line(world, {{"event", "progress"}, {"method", method}, {"done", done}, {"total", total}});
}

void print_environment(beeline::World& world, const std::vector<std::string>& arguments) {
  print_line(world, beeline::bench::environment_record(world, arguments));
}

std::string why_no_gpu(const beeline::Config& config) {
  if (config.device == "cpu") return "needs a GPU for each rank, and these ranks run on CPUs (device cpu)";
  std::string why_none;
  const std::vector<beeline::Device> gpus = beeline::visible_gpus(&why_none);
  if (gpus.empty()) return "needs a GPU for each rank: " + why_none;
  if (config.threads || config.device != "auto" || static_cast<std::size_t>(config.size) <= gpus.size() ||
      beeline::mps_runs())
    return "";
  return "needs a GPU for each rank, and ranks that are processes share none: with " + std::to_string(gpus.size()) +
         " of them these run on CPUs; run them as threads";
}

bool is_quiet_rank() {
  try {
    return beeline::Config::from_environment().rank != 0;
  } catch (const beeline::Error&) {
    return false;
  }
}

int run_and_verify(const char* program, const beeline::Config& config,
                   const std::function<bool(beeline::World&)>& measure) {
  std::atomic<bool> good{true};
  const int code = beeline::run(config, [&](beeline::World& world) {
    if (!measure(world)) good = false;
  });
  if (!good && !is_quiet_rank()) std::fprintf(stderr, "%s: a method's result is wrong: see \"verified\"\n", program);
  return code != 0 ? code : good ? 0 : 1;
}

int run_or_refuse(const char* program, const std::function<int()>& work) {
  try {
    return work();
  } catch (const beeline::Error& error) {
    if (is_quiet_rank()) return 0;
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return 2;
  }
}

}  // namespace apps
