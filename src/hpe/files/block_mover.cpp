// SPDX-License-Identifier: Apache-2.0
#include "hpe/files/block_mover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "runtime/deadline.hpp"

namespace beeline::hpe::detail {

namespace {

constexpr std::chrono::milliseconds report_period{100};
constexpr std::chrono::seconds line_period{5};
/// Calls that do not end by then are left behind.
constexpr std::int64_t longest_cancel_ns = 2'000'000'000;

std::chrono::nanoseconds deadline_of(const FileOptions& options) {
  if (options.deadline) return *options.deadline;
  static constinit beeline::detail::ProcessValue<const std::chrono::nanoseconds> of_process;
  return of_process.get([] { return std::chrono::nanoseconds(Config::from_environment().deadline_ns); });
}

}  // namespace

BlockMover::BlockMover(const MoverParts& parts, const BlockPlan& plan, const FileOptions& options)
    : parts_(parts), plan_(plan), options_(options), deadline_(deadline_of(options)), slots_(parts.slots),
      last_progress_(Clock::now()), last_report_(last_progress_), last_line_(last_progress_) {}

void BlockMover::run() {
  try {
    while (moved_ < plan_.bytes()) {
      start_waiting_calls();
      start_blocks();
      // Before copies, each of which takes some microseconds to start: a virtual disk reports the calls that it has
      // found as one group, and rests until it gets the next group.
      parts_.io.submit();
      start_copies();
      const bool has_copied = look_at_copies(), has_moved = take_results(!has_copied);
      if (has_moved || has_copied)
        note_progress();
      else
        check_limits("blocks");
    }
    if (options_.durable && !reads()) sync();
    report_progress();
  } catch (const Error& error) {
    settle();
    if (!is_stuck_ || is_inherited()) throw;
    throw Error(error.code(),
                fmt::format("{}; the operating system goes on with {} blocks, and may still {} their memory",
                            error.what(), in_call_, reads() ? "write" : "read"));
  } catch (...) {
    settle();
    throw;
  }
}

/// Takes the first idle slots: where few calls are in flight, few buffers are in use, which stay in the CPU's caches.
void BlockMover::start_blocks() {
  for (unsigned i = 0; i < slots_.size() && next_block_ < plan_.count(); ++i) {
    const auto index = parts_.in_turn ? static_cast<unsigned>(next_block_ % slots_.size()) : i;
    if (slots_[index].stage != Stage::idle) {
      if (parts_.in_turn) break;
      continue;
    }
    const Slot next = next_slot();
    if (!may_begin(index, next)) break;
    begin(index, next);
  }
}

BlockMover::Slot BlockMover::next_slot() const {
  Slot slot{.block = plan_.block(next_block_)};
  const auto address = reinterpret_cast<std::uintptr_t>(parts_.memory + slot.block.start);
  const FileRange part{parts_.file.range().offset + slot.block.start, slot.block.bytes};
  slot.is_direct = slot.block.is_aligned && parts_.file.direct() >= 0 && !parts_.file.is_cached(part);
  slot.is_staged = !parts_.in_place || (slot.is_direct && address % parts_.file.memory_alignment() != 0);
  return slot;
}

bool BlockMover::may_call(const Slot& slot) const {
  return in_call_ < (slot.is_direct ? parts_.calls : parts_.cached_calls);
}

bool BlockMover::may_begin(unsigned index, const Slot& next) const {
  if (reads() && !may_call(next)) return false;
  return parts_.in_turn || !next.is_direct || index < parts_.calls + copied_beside;
}

void BlockMover::begin(unsigned index, const Slot& next) {
  ++next_block_;
  Slot& slot = slots_[index];
  slot = next;
  if (reads() || !slot.is_staged) {
    slot.stage = Stage::waits_for_call;
    if (may_call(slot)) start_call(index);
  } else {
    slot.stage = Stage::waits_for_copy;
  }
}

std::byte* BlockMover::memory_of_call(unsigned index) const {
  const Slot& slot = slots_[index];
  return (slot.is_staged ? buffer(index) : parts_.memory + slot.block.start) + slot.moved;
}

void BlockMover::start_call(unsigned index) {
  Slot& slot = slots_[index];
  // What a short call has left over has another alignment.
  if (slot.moved != 0 || parts_.file.direct() < 0) slot.is_direct = false;
  slot.stage = Stage::in_call;
  ++in_call_;
  parts_.io.start({.kind = reads() ? BlockCall::Kind::read : BlockCall::Kind::write,
                   .descriptor = slot.is_direct ? parts_.file.direct() : parts_.file.buffered(),
                   .memory = memory_of_call(index),
                   .bytes = slot.block.bytes - slot.moved,
                   .offset = parts_.file.range().offset + slot.block.start + slot.moved,
                   .is_aside = !slot.is_direct && next_block_ < plan_.count() && plan_.bytes() >= least_bytes_aside,
                   .tag = index});
}

void BlockMover::start_waiting_calls() {
  for (unsigned i = 0; i < slots_.size(); ++i)
    if (slots_[i].stage == Stage::waits_for_call && may_call(slots_[i])) start_call(i);
}

void BlockMover::start_copies() {
  for (unsigned i = 0; i < slots_.size(); ++i) {
    if (slots_[i].stage != Stage::waits_for_copy) continue;
    const FileBlock& block = slots_[i].block;
    std::byte *const memory = parts_.memory + block.start, *const staged = buffer(i);
    slots_[i].stage = Stage::in_copy;
    ++in_copy_;
    if (!parts_.copies.start(i, reads() ? memory : staged, reads() ? staged : memory, block.bytes)) continue;
    end_copy(i);
    parts_.io.submit();  // the calling thread has made this copy: a write can begin while it makes the next ones
  }
}

bool BlockMover::look_at_copies() {
  bool has_ended = false;
  for (unsigned i = 0; i < slots_.size() && in_copy_ > 0; ++i)
    if (slots_[i].stage == Stage::in_copy && parts_.copies.is_done(i)) end_copy(i), has_ended = true;
  return has_ended;
}

void BlockMover::end_copy(unsigned index) {
  --in_copy_;
  if (reads()) return end_block(index);
  slots_[index].stage = Stage::waits_for_call;
  if (may_call(slots_[index])) start_call(index);
}

std::int64_t BlockMover::longest_wait_ns() const {
  constexpr std::int64_t beside_copies_ns = 20'000, longest_ns = 50'000'000;
  const std::int64_t left_ns = (deadline_ - (Clock::now() - last_progress_)).count();
  return std::clamp<std::int64_t>(left_ns, 0, in_copy_ > 0 ? beside_copies_ns : longest_ns);
}

unsigned BlockMover::wanted_results() const {
  if (next_block_ < plan_.count()) return 1;
  const auto needs_no_more = [this](const Slot& slot) {
    return slot.stage == Stage::idle || (slot.stage == Stage::in_call && !(reads() && slot.is_staged));
  };
  return std::all_of(slots_.begin(), slots_.end(), needs_no_more) ? in_call_ : 1;
}

bool BlockMover::take_results(bool waits) {
  BlockResult result;
  if (in_call_ == 0 && waits) std::this_thread::yield();  // the copies' device works
  if (in_call_ == 0 || !parts_.io.await(result, waits ? longest_wait_ns() : 0, wanted_results())) return false;
  bool has_moved = false;
  do has_moved |= end_call(result);
  while (in_call_ > 0 && parts_.io.await(result, 0, 1));
  return has_moved;
}

bool BlockMover::end_call(const BlockResult& result) {
  Slot& slot = slots_[result.tag];
  const std::uint64_t offset = parts_.file.range().offset + slot.block.start + slot.moved;
  --in_call_;
  slot.stage = Stage::waits_for_call;
  if (result.value == -EINTR || result.value == -EAGAIN) return false;
  if (result.value == -EINVAL && slot.is_direct) {
    parts_.file.refuse_direct();
    return false;
  }
  if (result.value < 0) parts_.file.fail(static_cast<int>(-result.value), offset);
  if (result.value == 0) fail_empty_call(offset);
  slot.moved += static_cast<std::size_t>(result.value);
  if (slot.moved < slot.block.bytes) return true;
  if (!reads() || !slot.is_staged) {
    end_block(result.tag);
    return true;
  }
  slot.stage = Stage::waits_for_copy;
  return true;
}

void BlockMover::fail_empty_call(std::uint64_t offset) const {
  const std::string file = parts_.file.text();
  if (!reads()) throw Error(Status::no_resource, fmt::format("{} takes no more bytes at offset {}", file, offset));
  const std::uint64_t bytes = parts_.file.bytes_now();
  require(
      bytes <= offset, Status::invalid_argument,
      fmt::format("{} has {} bytes by its length, but ends before byte {}, as files of /sys do", file, bytes, offset));
  throw Error(
      Status::invalid_argument,
      fmt::format("{} has shrunk while it was read: {} bytes, and byte {} was to be read", file, bytes, offset));
}

void BlockMover::end_block(unsigned index) {
  moved_ += slots_[index].block.bytes;
  slots_[index].stage = Stage::idle;
}

/// The file, and the folder of a new one at the same time: both wait for the same commit of a journal.
void BlockMover::sync() {
  constexpr unsigned of_file = 0, of_folder = 1;
  const FileDescriptor folder = parts_.file.folder_to_sync();
  parts_.io.start({.kind = BlockCall::Kind::sync_data, .descriptor = parts_.file.any(), .tag = of_file});
  if (folder) parts_.io.start({.kind = BlockCall::Kind::sync, .descriptor = folder.get(), .tag = of_folder});
  last_progress_ = Clock::now();
  for (unsigned left = folder ? 2 : 1; left > 0;) {
    BlockResult result;
    if (!parts_.io.await(result, longest_wait_ns(), 1)) {
      check_limits("fsync");
      continue;
    }
    --left;
    if (result.value >= 0) continue;
    const int error_number = static_cast<int>(-result.value);
    if (result.tag == of_folder) parts_.file.fail_folder(error_number);
    parts_.file.fail(error_number, parts_.file.range().end());
  }
}

void BlockMover::note_progress() {
  beeline::detail::throw_if_interrupted(-1);
  last_progress_ = Clock::now();
  if (options_.progress && last_progress_ - last_report_ >= report_period) {
    last_report_ = last_progress_;
    report_progress();
    last_progress_ = Clock::now();  // without the time of the caller's function
  }
  if (last_progress_ - last_line_ < line_period) return;
  last_line_ = last_progress_;
  log(LogLevel::info,
      fmt::format("{} {}: {} of {} bytes", reads() ? "reading" : "writing", parts_.file.text(), moved_, plan_.bytes()));
}

void BlockMover::report_progress() const {
  if (!options_.progress) return;
  options_.progress(moved_, plan_.bytes());
  if (is_inherited())
    throw Error(Status::unavailable, fmt::format("{}: this process was forked during its parent's transfer, which only "
                                                 "the parent goes on with",
                                                 parts_.file.text()));
}

void BlockMover::check_limits(const char* what) {
  beeline::detail::throw_if_interrupted(-1);
  const std::chrono::nanoseconds waited = Clock::now() - last_progress_;
  if (waited < deadline_) return;
  throw Error(Status::deadline,
              fmt::format("{} {}: no progress of {} in {:.3g} s, after {} of {} bytes; {} blocks in the file system, "
                          "{} in copies",
                          reads() ? "reading" : "writing", parts_.file.text(), what,
                          std::chrono::duration<double>(waited).count(), moved_, plan_.bytes(), in_call_, in_copy_));
}

void BlockMover::settle() noexcept {
  is_stuck_ = true;
  if (is_inherited()) return parts_.file.keep();
  try {
    const bool has_ended = parts_.io.cancel(longest_cancel_ns);
    is_stuck_ = !parts_.copies.settle() || !has_ended;
  } catch (const Error& error) {
    log(LogLevel::warning, fmt::format("{}: {}", parts_.file.text(), error.what()));
  }
}

}  // namespace beeline::hpe::detail
