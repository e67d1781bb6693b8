// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "beeline/core/error.hpp"

namespace beeline::launcher {

namespace {

std::string message_of(int error) { return std::generic_category().message(error); }

/// Returns 0, or an errno: why `path` cannot be executed.
int why_not_executable(const std::string& path) {
  struct stat information {};
  if (::stat(path.c_str(), &information) != 0) return errno;
  if (S_ISDIR(information.st_mode)) return EISDIR;
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

std::vector<std::string> merged_environment(const Environment& changes) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!changes.contains(std::string(text.substr(0, text.find('='))))) all.emplace_back(text);
  }
  for (const auto& [variable, value] : changes)
    if (!value.empty()) all.push_back(variable + "=" + value);
  return all;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

/// Data that the child needs; prepared before the fork, because only async-signal-safe calls are allowed after it.
struct Plan {
  const char* path;
  char* const* arguments;
  char* const* environment;
  int input;  ///< -1: none
  int output, error, report;
  pid_t launcher;
};

[[noreturn]] void become(const Plan& plan) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.launcher) ::_exit(1);  // the launcher ended before the call above took effect
  const int input = plan.input >= 0 ? plan.input : ::open("/dev/null", O_RDONLY);
  ::dup2(input, STDIN_FILENO);
  ::dup2(plan.output, STDOUT_FILENO);
  ::dup2(plan.error, STDERR_FILENO);
  if (input > STDERR_FILENO) ::close(input);
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(plan.path, plan.arguments, plan.environment);
  const int why = errno;
  [[maybe_unused]] const ssize_t written = ::write(plan.report, &why, sizeof(why));
  ::_exit(127);
}

}  // namespace

void open_standard_descriptors() {
  for (int descriptor = ::open("/dev/null", O_RDWR); descriptor >= 0; descriptor = ::open("/dev/null", O_RDWR))
    if (descriptor > STDERR_FILENO) {
      ::close(descriptor);
      return;
    }
}

Pipe make_pipe(const std::string& purpose) {
  std::array<int, 2> ends;
  const bool is_made = ::pipe2(ends.data(), O_CLOEXEC) == 0;
  const int error = errno;
  require(is_made, Status::no_resource,
          fmt::format("no pipe for {}: {}{}", purpose, message_of(error),
                      error == EMFILE ? "; raise the limit (ulimit -n), or start fewer ranks" : ""));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

pid_t fork_process(const std::string& purpose) {
  const pid_t pid = ::fork();
  const int error = errno;
  require(pid >= 0, Status::no_resource,
          fmt::format("no process for {}: {}{}", purpose, message_of(error),
                      error == EAGAIN ? "; raise the limit on processes (ulimit -u), or start fewer ranks" : ""));
  return pid;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    const int why = why_not_executable(name);
    const bool is_script = why == EACCES && name.ends_with(".py");
    require(why == 0, Status::invalid_argument,
            fmt::format("cannot run {}: {}{}", name, message_of(why),
                        is_script ? "; start it by its interpreter: python " + name : ""));
    return name;
  }
  const char* variable = std::getenv("PATH");
  std::string_view folders = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (true) {
    const auto end = folders.find(':');
    const std::string folder(folders.substr(0, end));
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (why_not_executable(path) == 0) return path;
    if (end == std::string_view::npos) break;
    folders.remove_prefix(end + 1);
  }
  throw Error(Status::invalid_argument, fmt::format("cannot run {}: no such program in PATH", name));
}

Process start(const std::string& path, const std::vector<std::string>& command, const Environment& changes,
              const std::optional<std::string>& text) {
  Pipe output = make_pipe("a rank"), error = make_pipe("a rank"), report = make_pipe("a rank"), input;
  if (text) {
    input = make_pipe("a rank");
    ::fcntl(input.writer.get(), F_SETFL, O_NONBLOCK);
    const auto bytes = static_cast<ssize_t>(text->size());
    const bool is_written = ::write(input.writer.get(), text->data(), text->size()) == bytes;
    require(is_written, Status::no_resource, fmt::format("no room in a pipe: {}", message_of(errno)));
  }
  const std::vector<std::string> environment = merged_environment(changes);
  const std::vector<char*> argument_pointers = pointers(command), environment_pointers = pointers(environment);
  const Plan plan{path.c_str(),        argument_pointers.data(), environment_pointers.data(), input.reader.get(),
                  output.writer.get(), error.writer.get(),       report.writer.get(),         ::getpid()};
  const pid_t pid = fork_process(path);
  if (pid == 0) become(plan);
  report.writer.reset();
  int why = 0;
  ssize_t got;
  while ((got = ::read(report.reader.get(), &why, sizeof(why))) < 0 && errno == EINTR) continue;
  if (got == sizeof(why)) {
    ::waitpid(pid, nullptr, 0);
    throw Error(Status::invalid_argument, fmt::format("cannot run {}: {}", path, message_of(why)));
  }
  for (const int reader : {output.reader.get(), error.reader.get()}) ::fcntl(reader, F_SETFL, O_NONBLOCK);
  return {pid, std::move(output.reader), std::move(error.reader), std::move(input.writer)};
}

}  // namespace beeline::launcher
