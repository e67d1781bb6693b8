// SPDX-License-Identifier: Apache-2.0
// Finding out that a wait has failed, somewhere, and saying so.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <functional>

#include "beeline/device/wait.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

namespace {

constexpr std::int64_t nap_ns = 10'000'000;         // from one look at the abort words to the next while a stream works
constexpr std::uint64_t gathering_ns = 50'000'000;  // for the others' waits to notice the abort and record themselves

std::string describe(const WaitRecord& record) {
  const std::string peer = record.peer == no_peer ? "any rank" : fmt::format("rank {}", record.peer);
  return fmt::format("rank {}: {} on {}, sequence {}: expected {}, observed {}, after {:.3f} s ({})", record.rank,
                     name(static_cast<Operation>(record.operation)), peer, record.sequence, record.expected,
                     record.observed, static_cast<double>(record.waited_ns) / 1e9,
                     name(static_cast<Status>(record.status)));
}

void collect(const WaitTable& table, std::vector<WaitRecord>& found) {
  for (const WaitRecord& record : table.records)
    if (detail::SystemAtomic<std::uint32_t>(const_cast<std::uint32_t&>(record.status))
            .load(cuda::memory_order_acquire) != 0)
      found.push_back(record);
}

std::uint64_t load_word(const std::uint64_t& word) {
  return detail::SystemAtomic<std::uint64_t>(const_cast<std::uint64_t&>(word)).load(cuda::memory_order_acquire);
}

}  // namespace

void World::Implementation::note_end(int culprit, const std::string& reason) {
  {
    const std::lock_guard lock(failure_mutex);
    if (dead_reason.empty()) dead_rank = culprit, dead_reason = reason.empty() ? "no reason given" : reason;
  }
  {
    const std::lock_guard lock(team_mutex);
    for (const auto& [id, ranks] : teams) {
      if (culprit >= 0 && std::find(ranks.begin(), ranks.end(), culprit) == ranks.end()) continue;
      detail::SystemAtomic<std::uint64_t>(host_header(rank)->control.abort[id])
          .store(abort_word(static_cast<std::uint32_t>(culprit < 0 ? rank : culprit)), cuda::memory_order_release);
    }
  }
  tell_kernels();
}

void World::Implementation::tell_kernels() {
  if (!device().is_gpu() || copy_stream == nullptr) return;
  try {
    copy_stream->copy(heap_header(rank)->abort, host_header(rank)->control.abort, sizeof(HeapHeader::abort));
  } catch (const Error& error) {
    log(LogLevel::error, fmt::format("kernels could not be told of the abort: {}", error.what()), rank);
  }
}

std::vector<WaitRecord> World::Implementation::failed_waits() const {
  std::vector<WaitRecord> found;
  for (int other = 0; other < size; ++other) {
    collect(host_header(other)->control.device_waits, found);
    collect(host_header(other)->control.host_waits, found);
  }
  // The waits that reached their deadline first: they are the cause, aborted ones the consequence.
  std::stable_partition(found.begin(), found.end(), [](const WaitRecord& record) {
    return record.status == static_cast<std::uint32_t>(Status::deadline);
  });
  return found;
}

bool World::Implementation::failed() const {
  const ControlBlock& mine = host_header(rank)->control;
  return std::any_of(std::begin(mine.abort), std::end(mine.abort),
                     [](const std::uint64_t& word) { return load_word(word) != 0; });
}

void World::Implementation::check() {
  if (failed()) fail(Status::aborted);
}

World::Implementation::End World::Implementation::end_of_world() {
  const std::lock_guard lock(failure_mutex);
  if (dead_reason.empty()) return {};
  if (dead_rank < 0) return {Status::aborted, fmt::format("the world ended: {}", dead_reason)};
  return {Status::peer_died, fmt::format("rank {} ended: {}", dead_rank, dead_reason)};
}

void World::Implementation::fail(Status status) {
  const std::uint64_t end = machine::clock_ns() + gathering_ns;
  for (std::uint32_t poll = 0; machine::clock_ns() < end; ++poll) machine::back_off(poll, 0);
  const std::vector<WaitRecord> waits = failed_waits();
  // A wait that reached its deadline is the cause; a rank that ended then did so because of it.
  const bool overdue = !waits.empty() && waits.front().status == static_cast<std::uint32_t>(Status::deadline);
  const End end_noticed = end_of_world();
  if (overdue && waits.front().rank == static_cast<std::uint32_t>(rank)) status = Status::deadline;
  if (!overdue && !end_noticed.text.empty()) status = end_noticed.status;
  std::string message = end_noticed.text;
  if (overdue || (message.empty() && !waits.empty())) message = describe(waits.front());
  const std::uint64_t word = load_word(host_header(rank)->control.abort[0]);
  if (message.empty()) message = word == 0 ? "no wait recorded" : fmt::format("rank {} aborted the world", word - 1);
  std::string others = overdue && !end_noticed.text.empty() ? "\n  " + end_noticed.text : "";
  for (const WaitRecord& record : waits)
    if (const std::string text = describe(record); text != message) others += "\n  " + text;
  throw Error(status, others.empty() ? message : fmt::format("{}; when it was noticed:{}", message, others), rank);
}

void World::Implementation::await(const char* what, std::int64_t deadline_ns, const std::function<bool()>& over,
                                  Stream* awaited_stream) {
  const std::uint64_t start = machine::clock_ns();
  bool released = false;
  for (std::uint32_t poll = 0; !over(); ++poll) {
    const bool slept =
        poll >= host_context.spin_polls && awaited_stream != nullptr && awaited_stream->sleep_until_drained(nap_ns);
    if (!slept) machine::back_off(poll, host_context.spin_polls);
    if (poll % detail::polls_per_look != 0 && poll < host_context.spin_polls) continue;
    const std::uint64_t waited = machine::clock_ns() - start;
    if (waited < static_cast<std::uint64_t>(deadline_ns) && !(failed() && !released)) continue;
    if (!failed()) {
      const Awaited awaited{Operation::stream_synchronize, host_context.rank, 0, 1};
      static_cast<void>(detail::give_up(host_context, awaited, 0, waited, Status::deadline));
    }
    if (released)
      throw Error(Status::deadline, fmt::format("{} did not end, not even after the world was aborted", what), rank);
    released = true;  // kernels are told, and leave; give them time to
    tell_kernels();
    stream->release_waits();
    if (awaited_stream != nullptr) awaited_stream->release_waits();
    deadline_ns = static_cast<std::int64_t>(waited) + 5'000'000'000;
  }
}

}  // namespace beeline
