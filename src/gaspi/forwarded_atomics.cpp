// SPDX-License-Identifier: Apache-2.0
#include "gaspi/forwarded_atomics.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "gaspi/remote_words.hpp"
#include "gaspi/service.hpp"

namespace beeline::gaspi {

namespace {

template <class Type>
Type* allocate(const Process& process, std::size_t count) {
  void* memory = nullptr;
  require_ok(beeline_allocate(process.world_team(), count * sizeof(Type), BEELINE_HEAP_PINNED, &memory));
  return static_cast<Type*>(memory);
}

}  // namespace

std::uint64_t AtomicChange::apply(std::uint64_t& word) const {
  const std::atomic_ref<std::uint64_t> atomic(word);
  if (swaps == 0) return atomic.fetch_add(operand);
  std::uint64_t before = comparator;
  atomic.compare_exchange_strong(before, operand);
  return before;
}

void ForwardedAtomics::open(Process& process) {
  const auto ranks = static_cast<std::size_t>(process.size());
  requests_ = allocate<Request>(process, ranks);
  answers_ = allocate<Answer>(process, ranks);
  require_ok(beeline_allocate_signals(process.world_team(), 1, BEELINE_HEAP_PINNED, &asked_));
  served_.resize(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) outgoing_.push_back(std::make_unique<Outgoing>());
}

// --- The caller ---------------------------------------------------------------------------------------------------

beeline_status ForwardedAtomics::post(const Process& process, int owner, const Outgoing& to) const {
  Request& there = requests_[process.rank()];
  const beeline_status sent =
      beeline_put_signal(process.world_team(), &there.change, &to.request.change, sizeof to.request.change,
                         &there.number, to.request.number, owner, service_queue);
  return sent != BEELINE_OK ? sent : beeline_signal_add(process.world_team(), asked_, 1, owner, service_queue);
}

Result ForwardedAtomics::change(const Process& process, int owner, const AtomicChange& wanted, std::uint64_t timeout_ms,
                                std::uint64_t& before) {
  Outgoing& to = *outgoing_[static_cast<std::size_t>(owner)];
  const Answer& answer = answers_[owner];
  const Awaited awaited{
      .what = "an atomic operation by rank", .number = static_cast<std::uint64_t>(owner), .needed = {&owner, 1}};
  std::unique_lock lock(to.calls, std::defer_lock);
  return wait_for(process, awaited, timeout_ms, [&](std::uint64_t slice_ns) -> beeline_status {
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(slice_ns);
    do {
      if (!lock.owns_lock() && !lock.try_lock()) continue;
      if (to.is_in_flight && load_acquired(answer.number) == to.request.number) {
        to.is_in_flight = false;
        if (to.request.change == wanted) {
          if (answer.is_refused != 0)
            throw Failure(GASPI_ERR_INV_SEG, fmt::format("rank {} has deleted segment {}", owner, wanted.segment));
          before = answer.before;
          return BEELINE_OK;
        }
      }
      if (to.is_in_flight) continue;  // another call's, which was not repeated after its time-out
      const bool is_posted_again = to.is_unsure && to.request.change == wanted;
      if (!is_posted_again) to.request.change = wanted, ++to.request.number;
      to.is_unsure = true;
      if (const beeline_status status = post(process, owner, to); status != BEELINE_OK) return status;
      to.is_unsure = false, to.is_in_flight = true;
    } while (std::this_thread::sleep_for(std::chrono::microseconds(20)), std::chrono::steady_clock::now() < end);
    return BEELINE_TIMEOUT;
  });
}

// --- The owner ----------------------------------------------------------------------------------------------------

bool ForwardedAtomics::serve(Process& process) {
  const std::uint64_t asked = load_acquired(*asked_);
  if (asked == seen_ && !has_unsent_) return false;
  seen_ = asked, has_unsent_ = false;
  for (int caller = 0; caller < process.size(); ++caller) serve_one(process, caller);
  return true;
}

void ForwardedAtomics::serve_one(const Process& process, int caller) {
  Served& served = served_[static_cast<std::size_t>(caller)];
  const std::uint64_t number = load_acquired(requests_[caller].number);
  if (!process.health().is_healthy(caller)) return;
  if (number != served.answer.number) {
    served.answer = carry_out(process, requests_[caller]);
    served.answer.number = number;
    served.is_sent = false;
  }
  if (served.is_sent) return;
  Answer& there = answers_[process.rank()];
  served.is_sent = beeline_put_signal(process.world_team(), &there.before, &served.answer, 2 * sizeof(std::uint64_t),
                                      &there.number, number, caller, service_queue) == BEELINE_OK;
  has_unsent_ = has_unsent_ || !served.is_sent;  // ranks were lost: once the world goes on
}

ForwardedAtomics::Answer ForwardedAtomics::carry_out(const Process& process, const Request& request) {
  const AtomicChange& change = request.change;
  const Part part = process.segments().part(static_cast<std::uint32_t>(change.segment), process.rank());
  const bool is_there = part.kind == Memory::host && is_within(change.offset, sizeof(std::uint64_t), part.bytes);
  if (!is_there) return {0, 1, 0};
  auto* const word = reinterpret_cast<std::uint64_t*>(part.address + change.offset);
  return {change.apply(*word), 0, 0};
}

}  // namespace beeline::gaspi
