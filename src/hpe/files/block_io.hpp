// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// System calls on blocks of files, several in flight.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace beeline::hpe::detail {

/// One system call.
struct BlockCall {
  enum class Kind { read, write, sync_data, sync };  ///< sync_data: fdatasync, sync: fsync
  Kind kind = Kind::read;
  int descriptor = -1;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::uint64_t offset = 0;
  bool is_aside = false;  ///< it copies bytes of the page cache, and the caller has more to do meanwhile
  unsigned tag = 0;       ///< less than the depth; different from those in flight
};

struct BlockResult {
  unsigned tag = 0;
  std::int64_t value = 0;  ///< bytes moved, or an error number, negative
};

/// Carries out a call; returns the value of its result.
using CallFunction = std::function<std::int64_t(const BlockCall&)>;
/// By pread, pwrite, fdatasync and fsync.
[[nodiscard]] std::int64_t carry_out_call(const BlockCall& call);

/// Carries out calls in any order. One thread at a time uses it.
class BlockIo {
 public:
  virtual ~BlockIo() = default;
  /// Puts a call in flight; it may wait for the next `submit` or `await`.
  virtual void start(const BlockCall& call) = 0;
  virtual void submit() = 0;
  /// The result of a call, once there is one. Returns false if there is none after `longest_ns`, earlier if a signal
  /// came.
  ///   wanted  results in all that the caller has to await before it goes on, at most as many as calls are in flight:
  ///           the thread may sleep until they are there or `longest_ns` has passed
  [[nodiscard]] virtual bool await(BlockResult& result, std::int64_t longest_ns, unsigned wanted) = 0;
  /// Cancels all calls in flight. Returns whether they have ended within `longest_ns`; otherwise the operating system
  /// may still use their memory, and this object must not be destroyed.
  [[nodiscard]] virtual bool cancel(std::int64_t longest_ns) = 0;
};

/// Throws unavailable, with the reason, if this build or machine has no io_uring.
///   depth  most calls in flight
[[nodiscard]] std::unique_ptr<BlockIo> make_uring_io(unsigned depth);
/// By threads, each of which carries out a call at a time.
[[nodiscard]] std::unique_ptr<BlockIo> make_thread_io(unsigned depth, CallFunction carry_out = carry_out_call);
/// By io_uring, or by threads where it is not there or forbidden, which is logged once in a process.
[[nodiscard]] std::unique_ptr<BlockIo> make_block_io(unsigned depth);
/// Why there is no io_uring; empty if there is.
[[nodiscard]] std::string no_uring_reason();

}  // namespace beeline::hpe::detail
