// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/rank_test.hpp"

#include <fmt/format.h>

#include <span>

namespace beeline_test {

using beeline::LaunchOptions;

bool RankTest::has_host_atomics(int of) const {
  const beeline::Device& own = world_.device(of);
  bool alone = true;
  for (int other = 0; other < size(); ++other) alone = alone && world_.device(other).uuid == own.uuid;
  return !own.is_gpu() || own.host_atomics || alone;
}

void RankTest::skip_if_any(const std::string& reason) {
  for (const std::vector<std::byte>& each : world_.allgather(std::as_bytes(std::span(reason))))
    if (!each.empty()) throw CaseSkipped(std::string(reinterpret_cast<const char*>(each.data()), each.size()));
}

void RankTest::write(void* destination, const std::vector<std::byte>& data) {
  world_.copy(destination, data.data(), data.size());
}

std::vector<std::byte> RankTest::read(const void* source, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  world_.copy(data.data(), source, bytes);
  return data;
}

LaunchOptions RankTest::shape(unsigned blocks, bool waits) const {
  LaunchOptions options;
  options.blocks = blocks;
  options.threads = gpu_threads;
  options.waits = waits;
  return options;
}

void RankTest::clear_report() {
  const DeviceReport none{};
  world_.copy(report_.data(), &none, sizeof none);
}

void RankTest::check_report(std::string_view what) {
  const DeviceReport seen = read_value(report_.data());
  if (seen.failures == 0) return;
  throw CheckFailure(fmt::format("{}: {} checks failed in the kernel, first at line {}: expected {}, observed {}", what,
                                 seen.failures, seen.line, seen.expected, seen.observed));
}

}  // namespace beeline_test
