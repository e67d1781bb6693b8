// SPDX-License-Identifier: Apache-2.0
#include "core/thread.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <filesystem>

#include "core/text_file.hpp"

namespace beeline::detail {

namespace {

/// A file's first line; `?` if the file cannot be read.
std::string line_of(const std::filesystem::path& file) {
  const std::string text = read_text(file.string());
  return text.empty() ? "?" : text.substr(0, text.find('\n'));
}

}  // namespace

std::string thread_limits(const std::string& root) {
  std::string text;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    text = fmt::format("{} processes and threads of this user (ulimit -u)", limit.rlim_cur);
  for (const std::filesystem::path& folder : control_groups("pids", root)) {
    const std::string most = line_of(folder / "pids.max");
    if (most.empty() || most.front() < '0' || most.front() > '9') continue;
    text += fmt::format("{}{} in its control group, of which {} exist ({})", text.empty() ? "" : ", ", most,
                        line_of(folder / "pids.current"), (folder / "pids.max").string());
  }
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    text += fmt::format("{}{} bytes of addresses (ulimit -v)", text.empty() ? "" : ", ", limit.rlim_cur);
  return text.empty() ? "none is set for this process: the machine's (/proc/sys/kernel/threads-max)" : text;
}

void refuse_thread(const std::string& purpose, const std::system_error& error) {
  throw Error(Status::no_resource,
              fmt::format("no thread for {}: {}; limits: {}", purpose, error.code().message(), thread_limits()));
}

}  // namespace beeline::detail
