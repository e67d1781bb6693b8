// SPDX-License-Identifier: Apache-2.0
#include "guardian.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "beeline/core/error.hpp"

namespace beeline::launch {

namespace {

constexpr pid_t job_is_over = 0;

/// Closes everything but `pipe`: whoever reads the launcher's output must not wait for the guardian.
int keep_only(int pipe) {
  ::dup2(pipe, 3);
  ::syscall(SYS_close_range, 4u, ~0u, 0u);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (int standard = 0; standard < 3; ++standard) ::dup2(nowhere, standard);
  ::close(nowhere);
  return 3;
}

[[noreturn]] void guard(int pipe) {
  ::setsid();  // a Ctrl-C or hang-up of the terminal is the launcher's business
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(signal, SIG_IGN);
  pipe = keep_only(pipe);
  std::vector<pid_t> groups;
  pid_t pid;
  while (true) {
    const ssize_t got = ::read(pipe, &pid, sizeof(pid));
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof(pid)) break;
    if (pid == job_is_over) ::_exit(0);
    groups.push_back(pid);
  }
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  ::_exit(0);
}

}  // namespace

Guardian::Guardian() {
  std::array<int, 2> ends;
  require(::pipe2(ends.data(), O_CLOEXEC) == 0, Status::no_resource, "no pipe for the guardian process");
  FileDescriptor reader(ends[0]);
  pipe_ = FileDescriptor(ends[1]);
  pid_ = ::fork();
  require(pid_ >= 0, Status::no_resource, "the guardian process cannot be started");
  if (pid_ == 0) {
    pipe_.reset();  // only the launcher holds this end, so that its end closes the pipe
    guard(reader.get());
  }
}

Guardian::~Guardian() {
  [[maybe_unused]] const ssize_t written = ::write(pipe_.get(), &job_is_over, sizeof(job_is_over));
  pipe_.reset();
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace beeline::launch
