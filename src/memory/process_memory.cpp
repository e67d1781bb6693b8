// SPDX-License-Identifier: Apache-2.0
#include "memory/process_memory.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "beeline/core/error.hpp"
#include "core/text_file.hpp"

namespace beeline {

namespace {

constexpr std::size_t most_at_once = std::size_t{1} << 30;  // one call moves at most 2 GiB

/// With the Yama module, Linux lets only some processes access others of the same user.
std::string ptrace_scope() {
  const std::string text = read_text("/proc/sys/kernel/yama/ptrace_scope");
  return text.empty() ? "" : fmt::format(", kernel.yama.ptrace_scope is {}", lines_of(text).front());
}

std::array<std::uint64_t, 2> random_value() {
  std::array<std::uint64_t, 2> value{};
  require(getrandom(value.data(), sizeof value, 0) == sizeof value, Status::internal, "getrandom failed");
  return value;
}

}  // namespace

ProcessProof ProcessProof::mine() {
  static const std::array<std::uint64_t, 2> value = random_value();
  return {getpid(), reinterpret_cast<std::uintptr_t>(&value), value};
}

ProcessMemory::ProcessMemory(const ProcessProof& proof)
    : pid_(proof.pid), process_(static_cast<int>(syscall(SYS_pidfd_open, proof.pid, 0))) {
  std::array<std::uint64_t, 2> seen{};
  try {
    read(&seen, proof.address, sizeof seen);
  } catch (const Error& error) {
    throw Error(Status::unreachable, error.what());
  }
  require(seen == proof.value, Status::unreachable,
          fmt::format("process {} is another one here: the ranks have different PID namespaces, as in containers that "
                      "do not share one",
                      pid_));
}

bool ProcessMemory::ended() const {
  pollfd state{process_.get(), POLLIN, 0};
  return process_ && poll(&state, 1, 0) == 1;
}

void ProcessMemory::read(void* destination, std::uintptr_t source, std::size_t bytes) const {
  move(Direction::read, static_cast<std::byte*>(destination), source, bytes);
}

void ProcessMemory::write(std::uintptr_t destination, const void* source, std::size_t bytes) const {
  move(Direction::write, static_cast<std::byte*>(const_cast<void*>(source)), destination, bytes);
}

void ProcessMemory::move(Direction direction, std::byte* here, std::uintptr_t there, std::size_t bytes) const {
  while (bytes > 0) {
    if (ended()) throw Error(Status::peer_died, fmt::format("process {} has ended", pid_));
    const std::size_t piece = std::min(bytes, most_at_once);
    const iovec local{here, piece}, remote{reinterpret_cast<void*>(there), piece};
    const ssize_t moved = direction == Direction::read ? process_vm_readv(pid_, &local, 1, &remote, 1, 0)
                                                       : process_vm_writev(pid_, &local, 1, &remote, 1, 0);
    if (moved > 0) {
      here += moved, there += static_cast<std::size_t>(moved), bytes -= static_cast<std::size_t>(moved);
      continue;
    }
    const int error = errno;
    const char* call = direction == Direction::read ? "process_vm_readv" : "process_vm_writev";
    if (error == ESRCH) throw Error(Status::peer_died, fmt::format("process {} has ended", pid_));
    if (error == EFAULT)
      throw Error(Status::invalid_argument, fmt::format("{} of {} bytes, here {}, in process {} {:#x}: no memory there",
                                                        call, piece, fmt::ptr(here), pid_, there));
    throw Error(Status::unreachable, fmt::format("{} to process {}: {}{}", call, pid_, std::strerror(error),
                                                 error == EPERM ? ptrace_scope() : ""));
  }
}

}  // namespace beeline
