// SPDX-License-Identifier: Apache-2.0
#include "beeline/core/call_fault.hpp"

#include <fmt/format.h>

namespace beeline {

std::string describe(CallFault fault, std::uint64_t expected, std::uint64_t observed) {
  switch (fault) {
    case CallFault::none:
      break;
    case CallFault::peer:
      return fmt::format("peer {} is no rank of the team: these are 0 to {}", observed, expected - 1);
    case CallFault::not_symmetric:
      return fmt::format(
          "{} bytes at {:#x} are not wholly in this rank's symmetric memory: pass this rank's address of memory that "
          "Team::allocate, a SymmetricArray or Signals made, and no more bytes than it has",
          expected, observed);
    case CallFault::null_address:
      return fmt::format("{} bytes at a null address: pass that of a signal, or of symmetric memory", expected);
    case CallFault::not_allocated:
      return fmt::format(
          "{} bytes at {:#x} are not in one allocation of this rank's: the memory was freed, or the array is shorter",
          expected, observed);
    case CallFault::null_own_end:
      return fmt::format("{} bytes at a null address", expected);
    case CallFault::own_end_elsewhere:
      return fmt::format(
          "{:#x} is memory of rank {} on another node, which this process has not mapped: get it first, or use "
          "World::copy",
          observed, expected);
    case CallFault::own_end_on_gpu:
      return fmt::format(
          "{} bytes at {:#x} are GPU memory, which CPU threads neither load nor store: use World::copy or a stream",
          expected, observed);
    case CallFault::forked:
      return "this process is a fork of the one that made the world: a forked process cannot use its parent's world";
    case CallFault::batch_is_open:
      return "the batch has begun and not ended: call end() first";
    case CallFault::batch_is_closed:
      return "the batch has not begun: call begin() first";
    case CallFault::no_entries:
      return "an engine reaches this peer, so the batch needs memory for entries: pass it to its constructor";
    case CallFault::misaligned:
      return fmt::format("address {:#x} is not aligned to {} bytes", observed, expected);
    case CallFault::blocks_overlap:
      return fmt::format("blocks of {} elements overlap in the destination, where they are {} apart", expected,
                         observed);
    case CallFault::blocks_too_far:
      return fmt::format("{} blocks, {} elements apart, reach beyond the end of the address space", expected, observed);
    case CallFault::no_signals:
      return "a wait for any of 0 signals: it would not end";
    case CallFault::partial_warp:
      return fmt::format("a group of {} threads: it takes whole warps of {}", observed, expected);
    case CallFault::no_waits:
      return "its kernel was launched without .waits = true: launch it with .waits = true";
    case CallFault::no_buffer:
      return fmt::format(
          "no buffer: declare shared_bytes = sizeof(BulkBuffer), {} bytes, in the kernel, and pass "
          "bulk_buffer()",
          expected);
    case CallFault::cpu_in_gpu_memory:
      return fmt::format(
          "{} bytes at {:#x} are GPU memory, which CPU threads neither load nor store: use World::copy, a "
          "stream, or the pinned heap",
          expected, observed);
    case CallFault::no_route:
      return fmt::format("no route leads to rank {}", observed);
    case CallFault::by_engine_only:
      return fmt::format("loads and stores do not reach rank {}, an engine does (use put, get, signal or atomics)",
                         observed);
    case CallFault::gpu_atomic_on_host:
      return fmt::format(
          "a kernel's read-modify-write of {} bytes of host memory at {:#x} would not exclude those of "
          "CPUs and other GPUs: use GPU memory, or a word for each writer, and let values grow where a "
          "signal would be reset",
          expected, observed);
    case CallFault::no_tag:
      return fmt::format("there is no tag {}: tags are 0 to {} (TriggerOptions::tags)", observed, expected - 1);
    case CallFault::no_task_queue:
      return fmt::format("there is no queue {}: queues are 0 to {} (TaskOptions::queues)", observed, expected - 1);
    case CallFault::no_function:
      return fmt::format("there is no function {}: the task list has 0 to {}", observed, expected - 1);
    case CallFault::not_registered:
      return fmt::format("function {} is not registered on the rank that was to run it", observed);
    case CallFault::wrong_arguments:
      return fmt::format("arguments of {} bytes, and the function takes {}", observed, expected);
    case CallFault::long_payload:
      return fmt::format("a payload of {} bytes, where the target's buffer has room for {}", observed, expected);
    case CallFault::waits_in_task:
      return fmt::format(
          "a task of queue {} waits for a place in queue {}: only for one of a lower number it may, to "
          "others it posts with Timeout::test()",
          expected, observed);
  }
  return "refused";
}

}  // namespace beeline
