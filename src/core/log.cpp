// SPDX-License-Identifier: Apache-2.0
#include "beeline/core/log.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <cstdio>

namespace beeline {

namespace {
std::atomic<LogLevel> enabled{LogLevel::warning};
}

void set_log_level(LogLevel level) noexcept { enabled.store(level, std::memory_order_relaxed); }

bool log_enabled(LogLevel level) noexcept { return level <= enabled.load(std::memory_order_relaxed); }

void log(LogLevel level, std::string_view text, int rank) {
  if (!log_enabled(level)) return;
  constexpr std::array names = {"error", "warning", "info", "debug"};
  const std::string who = rank < 0 ? "beeline" : fmt::format("beeline[{}]", rank);
  const std::string line = fmt::format("{} {}: {}\n", who, names[static_cast<std::size_t>(level)], text);
  std::fwrite(line.data(), 1, line.size(), stderr);  // one write, so that lines of several ranks do not mix
}

bool log_at_once(LogLevel level, std::string_view text, int rank) {
  pollfd out{::fileno(stderr), POLLOUT, 0};
  if (log_enabled(level) && (::poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0)) return false;
  log(level, text, rank);
  return true;
}

}  // namespace beeline
