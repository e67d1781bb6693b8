// SPDX-License-Identifier: Apache-2.0
// Global atomics (10).
#include <array>
#include <atomic>
#include <memory>

#include "gaspi/moves.hpp"
#include "gaspi/statistics.hpp"
#include "gaspi/timed_operations.hpp"

namespace beeline::gaspi {

namespace {

constexpr std::uint64_t word_bytes = sizeof(gaspi_atomic_value_t);
static_assert(word_bytes == sizeof(std::uint64_t));

/// A word as the caller names it.
struct WordName {
  gaspi_segment_id_t segment;
  gaspi_offset_t offset;
  gaspi_rank_t rank;
};

/// A word of a segment, as atomics reach it.
struct Word {
  std::uint64_t* symmetric;  ///< for operations with the rank; nullptr: only `mapped`
  std::uint64_t* mapped;     ///< in this process
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
  const Word word{at(part.data), at(part.address)};
  if (word.symmetric == nullptr && word.mapped == nullptr)
    refuse(GASPI_ERR_DEVICE,
           fmt::format("segment {} of rank {} is memory of its program's, on which other ranks do no atomics", segment,
                       rank));
  return word;
}

/// Calls `change()` once. An operation that another node carries out may be done although ranks were lost before its
/// answer came; then it must not be repeated. Returns a beeline_status.
template <class Change>
beeline_status change_once(const Process& process, int rank, const Change& change) {
  if (beeline_team_failed(process.world_team()) != 0) return BEELINE_ABORTED;  // nothing was begun
  const beeline_status status = change();
  const bool is_lost = status == BEELINE_ABORTED || status == BEELINE_PEER_DIED || status == BEELINE_DEADLINE;
  if (is_lost && queues().carrier_to(rank) == Carrier::engine)
    throw Failure(
        fmt::format("ranks were lost before rank {} answered; whether the operation was done is not known: {}", rank,
                    beeline_last_error()));
  return status;
}

/// The same within the time-out of the call, which the answer of another node may exceed.
template <class Change>
Result change_in_time(const Process& process, const Awaited& awaited, const TimedOperations::Call& call,
                      const WordName& name, const Change& change, std::uint64_t& before) {
  const auto use = std::make_shared<const SegmentTable::Use>(process.segments(), name.segment, name.rank);
  const Word word = require_word(process, name.segment, name.offset, name.rank);
  const auto operation = [&process, use, word, change](std::uint64_t& answer) { return change(process, word, answer); };
  return timed_operations(process).perform(process, awaited, call, operation, before);
}

/// A call that changes a word by `change(process, word, before)`, which returns a beeline_status.
///   what  the kind of the change, for its key, and its operands
template <class Change>
gaspi_return_t change_word(const char* function, const WordName& name, gaspi_atomic_value_t* value_old,
                           gaspi_timeout_t timeout_ms, const std::array<std::uint64_t, 3>& what,
                           const Change& change) noexcept {
  return call(function, [&](Process& process) {
    require_pointer(value_old, "value_old");
    const gaspi_rank_t rank = name.rank;
    require_peer(process, rank);
    const SegmentTable::Use use(process.segments(), name.segment, rank);
    const Word word = require_word(process, name.segment, name.offset, rank);
    const int needed = rank;
    const Awaited awaited{.what = "an atomic operation on rank", .number = rank, .needed = {&needed, 1}};
    std::uint64_t before = 0;
    Result result = Result::success;
    if (timeout_ms != block_ms && queues().carrier_to(rank) == Carrier::engine) {
      const TimedOperations::Key key{what[0], what[1], what[2], name.segment, name.offset, rank};
      result = change_in_time(process, awaited, {key, timeout_ms, false}, name, change, before);
    } else {
      result = wait_for(process, awaited, timeout_ms, [&](std::uint64_t) {
        return change_once(process, rank, [&] { return change(process, word, before); });
      });
    }
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
  const auto add = [=](const Process& process, const Word& word, std::uint64_t& before) -> beeline_status {
    if (word.symmetric != nullptr)
      return beeline_fetch_add(process.world_team(), word.symmetric, value_add, rank, &before);
    before = std::atomic_ref<std::uint64_t>(*word.mapped).fetch_add(value_add);
    return BEELINE_OK;
  };
  return change_word("gaspi_atomic_fetch_add", {segment_id, offset, rank}, value_old, timeout_ms,
                     {fetch_add_key, value_add, 0}, add);
}
GASPI_EXPORT(atomic_fetch_add);

gaspi_return_t pgaspi_atomic_compare_swap(gaspi_segment_id_t segment_id, gaspi_offset_t offset, gaspi_rank_t rank,
                                          gaspi_atomic_value_t comparator, gaspi_atomic_value_t value_new,
                                          gaspi_atomic_value_t* value_old, gaspi_timeout_t timeout_ms) {
  const auto swap = [=](const Process& process, const Word& word, std::uint64_t& before) -> beeline_status {
    if (word.symmetric != nullptr)
      return beeline_compare_swap(process.world_team(), word.symmetric, comparator, value_new, rank, &before);
    before = comparator;
    std::atomic_ref<std::uint64_t>(*word.mapped).compare_exchange_strong(before, value_new);
    return BEELINE_OK;
  };
  return change_word("gaspi_atomic_compare_swap", {segment_id, offset, rank}, value_old, timeout_ms,
                     {compare_swap_key, comparator, value_new}, swap);
}
GASPI_EXPORT(atomic_compare_swap);
