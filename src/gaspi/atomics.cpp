// SPDX-License-Identifier: Apache-2.0
// Global atomics (10).
#include <memory>

#include "gaspi/forwarded_atomics.hpp"
#include "gaspi/moves.hpp"
#include "gaspi/statistics.hpp"
#include "gaspi/timed_operations.hpp"

namespace beeline::gaspi {

namespace {

constexpr std::uint64_t word_bytes = sizeof(gaspi_atomic_value_t);
static_assert(word_bytes == sizeof(std::uint64_t));

/// A word of a segment, as atomics reach it.
struct Word {
  std::uint64_t* symmetric;  ///< for operations with the rank; nullptr: only `mapped`
  std::uint64_t* mapped;     ///< in this process; nullptr, too: only the rank itself reaches the word
};

Word require_word(const Process& process, gaspi_segment_id_t segment, gaspi_offset_t offset, int rank) {
  const Part part = require_part(process, segment, rank);
  if (!is_within(offset, word_bytes, part.bytes))
    refuse(rank == process.rank() ? GASPI_ERR_INV_LOC_OFF : GASPI_ERR_INV_REM_OFF,
           fmt::format("8 bytes from offset {} on, in segment {} of rank {}, which has {} bytes", offset, segment, rank,
                       part.bytes));
  const auto place = reinterpret_cast<std::uintptr_t>(part.address);  // 0 modulo 8 unless the program gave the memory
  if (offset % word_bytes != 0 || place % word_bytes != 0 || part.registered_offset % word_bytes != 0)
    refuse(GASPI_ERR_UNALIGN_OFF,
           fmt::format("offset {} of segment {} is at an address that is not a multiple of 8", offset, segment));
  if (part.kind == Memory::device)
    refuse(GASPI_ERR_DEVICE,
           fmt::format("segment {} of rank {} is GPU memory, on which only kernels do atomics", segment, rank));
  const auto at = [=](std::byte* start) {
    return start == nullptr ? nullptr : reinterpret_cast<std::uint64_t*>(start + offset);
  };
  return {at(part.data), at(part.is_direct ? part.address : nullptr)};
}

/// Changes a word; returns a beeline_status.
beeline_status change_at(const Process& process, const Word& word, int rank, const AtomicChange& change,
                         std::uint64_t& before) {
  if (word.symmetric == nullptr) {
    before = change.apply(*word.mapped);
    return BEELINE_OK;
  }
  beeline_team* const team = process.world_team();
  return change.swaps == 0
             ? beeline_fetch_add(team, word.symmetric, change.operand, rank, &before)
             : beeline_compare_swap(team, word.symmetric, change.comparator, change.operand, rank, &before);
}

/// As `change_at`, once. An operation that another node carries out may be done although ranks were lost before its
/// answer came; then it must not be repeated.
beeline_status change_once(const Process& process, const Word& word, int rank, const AtomicChange& change,
                           std::uint64_t& before) {
  if (beeline_team_failed(process.world_team()) != 0) return BEELINE_ABORTED;  // nothing was begun
  bool has_begun = false;
  const auto operation = [&] {
    has_begun = true;
    return change_at(process, word, rank, change, before);
  };
  const bool is_remote = queues().carrier_to(rank) == Carrier::engine;
  const beeline_status status = is_remote ? process.ask(rank, operation) : operation();
  const bool is_lost = status == BEELINE_ABORTED || status == BEELINE_PEER_DIED || status == BEELINE_DEADLINE;
  if (is_lost && is_remote && has_begun)
    throw Failure(
        fmt::format("ranks were lost before rank {} answered; whether the operation was done is not known: {}", rank,
                    beeline_last_error()));
  return status;
}

/// The same within the time-out of the call, which the answer of another node may exceed.
Result change_in_time(const Process& process, const Awaited& awaited, int rank, const AtomicChange& change,
                      std::uint64_t timeout_ms, std::uint64_t& before) {
  const auto segment = static_cast<gaspi_segment_id_t>(change.segment);
  const auto use = std::make_shared<const SegmentTable::SharedUse>(process.segments(), segment);
  const Word word = require_word(process, segment, change.offset, rank);
  const auto operation = [&process, use, word, rank, change](std::uint64_t& answer) {
    return process.ask(rank, [&] { return change_at(process, word, rank, change, answer); });
  };
  const TimedOperations::Key key{
      atomics_key,   static_cast<std::uint64_t>(rank), change.segment, change.offset, change.swaps, change.comparator,
      change.operand};
  return timed_operations(process).perform(process, awaited, {key, timeout_ms, false}, operation, before);
}

/// A call that changes a word.
gaspi_return_t change_word(const char* function, gaspi_rank_t rank, const AtomicChange& change,
                           gaspi_atomic_value_t* value_old, gaspi_timeout_t timeout_ms) noexcept {
  return call(function, [&](Process& process) {
    require_pointer(value_old, "value_old");
    require_peer(process, rank);
    const auto segment = static_cast<gaspi_segment_id_t>(change.segment);
    const SegmentTable::Use use(segment);
    const Word word = require_word(process, segment, change.offset, rank);
    const int needed = rank;
    const Awaited awaited{.what = "an atomic operation on rank", .number = rank, .needed = {&needed, 1}};
    std::uint64_t before = 0;
    Result result = Result::success;
    if (word.symmetric == nullptr && word.mapped == nullptr)
      result = process.extension<ForwardedAtomics>()->change(process, rank, change, timeout_ms, before);
    else if (timeout_ms != block_ms && queues().carrier_to(rank) == Carrier::engine)
      result = change_in_time(process, awaited, rank, change, timeout_ms, before);
    else
      result = wait_for(process, awaited, timeout_ms,
                        [&](std::uint64_t) { return change_once(process, word, rank, change, before); });
    if (result != Result::success) return result;
    count(Counter::atomics);
    *value_old = before;
    return result;
  });
}

}  // namespace

}  // namespace beeline::gaspi

using namespace beeline::gaspi;

gaspi_return_t pgaspi_atomic_fetch_add(gaspi_segment_id_t segment_id, gaspi_offset_t offset, gaspi_rank_t rank,
                                       gaspi_atomic_value_t value_add, gaspi_atomic_value_t* value_old,
                                       gaspi_timeout_t timeout_ms) {
  return change_word("gaspi_atomic_fetch_add", rank, {segment_id, offset, 0, 0, value_add}, value_old, timeout_ms);
}
GASPI_EXPORT(atomic_fetch_add);

gaspi_return_t pgaspi_atomic_compare_swap(gaspi_segment_id_t segment_id, gaspi_offset_t offset, gaspi_rank_t rank,
                                          gaspi_atomic_value_t comparator, gaspi_atomic_value_t value_new,
                                          gaspi_atomic_value_t* value_old, gaspi_timeout_t timeout_ms) {
  return change_word("gaspi_atomic_compare_swap", rank, {segment_id, offset, 1, comparator, value_new}, value_old,
                     timeout_ms);
}
GASPI_EXPORT(atomic_compare_swap);
