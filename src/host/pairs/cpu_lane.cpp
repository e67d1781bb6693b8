// SPDX-License-Identifier: Apache-2.0
#include "host/pairs/cpu_lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/host/world.hpp"
#include "host/world/part.hpp"
#include "host/world/teams.hpp"
#include "transport/checks.hpp"
#include "transport/host_stream.hpp"

namespace beeline::detail {

namespace {

constexpr std::size_t least_scratch = std::size_t{1} << 16;

using Word = SystemAtomic<std::uint64_t>;

std::uint64_t load(const PaddedWord& word) {
  return Word(const_cast<std::uint64_t&>(word.value)).load(std::memory_order_acquire);
}

constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Pinned, so every GPU of this process copies to and from the memory.
constexpr bool is_pinned = true;
constexpr const char* purpose = "of host memory for vectors that cross nodes";

}  // namespace

CpuLane::CpuLane(Team& team)
    : team_(team), words_(most_calls * sizeof(Words), is_pinned, purpose),
      thread_(make_host_stream(host_device(), team.host_context(), nullptr)) {}

/// The thread first ends its pending calls; the deadline ends the wait for a stream that does not reach its call.
CpuLane::~CpuLane() = default;

CpuLane::Words& CpuLane::words(std::uint64_t number) const {
  return reinterpret_cast<Words*>(words_.data())[number % most_calls];
}

bool CpuLane::has_ended(std::uint64_t number) const { return load(words(number).ended) >= number; }

std::byte* CpuLane::scratch_for(std::uint64_t number, std::size_t bytes) {
  for (Scratch& each : scratch_)
    if (each.memory->bytes() >= bytes && (number - each.user >= most_calls || has_ended(each.user))) {
      each.user = number;
      return each.memory->data();
    }
  scratch_.push_back(
      {std::make_unique<HostBuffer>(std::max(least_scratch, std::bit_ceil(bytes)), is_pinned, purpose), number});
  return scratch_.back().memory->data();
}

bool CpuLane::await_stream(std::uint64_t number) const {
  const std::uint64_t start = machine::clock_ns();
  const auto longest = static_cast<std::uint64_t>(team_.world().config().stream_deadline_ns);
  const PaddedWord& begun = words(number).begun;
  for (std::uint32_t poll = 0; load(begun) < number; ++poll) {
    machine::back_off(poll, team_.host_context().polling);
    if (poll % polls_per_look == 0 && machine::clock_ns() - start > longest) return false;
  }
  return true;
}

void CpuLane::require_no_capture(Stream& stream) {
  refuse_captured(stream, "a call of members on several nodes", "a CPU thread does it, once");
}

void CpuLane::call(Stream& stream, const LaneVectors& vectors, Call work) {
  require_no_capture(stream);
  const std::uint64_t number = ++calls_;
  if (number > most_calls) {
    const Status status = await_engine(team_.host_context(), {}, [&] { return has_ended(number - most_calls); });
    require(status == Status::ok, status, fmt::format("{} calls are under way, and none ends", most_calls));
  }
  const std::size_t to_bytes = whole_lines(vectors.destination_bytes);
  std::byte* const scratch = scratch_for(number, to_bytes + vectors.source_bytes);
  std::byte* const from = scratch + to_bytes;
  Words& state = words(number);
  if (vectors.source_bytes != 0) stream.copy(from, vectors.source, vectors.source_bytes);
  if (vectors.has_gaps && vectors.destination_bytes != 0)
    stream.copy(scratch, vectors.destination, vectors.destination_bytes);
  stream.write_signal(&state.begun.value, number);
  world_part<Teams>(team_.world()).note_launch(stream, team_.host_context(), false);
  thread_->enqueue([this, number, scratch, from, &state, work = std::move(work)] {
    if (await_stream(number)) work(team_.host_context(), scratch, from);
    Word(state.done.value).store(number, std::memory_order_release);  // a failure is recorded already
  });
  stream.wait_signal(&state.done.value, number);
  if (vectors.destination_bytes != 0) stream.copy(vectors.destination, scratch, vectors.destination_bytes);
  stream.write_signal(&state.ended.value, number);
}

}  // namespace beeline::detail
