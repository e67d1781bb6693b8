// SPDX-License-Identifier: Apache-2.0
#include "guardian.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/runtime/file_descriptor.hpp"
#include "process_table.hpp"

namespace beeline::launch {

namespace {

using namespace std::chrono_literals;

constexpr auto patience = 2s;  // with killed processes that the system cannot end at once

/// Children of this process.
std::vector<ListedProcess> children() {
  std::vector<ListedProcess> found = listed_processes();
  std::erase_if(found, [](const ListedProcess& each) { return each.parent != ::getpid(); });
  return found;
}

/// Blocks until the child has ended; passes on every other signal.
int follow(pid_t child, const sigset_t& set) {
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const int signal = ::sigwaitinfo(&set, nullptr);
    if (signal > 0 && signal != SIGCHLD) ::kill(child, signal);
  }
}

[[noreturn]] void run_job(const std::function<int(int)>& job, int guardian) {
  ::setpgid(0, 0);  // a Ctrl-C of the terminal comes through the guardian, once
  const int code = job(guardian);
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

sigset_t handled_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(each, nullptr, &action);
    if (action.sa_handler != SIG_IGN) ::sigaddset(&set, each);
  }
  return set;
}

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

void end_children() {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (bool any = true; any && std::chrono::steady_clock::now() < end;) {
    any = false;
    for (const ListedProcess& each : children()) {
      if (each.ended()) continue;
      any = true;  // its own children become this process's, and are found by the next look
      ::kill(each.pid, SIGKILL);
    }
    if (any) std::this_thread::sleep_for(1ms);
  }
}

void reap_orphans(const std::function<bool(pid_t)>& is_kept) {
  for (const ListedProcess& each : children())
    if (each.ended() && !is_kept(each.pid)) ::waitpid(each.pid, nullptr, WNOHANG);
}

int run_guarded(const std::function<int(int)>& job) {
  std::array<int, 2> ends;
  require(::pipe2(ends.data(), O_CLOEXEC) == 0, Status::no_resource, "no pipe for the guardian process");
  FileDescriptor reader(ends[0]), writer(ends[1]);
  adopt_orphans();
  sigset_t set = handled_signals(), before;
  ::sigprocmask(SIG_BLOCK, &set, &before);
  const pid_t child = ::fork();
  require(child >= 0, Status::no_resource, "no process for the job");
  if (child == 0) {
    writer.reset();  // only the guardian holds this end, so that its end closes the pipe
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    run_job(job, reader.get());
  }
  const int code = follow(child, set);
  end_children();
  return code;
}

}  // namespace beeline::launch
