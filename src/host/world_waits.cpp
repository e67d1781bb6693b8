// SPDX-License-Identifier: Apache-2.0
// Waits of CPU threads for work of devices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "beeline/device/wait.hpp"
#include "host/world_implementation.hpp"
#include "runtime/gpu_fault.hpp"
#include "runtime/rank_list.hpp"
#include "transport/checks.hpp"

namespace beeline {

namespace {

constexpr std::int64_t nap_ns = 10'000'000;  // between checks of the abort words while a stream works
constexpr TeamSet whatever_fails = 0;

/// A thread that polls a stream through the driver delays other threads' calls of the driver, such as an engine's. So
/// the pause between polls grows with the time waited, of which it is a small part; beside an engine it may be longer.
void let_others_call_driver(std::uint64_t wait_start_ns) {
  const std::uint64_t now = machine::clock_ns(), most_ns = HostEngine::call_driver() ? 20'000 : 5'000;
  const std::uint64_t end = now + std::min((now - wait_start_ns) / 32, most_ns);
  while (machine::clock_ns() < end) machine::back_off(0, Polling(WaitPolicy::spin, 0));
}

}  // namespace

void World::Implementation::check_refusals() {
  if (const std::vector<std::string> texts = engines->take_refusals(); !texts.empty())
    throw Error(Status::invalid_argument, fmt::format("{}", fmt::join(texts, "\n  ")), rank());
}

void World::Implementation::await_work(const char* what, Stream& stream, std::int64_t deadline_ns) {
  const std::unique_ptr<Event> event = stream.make_event();
  stream.record(*event);
  await(
      what, deadline_ns, [&event] { return event->done(); }, whatever_fails);
}

void World::Implementation::await_default_stream() {
  Stream& stream = streams->main();
  refuse_captured(stream, "freeing memory", "it waits for the default stream");
  await(
      "the default stream", config.stream_deadline_ns, [&stream] { return stream.drained(); }, whatever_fails, &stream);
}

void World::Implementation::give_up_streams(TeamSet watched, std::uint64_t waited_ns, std::uint16_t kernel) {
  for (TeamSet rest = watched == 0 ? Teams::world_only : watched; rest != 0; rest &= rest - 1) {
    const auto id = static_cast<std::uint32_t>(std::countr_zero(rest));
    const std::vector<int> ranks = teams->members(id);
    if (ranks.empty()) continue;
    Context own = contexts->make(id, ranks, true);
    own.kernel = kernel;
    const Awaited awaited{Operation::stream_synchronize, own.rank, 0, 1};
    static_cast<void>(detail::give_up(own, awaited, 0, waited_ns, Status::deadline));
  }
}

void World::Implementation::check_gpu() const {
  const Device& device = membership->device();
  const std::string fault = device.is_gpu() ? detail::gpu_fault(device.index) : "";
  if (fault.empty()) return;
  std::vector<int> together, beyond;  // ranks of this process; ranks whose memory faults if a kernel accesses it
  for (const int other : membership->everyone()) {
    if (membership->shares_process(other)) together.push_back(other);
    if (membership->of(other).device.is_gpu() && !routes->to_gpu_of(other).is_direct()) beyond.push_back(other);
  }
  std::string message = fmt::format("a fault of GPU {} ({}) ends every rank of its process: {}", device.index, fault,
                                    fmt::join(together, ", "));
  if (!beyond.empty())
    message += fmt::format(
        "; kernels of rank {} do not reach the memory of {} (no peer access between the GPUs): use "
        "copies, signals of streams, or StagedChannel",
        rank(), detail::rank_list(beyond));
  for (const WaitRecord& record : failures->waits())  // the record of a stopped kernel gives the reason
    if (detail::is_refusal(record)) message += "\n  " + failures->describe(record);
  throw Error(Status::internal, message, rank());
}

Status World::Implementation::await(const char* what, std::int64_t deadline_ns, const std::function<bool()>& over,
                                    TeamSet watched, Stream* awaited, Timeout timeout) {
  process.require();
  try {
    return poll_until_over(what, deadline_ns, over, watched, awaited, timeout);
  } catch (const Error& error) {
    if (error.code() == Status::internal) check_gpu();
    throw;
  }
}

Status World::Implementation::poll_until_over(const char* what, std::int64_t deadline_ns,
                                              const std::function<bool()>& over, TeamSet watched, Stream* awaited,
                                              Timeout timeout) {
  const std::uint64_t start = machine::clock_ns();
  const auto nap = static_cast<std::int64_t>(std::min<std::uint64_t>(nap_ns, timeout.ns));
  const Polling polling = contexts->host().polling;
  // A host rank's stream signals its end in any case; a GPU's only on request.
  const bool by_condition =
      awaited != nullptr && (polling.policy() == WaitPolicy::event ||
                             (polling.policy() == WaitPolicy::automatic && !awaited->device().is_gpu()));
  // Sleeping and waking takes longer than a few yields.
  const std::uint32_t sleeps_from = polling.policy() == WaitPolicy::automatic ? 16 * polling.number() : 0;
  bool released = false;
  // Such a call does not end the world, also if this process was stopped until after the deadline.
  const bool times_out = timeout.ns < static_cast<std::uint64_t>(deadline_ns);
  // The thread of a host rank's stream may need this core, and polling without a yield would delay it.
  const bool yields_at_once =
      awaited != nullptr && polling.policy() == WaitPolicy::automatic && !awaited->device().is_gpu();
  for (std::uint32_t poll = yields_at_once ? polling.number() : 0; !over(); ++poll) {
    const bool gives_core_away = machine::backs_off(poll, polling);
    const bool slept = by_condition && poll >= sleeps_from && awaited->sleep_until_drained(nap);
    if (!slept) machine::back_off(poll, polling);
    if (!slept && awaited != nullptr && awaited->device().is_gpu()) let_others_call_driver(start);
    if (poll % detail::polls_per_look != 0 && !gives_core_away) continue;
    const std::uint64_t now = machine::clock_ns(), waited = now - start;
    const bool interrupted = !released && machine::is_interrupted(now, waited);
    const bool aborted = failures->failed_team(watched) >= 0;
    const bool is_late = waited >= static_cast<std::uint64_t>(deadline_ns) && (!times_out || released);
    if (!is_late && (!aborted || released)) {
      if ((waited >= timeout.ns && !released) || interrupted) return Status::timeout;
      continue;
    }
    if (over()) break;  // completion before the end counts, also while this process was stopped
    if (released)
      throw Error(Status::deadline, fmt::format("{} did not end, not even after it was aborted", what), rank());
    if (!aborted) give_up_streams(watched, waited, awaited == nullptr ? 0 : awaited->launched_teams().last_kernel());
    released = true;  // kernels are notified; they get time to end
    failures->notify_kernels();
    if (failures->failed()) streams->main().release_waits();
    if (awaited != nullptr) awaited->release_waits();
    deadline_ns = static_cast<std::int64_t>(waited) + 5'000'000'000;
  }
  return Status::ok;
}

}  // namespace beeline
