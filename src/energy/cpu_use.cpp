// SPDX-License-Identifier: Apache-2.0
#include "energy/cpu_use.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/text_file.hpp"

namespace beeline::energy {

namespace {

namespace fs = std::filesystem;

double seconds_of(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Busy seconds of all CPUs: user, nice, system, irq, softirq and steal in the line "cpu".
std::optional<double> busy_seconds(const std::string& stat) {
  unsigned long long user = 0, nice = 0, system = 0, idle = 0, waits = 0, irq = 0, softirq = 0, steal = 0;
  if (std::sscanf(stat.c_str(), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &waits,
                  &irq, &softirq, &steal) != 8)
    return std::nullopt;
  return static_cast<double>(user + nice + system + irq + softirq + steal) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::string first_line(const fs::path& path) {
  const std::string text = read_text(path);
  return text.substr(0, text.find('\n'));
}

/// Seconds in each sleep state, summed over the CPUs.
std::map<std::string, double> sleep_seconds(const fs::path& cpus) {
  std::map<std::string, double> seconds;
  std::error_code ignored;
  for (const fs::directory_entry& cpu : fs::directory_iterator(cpus, ignored))
    for (const fs::directory_entry& state : fs::directory_iterator(cpu.path() / "cpuidle", ignored))
      if (const std::string name = first_line(state.path() / "name"); !name.empty())
        seconds[name] += std::strtod(first_line(state.path() / "time").c_str(), nullptr) / 1e6;
  return seconds;
}

}  // namespace

CpuUse cpu_use(const std::string& proc, const std::string& cpus) {
  CpuUse use{.process_seconds = seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN),
             .machine_seconds = busy_seconds(read_text(proc + "/stat")),
             .sleep_seconds = sleep_seconds(cpus),
             .reason = {}};
  if (!use.machine_seconds) use.reason = fmt::format("{}/stat does not show the CPUs' time", proc);
  if (use.sleep_seconds.empty())
    use.reason += fmt::format("{}{} shows no sleep states (cpuidle)", use.reason.empty() ? "" : "; ", cpus);
  return use;
}

CpuUse difference(const CpuUse& after, const CpuUse& before) {
  CpuUse use = after;
  use.process_seconds -= before.process_seconds;
  if (use.machine_seconds && before.machine_seconds) *use.machine_seconds -= *before.machine_seconds;
  for (auto& [name, seconds] : use.sleep_seconds)
    if (const auto earlier = before.sleep_seconds.find(name); earlier != before.sleep_seconds.end())
      seconds -= earlier->second;
  return use;
}

}  // namespace beeline::energy
