// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Copies to and from the memory of another process of this user (cross-memory attach).

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "beeline/runtime/file_descriptor.hpp"

namespace beeline {

/// What a process publishes so that another process can verify that it has found the right one.
struct ProcessProof {
  pid_t pid = 0;
  std::uintptr_t address = 0;  ///< of `value` in the process
  std::array<std::uint64_t, 2> value{};
  /// The proof of this process; it lives as long as the process.
  [[nodiscard]] static ProcessProof mine();
};

/// Another process. Thread-safe.
class ProcessMemory {
 public:
  /// Throws unreachable, with the reason, if the system denies this process access to the other's memory.
  explicit ProcessMemory(const ProcessProof& proof);
  /// Blocking. Throw peer_died if the process has ended, invalid_argument if the memory is not mapped any more.
  void read(void* destination, std::uintptr_t source, std::size_t bytes) const;
  void write(std::uintptr_t destination, const void* source, std::size_t bytes) const;

 private:
  enum class Direction { read, write };
  void move(Direction direction, std::byte* here, std::uintptr_t there, std::size_t bytes) const;
  [[nodiscard]] bool ended() const;
  pid_t pid_;
  FileDescriptor process_;  ///< readable once the process has ended; empty if the kernel has no pidfd_open
};

}  // namespace beeline
