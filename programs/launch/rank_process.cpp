// SPDX-License-Identifier: Apache-2.0
#include "rank_process.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace beeline::launch {

namespace {

LineTarget target(int rank, int descriptor, History* history, const Options& options) {
  const bool plain = rank < 0 || options.no_prefix;
  const bool is_output = descriptor == STDOUT_FILENO;
  return {.prefix = plain ? std::string() : fmt::format("[{}] ", rank),
          .descriptor = options.json ? STDERR_FILENO : descriptor,
          .passes_json = options.json && is_output,
          .history = history};
}

/// Reads until the pipe is empty or closed; closes `pipe` at its end. 0, or why the output cannot be written.
int drain(FileDescriptor& pipe, LineSplitter& splitter) {
  std::array<char, 65536> buffer;
  int fault = 0;
  while (pipe) {
    const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    if (got == 0) pipe.reset();
    fault = first_of(fault, splitter.feed({buffer.data(), static_cast<std::size_t>(got)}));
  }
  return fault;
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

RankProcess::RankProcess(int rank, Process process, const Options& options)
    : rank_(rank), process_(std::move(process)), history_(std::make_unique<History>()),
      output_(target(rank, STDOUT_FILENO, history_.get(), options)),
      error_(target(rank, STDERR_FILENO, history_.get(), options)) {}

int RankProcess::pump() {
  const int fault = drain(process_.standard_output, output_);
  return first_of(fault, drain(process_.standard_error, error_));
}

int RankProcess::finish_output() {
  const int fault = output_.finish();
  return first_of(fault, error_.finish());
}

void RankProcess::check() {
  siginfo_t information{};
  if (ending_ || ::waitid(P_PID, static_cast<id_t>(pid()), &information, WEXITED | WNOHANG | WNOWAIT) != 0) return;
  if (information.si_pid == pid()) ending_ = Ending{information.si_code != CLD_EXITED, information.si_status};
}

void RankProcess::signal_group(int signal) const { ::kill(-pid(), signal); }

void RankProcess::reap() { ::waitpid(pid(), nullptr, 0); }

}  // namespace beeline::launch
