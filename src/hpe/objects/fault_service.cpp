// SPDX-License-Identifier: Apache-2.0
#include "hpe/objects/fault_service.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/runtime/device.hpp"
#include "core/thread.hpp"
#include "hpe/objects/block_object_held.hpp"
#include "hpe/objects/userfaults.hpp"

namespace beeline::hpe::detail {

namespace {

Userfaults* available_userfaults() {
  std::string why_not;
  return Userfaults::of_process(why_not);
}

/// Calls for a GPU take microseconds less if it is the thread's current one, and the object's GPU has a context.
void use_home_of(const BlockObject& object) noexcept {
  try {
    if (object.home().is_gpu()) use_gpu(object.home().index());
  } catch (const Error&) {
    // The GPU has a fault, which `resolve` finds, too.
  }
}

FaultResult resolve_here(BlockObject& object, const HostFault& fault) noexcept {
  use_home_of(object);
  return object.resolve(fault);
}

}  // namespace

FaultService& FaultService::get() {
  static FaultService& service = *new FaultService;  // threads may use objects until the process ends
  return service;
}

FaultService::FaultService() : wakeups_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), faults_(available_userfaults()) {
  require(static_cast<bool>(wakeups_), Status::no_resource, fmt::format("eventfd: {}", std::strerror(errno)));
  const beeline::detail::AllSignalsBlocked blocked;
  thread_ = beeline::detail::start_thread_for("objects' faults", [this] { serve(); });
  thread_.detach();
}

FaultService::Request* FaultService::take() noexcept {
  for (Request& request : requests_) {
    std::uint32_t expected = is_free;
    if (request.state.compare_exchange_strong(expected, is_taken, std::memory_order_acquire)) return &request;
  }
  return nullptr;
}

FaultResult FaultService::resolve(BlockObject& object, const HostFault& fault) noexcept {
  Request* const request = take();
  if (request == nullptr) return FaultResult::waiting;
  request->object = &object;
  request->fault = fault;
  request->state.store(is_posted, std::memory_order_release);
  // Either this thread sees that the service sleeps, or the service sees the number before it sleeps.
  posted_.fetch_add(1, std::memory_order_seq_cst);
  const std::uint64_t one = 1;
  if (is_asleep_.load(std::memory_order_seq_cst)) static_cast<void>(!::write(wakeups_.get(), &one, sizeof one));
  // The service answers: each of its waits has a deadline.
  for (int poll = 0; poll < 2000 && request->state.load(std::memory_order_acquire) != is_done; ++poll) ::sched_yield();
  std::uint32_t posted = is_posted;
  request->state.compare_exchange_strong(posted, is_awaited, std::memory_order_acquire);
  while (request->state.load(std::memory_order_acquire) != is_done)
    static_cast<void>(futex_wait(request->state, is_awaited, now_ns() + object.deadline_ns()));
  const FaultResult result = request->result;
  request->state.store(is_free, std::memory_order_release);
  return result;
}

void FaultService::serve() {
  ::prctl(PR_SET_TIMERSLACK, 1);  // otherwise a sleep of 20 us lasts three times as long
  for (bool is_polling = false;;) {
    if (!is_asked_soon()) await(is_polling);
    serve_requests();
    take_events();
    is_polling = serve_events();
  }
}

/// A program that reads some blocks faults again within microseconds, and waking a thread takes tens of microseconds.
bool FaultService::is_asked_soon() {
  constexpr std::int64_t awake_ns = 50'000;
  for (;;) {
    if (posted_.load(std::memory_order_acquire) != seen_) return true;
    if (!waiting_.empty()) return false;
    const std::int64_t now = now_ns();
    const bool awaits_events = now - latest_event_ns_ < awake_ns;
    if (!awaits_events && now - latest_request_ns_ >= awake_ns) return false;
    if (awaits_events) take_events();
    if (!waiting_.empty()) return true;
    ::sched_yield();
  }
}

/// Sleeps until there is something to do, or briefly if threads wait for kernels.
void FaultService::await(bool is_polling) {
  std::array<pollfd, 2> sources{
      {{wakeups_.get(), POLLIN, 0}, {faults_ != nullptr ? faults_->descriptor() : -1, POLLIN, 0}}};
  const timespec period{0, poll_period_ns};
  is_asleep_.store(true, std::memory_order_seq_cst);
  if (posted_.load(std::memory_order_seq_cst) == seen_)
    ::ppoll(sources.data(), sources.size(), is_polling ? &period : nullptr, nullptr);
  is_asleep_.store(false, std::memory_order_relaxed);
  std::uint64_t count = 0;
  static_cast<void>(!::read(wakeups_.get(), &count, sizeof count));
}

void FaultService::serve_requests() {
  const std::uint32_t posted = posted_.load(std::memory_order_acquire);
  if (posted == std::exchange(seen_, posted)) return;
  for (Request& request : requests_) {
    const std::uint32_t state = request.state.load(std::memory_order_acquire);
    if (state != is_posted && state != is_awaited) continue;
    request.result = resolve_here(*request.object, request.fault);
    if (request.state.exchange(is_done, std::memory_order_acq_rel) == is_awaited) futex_wake(request.state);
  }
  latest_request_ns_ = now_ns();
}

void FaultService::take_events() {
  if (faults_ == nullptr) return;
  for (;;) {
    const std::int64_t seen_ns = now_ns();  // before: the thread still waits when its event is read
    const auto event = faults_->next();
    if (!event) return;
    PinnedObject object = pinned_object_at(event->address);
    if (object == nullptr) {  // beyond an object's end, in its last block; or in one that was released meanwhile
      static_cast<void>(faults_->poison(event->address));
      continue;
    }
    const auto offset = static_cast<std::size_t>(event->address - object->data());
    const std::int64_t until_ns = seen_ns + object->deadline_ns();
    waiting_.push_back({std::move(object), {offset, event->is_write, event->thread, seen_ns}, until_ns});
  }
}

bool FaultService::serve_events() {
  std::erase_if(waiting_, [this](Waiting& thread) {
    const FaultResult result = resolve_here(*thread.object, thread.fault);
    if (result == FaultResult::waiting && now_ns() < thread.until_ns) return false;
    if (result == FaultResult::waiting)
      thread.object->refuse(thread.fault.offset, "kernels that use the object have not ended within its deadline");
    if (result == FaultResult::foreign) thread.object->refuse(thread.fault.offset, "the program may not access it");
    latest_event_ns_ = now_ns();
    return true;
  });
  return !waiting_.empty();
}

}  // namespace beeline::hpe::detail
