// SPDX-License-Identifier: Apache-2.0
/// @file
/// The launcher's search for processes that a job leaves behind. Before it took a second count, from 0 to 14 of 40 such
/// ends left the child of a process of 60 MB, on two busy cores: in a loop over these functions, not with the launcher.

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "programs/launch/guardian.hpp"
#include "programs/launch/process.hpp"

namespace beeline::tests {

namespace {

TEST(LeftProcesses, OfAProcessThatEndsWhileTheyAreCountedAreEnded) {
  launcher::adopt_orphans();
  const launcher::Pipe pipe = launcher::make_pipe("a test");
  const pid_t parent = launcher::fork_process("a test");
  if (parent == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const pid_t child = ::fork();
    [[maybe_unused]] const ssize_t written = child == 0 ? 0 : ::write(pipe.writer.get(), &child, sizeof child);
    while (true) ::pause();
  }
  pid_t child = -1;
  ASSERT_EQ(static_cast<ssize_t>(sizeof child), ::read(pipe.reader.get(), &child, sizeof child));
  int counts = 0;
  launcher::end_children([&] {
    std::vector<pid_t> counted = launcher::children();  // the child is still the parent's
    if (++counts == 1) {
      siginfo_t ended{};
      ::kill(parent, SIGKILL);
      ::waitid(P_PID, static_cast<id_t>(parent), &ended, WEXITED | WNOWAIT);
    }
    return counted;
  });
  EXPECT_TRUE(launcher::child_state(child).ended);
  ::kill(child, SIGKILL);
  for (const pid_t each : {parent, child}) EXPECT_EQ(each, ::waitpid(each, nullptr, 0));
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace

}  // namespace beeline::tests
