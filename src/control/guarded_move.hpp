// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The kernel that carries out a triggered operation after the stream's wait, unless the operation was cancelled, or
/// the wait was released only to drain the stream.

#include <cstddef>
#include <cstdint>

#include "beeline/device/put_get.hpp"

namespace beeline {

/// Bytes to copy, or a signal to set, as addresses of this process.
struct StreamMove {
  void* to = nullptr;  ///< nullptr: `signal` is set
  const void* from = nullptr;
  std::size_t bytes = 0;
  std::uint64_t* signal = nullptr;
  std::uint64_t value = 0;
};

/// Words by which host and kernel agree whether an operation is carried out. They are in host memory, where GPUs and
/// CPUs share no atomics: each side stores its own word, fences, and then reads the other word, so that at least one
/// side sees the other's store.
struct GuardWords {
  enum Verdict : std::uint64_t { open, looks, skips, moves };
  std::uint64_t cancelled;  ///< written by the host: number of the last operation that it has cancelled
  std::uint64_t decided;    ///< written by the kernel: number of its operation, and the verdict

  [[nodiscard]] static BEELINE_HOST_DEVICE constexpr std::uint64_t decision(std::uint64_t number, Verdict verdict) {
    return number * 4 + verdict;
  }
};

/// The guard of one operation.
struct MoveGuard {
  const std::uint64_t* released;  ///< in host memory; set before waits are released
  GuardWords* words;              ///< of this operation, and of earlier operations of its stream
  std::uint64_t* verdict;         ///< of the stream, in memory of the device: the last decision of its kernels
  std::uint64_t number;           ///< of the operation in its stream, from 1 on
};

/// The kernel of an operation. Its first thread decides for all blocks, and for the operation's second kernel.
struct GuardedMove {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, StreamMove first, StreamMove second,
                                      MoveGuard guard) const {
    const auto& block = grid.block();
    const bool moves =
        block.thread_rank() == 0 && (grid.block_rank() == 0 ? decide(guard) : await_decision(ctx, guard));
    if (!block.any(moves)) return;
    move(grid, first);
    block.sync();
    move(grid, second);
  }

 private:
  BEELINE_HOST_DEVICE static bool decide(const MoveGuard& guard) {
    const detail::DeviceAtomic<std::uint64_t> verdict(*guard.verdict);
    const std::uint64_t known = verdict.load(std::memory_order_relaxed);
    if (known / 4 == guard.number) return known % 4 == GuardWords::moves;
    const detail::SystemAtomic<std::uint64_t> decided(guard.words->decided);
    decided.store(GuardWords::decision(guard.number, GuardWords::looks), std::memory_order_relaxed);
    machine::fence_system();
    const bool moves =
        detail::load_acquired(guard.words->cancelled) != guard.number && detail::load_acquired(*guard.released) == 0;
    const std::uint64_t decision = GuardWords::decision(guard.number, moves ? GuardWords::moves : GuardWords::skips);
    decided.store(decision, std::memory_order_release);
    verdict.store(decision, std::memory_order_release);
    return moves;
  }
  BEELINE_HOST_DEVICE static bool await_decision(const Context& ctx, const MoveGuard& guard) {
    const detail::DeviceAtomic<std::uint64_t> verdict(*guard.verdict);
    std::uint64_t known = 0;
    const Status status = detail::await_engine(ctx, {.heeds_abort = false}, [&] {
      known = verdict.load(std::memory_order_acquire);
      return known / 4 == guard.number;
    });
    return status == Status::ok && known % 4 == GuardWords::moves;
  }

  template <class Grid>
  BEELINE_HOST_DEVICE static void move(const Grid& grid, const StreamMove& what) {
    const auto& block = grid.block();
    if (what.signal != nullptr) {
      if (block.thread_rank() == 0) detail::store_signal(what.signal, what.value, Order::memory);
      return;
    }
    if (what.to == nullptr) return;
    // Each block copies whole pages.
    constexpr std::size_t grain = 4096;
    const std::size_t share = ((what.bytes + grid.blocks() - 1) / grid.blocks() + grain - 1) / grain * grain;
    const std::size_t begin = share * grid.block_rank() < what.bytes ? share * grid.block_rank() : what.bytes;
    const std::size_t end = begin + share < what.bytes ? begin + share : what.bytes;
    detail::copy_bytes(block, static_cast<std::byte*>(what.to) + begin,
                       static_cast<const std::byte*>(what.from) + begin, end - begin);
  }
};

}  // namespace beeline
