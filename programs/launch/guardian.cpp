// SPDX-License-Identifier: Apache-2.0
#include "guardian.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "process.hpp"

namespace beeline::launcher {

namespace {

using namespace std::chrono_literals;

constexpr auto longest_end = 2s;  // for killed processes that the system cannot end at once

/// Blocks until the child has ended, and passes every other signal on to the child. Stops together with the job, so
/// that a shell sees it stop.
int follow(pid_t child, const sigset_t& set) {
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const int signal = ::sigwaitinfo(&set, nullptr);
    if (signal > 0 && signal != SIGCHLD) ::kill(child, signal);
    if (signal == SIGTSTP) ::raise(SIGSTOP);
  }
}

[[noreturn]] void run_job(const std::function<int(int)>& job, int guardian) {
  ::setpgid(0, 0);  // a Ctrl-C of the terminal then reaches the job once, through the guardian
  const int code = job(guardian);
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    const bool is_for_users = signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTSTP ||
                              signal == SIGTTIN || signal == SIGTTOU;
    if (!is_for_users) ::signal(signal, SIG_DFL);  // fails for signals that can never be ignored
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

sigset_t handled_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  for (const int each : {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT}) {
    struct sigaction action {};
    ::sigaction(each, nullptr, &action);
    if (action.sa_handler != SIG_IGN) ::sigaddset(&set, each);
  }
  return set;
}

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

void end_children(const std::function<std::vector<pid_t>()>& count) {
  const auto end = std::chrono::steady_clock::now() + longest_end;
  std::vector<pid_t> ended;  // children that had ended before the last count began
  while (true) {
    const std::vector<pid_t> all = count();
    // The children of a process that ends during a count may be missing from it, as they were not this process's yet.
    if (all == ended || std::chrono::steady_clock::now() >= end) return;
    ended.clear();
    for (const pid_t each : all) {
      const ChildState state = child_state(each);  // until a child is reaped, no other process gets its number
      if (state.ended)
        ended.push_back(each);
      else if (state.is_child)
        ::kill(each, SIGKILL);
    }
    std::this_thread::sleep_for(1ms);
  }
}

void reap_orphans(const std::function<bool(pid_t)>& is_kept) {
  if (!proc_is_own()) return;  // the search takes long then: zombies stay until the job ends
  for (const ListedProcess& each : listed_processes())
    if (each.parent == ::getpid() && each.ended() && !is_kept(each.pid)) ::waitpid(each.pid, nullptr, WNOHANG);
}

int run_guarded(const std::function<int(int)>& job) {
  Pipe pipe = make_pipe("the guardian process");
  adopt_orphans();
  const sigset_t set = handled_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);  // in the job, too, which reads signals one by one
  const pid_t child = fork_process("the job");
  if (child == 0) {
    pipe.writer.reset();  // only the guardian keeps the writing end: the pipe closes when the guardian ends
    run_job(job, pipe.reader.get());
  }
  const int code = follow(child, set);
  end_children();
  return code;
}

}  // namespace beeline::launcher
