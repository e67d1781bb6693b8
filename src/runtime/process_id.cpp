// SPDX-License-Identifier: Apache-2.0
#include "runtime/process_id.hpp"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "core/text_file.hpp"

namespace beeline::detail {

namespace {

/// Clock ticks from the machine's start to the process's; empty without /proc.
std::string start_time() {
  const std::string text = read_text("/proc/self/stat");
  std::size_t at = text.rfind(')');  // the end of the program's name, which may have spaces
  for (int field = 3; field <= 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  return at == std::string::npos ? std::string() : text.substr(at + 1, text.find(' ', at + 1) - at - 1);
}

std::uint64_t random_origin() {
  static const std::uint64_t origin = [] {
    std::uint64_t random = 0;
    return getrandom(&random, sizeof random, 0) == sizeof random ? random : 0;
  }();
  return origin ^ static_cast<std::uint64_t>(getpid());
}

}  // namespace

std::uint64_t process_id() {
  // Not a number that this library draws: a process may have several copies of the library, as a C++ program that also
  // loads libbeeline_c.so has, and each may make a world.
  const std::string started = start_time(), machine = read_text("/proc/sys/kernel/random/boot_id");
  struct stat space {};
  if (started.empty() || machine.empty() || stat("/proc/self/ns/pid", &space) != 0) return random_origin();
  return std::hash<std::string>()(machine + std::to_string(space.st_ino) + ' ' + std::to_string(getpid()) + ' ' +
                                  started);
}

}  // namespace beeline::detail
