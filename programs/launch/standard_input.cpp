// SPDX-License-Identifier: Apache-2.0
#include "standard_input.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "process.hpp"

namespace beeline::launcher {

namespace {

using namespace std::chrono_literals;

constexpr auto background_time = 100ms;  // interval for checking whether a terminal lets this process read again

/// Copies standard input to a pipe until either end closes. All signals are blocked: this process ends when `job` ends.
[[noreturn]] void feed(int pipe, pid_t group, pid_t job) {
  ::setpgid(0, group);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t all;
  ::sigfillset(&all);  // SIGTTIN too: to read in the background is an error, and does not stop the group
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  std::array<char, 65536> buffer;
  while (::getppid() == job) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EIO) std::this_thread::sleep_for(background_time);
    if (got < 0 && errno == EAGAIN) {
      pollfd set{STDIN_FILENO, POLLIN, 0};
      ::poll(&set, 1, -1);
    }
    if (got < 0 && (errno == EIO || errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) break;
    for (ssize_t done = 0; done < got;) {
      const ssize_t written = ::write(pipe, buffer.data() + done, static_cast<std::size_t>(got - done));
      if (written < 0 && errno != EINTR) ::_exit(0);
      done += std::max<ssize_t>(written, 0);
    }
  }
  ::_exit(0);
}

}  // namespace

StandardInput::StandardInput() {
  Pipe pipe = make_pipe("standard input");
  const pid_t job = ::getpid(), group = ::getpgid(::getppid());
  const pid_t process = fork_process("standard input");
  if (process == 0) {
    pipe.reader.reset();
    feed(pipe.writer.get(), group, job);
  }
  ::fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK);
  source_ = std::move(pipe.reader);
}

void StandardInput::append_to(std::vector<pollfd>& set) const {
  if (buffer_.empty() && source_ && !targets_.empty()) set.push_back({source_.get(), POLLIN, 0});
  for (const Target& each : targets_)  // poll() also reports a closed reader
    set.push_back({each.pipe.get(), static_cast<short>(each.taken < buffer_.size() ? POLLOUT : 0), 0});
}

void StandardInput::move() {
  if (buffer_.empty() && source_) {
    std::array<char, 65536> bytes;
    const ssize_t got = ::read(source_.get(), bytes.data(), bytes.size());
    if (got > 0) buffer_.assign(bytes.data(), static_cast<std::size_t>(got));
    if (got == 0) source_.reset();
  }
  write();
  if (!source_ && buffer_.empty()) targets_.clear();
}

void StandardInput::write() {
  for (Target& each : targets_) {
    pollfd set{each.pipe.get(), 0, 0};
    if (::poll(&set, 1, 0) > 0) each.pipe.reset();  // the reader has closed it
    while (each.pipe && each.taken < buffer_.size()) {
      const ssize_t written = ::write(each.pipe.get(), buffer_.data() + each.taken, buffer_.size() - each.taken);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && errno != EAGAIN) each.pipe.reset();
      if (written < 0) break;
      each.taken += static_cast<std::size_t>(written);
    }
  }
  std::erase_if(targets_, [](const Target& each) { return !each.pipe; });
  const bool all_taken = std::all_of(targets_.begin(), targets_.end(),
                                     [this](const Target& each) { return each.taken == buffer_.size(); });
  if (!all_taken) return;
  buffer_.clear();
  for (Target& each : targets_) each.taken = 0;
}

}  // namespace beeline::launcher
