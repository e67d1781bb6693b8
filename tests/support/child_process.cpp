// SPDX-License-Identifier: Apache-2.0
#include "tests/support/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "beeline/core/error.hpp"

namespace beeline_test {

namespace {

using beeline::FileDescriptor;

struct Pipe {
  FileDescriptor reading, writing;
};

Pipe make_pipe() {
  int ends[2];
  beeline::require(pipe2(ends, O_CLOEXEC) == 0, beeline::Status::internal, "pipe2 failed");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) return;  // the reader is gone and needs no answer
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

/// Reads to the end of the line: children forked later hold this pipe's writing end, too, so that it never ends.
std::string read_line(int descriptor) {
  std::string text;
  for (char character = 0;;) {
    const ssize_t got = read(descriptor, &character, 1);
    if (got == 0 || (got > 0 && character == '\n') || (got < 0 && errno != EINTR)) return text;
    if (got > 0) text += character;
  }
}

[[noreturn]] void run_child(const std::function<std::string(const std::string&)>& body, int orders, int answers) {
  int exit_code = 0;
  std::string answer;
  try {
    answer = body(read_line(orders));
  } catch (const std::exception& error) {
    answer = error.what();
    exit_code = 1;
  }
  write_all(answers, answer);
  std::fflush(nullptr);
  _exit(exit_code);  // the parent's static objects must not be destroyed here
}

}  // namespace

ChildProcess::ChildProcess(const std::function<std::string(const std::string&)>& body) {
  Pipe orders = make_pipe(), answers = make_pipe();
  std::fflush(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  beeline::require(pid_ >= 0, beeline::Status::internal, "fork failed");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    orders.writing.reset();
    answers.reading.reset();
    run_child(body, orders.reading.get(), answers.writing.get());
  }
  orders_ = std::move(orders.writing);
  answers_ = std::move(answers.reading);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), orders_(std::move(other.orders_)), answers_(std::move(other.answers_)),
      answer_(std::move(other.answer_)), exit_code_(other.exit_code_), signal_(other.signal_) {}

ChildProcess::~ChildProcess() {
  if (ended()) return;
  kill();
  reap();
}

void ChildProcess::tell(const std::string& text) {
  write_all(orders_.get(), text + "\n");
  orders_.reset();
}

bool ChildProcess::read_more() {
  std::array<char, 4096> buffer;
  const ssize_t got = read(answers_.get(), buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return false;
  if (got > 0) answer_.append(buffer.data(), static_cast<std::size_t>(got));
  if (got > 0) return false;
  reap();
  return true;
}

void ChildProcess::kill() {
  if (!ended()) ::kill(pid_, SIGKILL);
}

void ChildProcess::reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  pid_ = -1;
}

}  // namespace beeline_test
