// SPDX-License-Identifier: Apache-2.0
#include "rank_process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "remote.hpp"

namespace beeline::launcher {

namespace {

LineTarget target(int rank, int descriptor, History* history, const Options& options, Console& console) {
  const bool plain = rank < 0 || options.no_prefix;
  const bool is_output = descriptor == STDOUT_FILENO;
  return {.console = &console,
          .source = launcher_source + 1 + 2 * (rank + 1) + (is_output ? 0 : 1),
          .prefix = plain ? std::string() : fmt::format("[{}] ", rank),
          .descriptor = options.json ? STDERR_FILENO : descriptor,
          .passes_json = options.json && is_output,
          .history = history,
          .greeting = options.hosts.empty() ? std::string_view() : host_greeting};
}

/// Reads once, so that one rank's output does not delay the others; closes `pipe` at its end.
void read_some(FileDescriptor& pipe, LineSplitter& splitter, bool needs_room) {
  if (!pipe || (needs_room && !splitter.has_room())) return;
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
  if (got == 0) pipe.reset();
  if (got > 0) splitter.feed({buffer.data(), static_cast<std::size_t>(got)});
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("{}", signal);
}

std::string Ending::text() const {
  return killed ? fmt::format("was killed by signal {} ({})", value, signal_name(value))
                : fmt::format("exited with code {}", value);
}

RankProcess::RankProcess(int rank, Process process, const Options& options, Console& console)
    : rank_(rank), is_remote_(!options.hosts.empty()), process_(std::move(process)),
      history_(std::make_unique<History>()), output_(target(rank, STDOUT_FILENO, history_.get(), options, console)),
      error_(target(rank, STDERR_FILENO, history_.get(), options, console)) {}

void RankProcess::append_to(std::vector<pollfd>& set, bool needs_room) const {
  if (process_.standard_output && (!needs_room || output_.has_room()))
    set.push_back({process_.standard_output.get(), POLLIN, 0});
  if (process_.standard_error && (!needs_room || error_.has_room()))
    set.push_back({process_.standard_error.get(), POLLIN, 0});
}

void RankProcess::pump(bool needs_room) {
  read_some(process_.standard_output, output_, needs_room);
  read_some(process_.standard_error, error_, needs_room);
}

LineSplitter::Clock::time_point RankProcess::print_beginnings(LineSplitter::Clock::time_point now) {
  output_.print_beginning(now);
  error_.print_beginning(now);
  return std::min(output_.due(), error_.due());
}

void RankProcess::finish_output() {
  output_.finish();
  error_.finish();
}

void RankProcess::check() {
  siginfo_t information{};
  if (ending_ || ::waitid(P_PID, static_cast<id_t>(pid()), &information, WEXITED | WNOHANG | WNOWAIT) != 0) return;
  if (information.si_pid == pid()) ending_ = Ending{information.si_code != CLD_EXITED, information.si_status};
}

bool RankProcess::is_stopped() const {
  siginfo_t information{};
  return !ending_ && ::waitid(P_PID, static_cast<id_t>(pid()), &information, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         information.si_pid == pid();
}

void RankProcess::signal_group(int signal) const {
  if (is_remote_ && signal != SIGKILL) return send_word(signal);
  ::kill(-pid(), signal);
}

void RankProcess::signal_process(int signal) const {
  if (is_remote_) return send_word(signal);
  ::kill(pid(), signal);
}

/// Writes the signal's name to the shell that guards the rank on its host: see remote_command().
void RankProcess::send_word(int signal) const {
  // Shells start background commands with SIGINT and SIGQUIT ignored.
  const char* const name = ::sigabbrev_np(signal == SIGINT || signal == SIGQUIT ? SIGTERM : signal);
  const std::string word = fmt::format("{}\n", name);
  [[maybe_unused]] const ssize_t written = ::write(process_.standard_input.get(), word.data(), word.size());
}

void RankProcess::reap() { ::waitpid(pid(), nullptr, 0); }

}  // namespace beeline::launcher
