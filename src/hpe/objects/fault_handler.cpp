// SPDX-License-Identifier: Apache-2.0
#include "hpe/objects/fault_handler.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <utility>

#include "beeline/core/error.hpp"
#include "hpe/objects/block_object_held.hpp"
#include "hpe/objects/fault_service.hpp"

namespace beeline::hpe::detail {

namespace {

std::atomic<std::uint32_t> lookups{0};

/// A handler that was there before ours. Written under a mutex before our handler is installed, which reads it.
struct EarlierHandler {
  struct sigaction action {};
  std::atomic<bool> is_used_up{false};  ///< it is for one signal (SA_RESETHAND), and has had it

  void set(const struct sigaction& now) {
    action = now;
    is_used_up.store(false, std::memory_order_relaxed);
  }
  /// Whether the program has no handler, or none any more: the next signal has the default action.
  [[nodiscard]] bool is_default() const { return is(SIG_DFL) || is_used_up.load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_ignored() const { return is(SIG_IGN); }

 private:
  [[nodiscard]] bool is(void (*handler)(int)) const {
    return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == handler;
  }
};
/// At the first installation of ours, and at the latest.
struct Handlers {
  EarlierHandler first, latest;
  std::atomic<bool> are_there{false};
};
Handlers& handlers() {
  static Handlers& the_only = *new Handlers;
  return the_only;
}

/// A pointer of each thread, nullptr at first. Unlike a thread-local variable of a library that is opened at run time,
/// it needs no allocation inside a signal handler (glibc keeps a thread's first 32 keys in the thread itself).
template <class T>
class PointerOfThread {
 public:
  PointerOfThread() {
    require(::pthread_key_create(&key_, nullptr) == 0, Status::no_resource,
            "objects: the process has no thread key left");
  }
  [[nodiscard]] T* get() const noexcept { return static_cast<T*>(::pthread_getspecific(key_)); }
  void set(T* value) const noexcept { ::pthread_setspecific(key_, value); }
  /// Sets `value`, and returns the pointer before.
  T* exchange(T* value) const noexcept {
    T* const before = get();
    set(value);
    return before;
  }

 private:
  pthread_key_t key_{};
};

/// What a thread does inside the handler.
struct ThreadState {
  PointerOfThread<BlockObject> resolved_object;
  PointerOfThread<const void> passed_on;
  PointerOfThread<const void> passing_frame;  ///< of the call that passed it on
};
const ThreadState& thread_state() {
  static const ThreadState& the_only = *new ThreadState;
  return the_only;
}

enum class AccessKind { read, write, execution };

/// What the thread was about to do. On processors whose error code is not known here, each access counts as a write.
AccessKind kind_of([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  constexpr greg_t is_write = 2, is_execution = 16;
  const greg_t error = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
  if ((error & is_execution) != 0) return AccessKind::execution;
  if ((error & is_write) == 0) return AccessKind::read;
#endif
  return AccessKind::write;
}

FaultResult resolve_once(BlockObject& object, const HostFault& fault) {
  if (object.is_inherited()) return FaultResult::foreign;
  const bool is_left_to_service = !object.resolves_in_handlers();
  thread_state().resolved_object.set(&object);
  const FaultResult result = !is_left_to_service             ? object.resolve(fault)
                             : object.open_if_current(fault) ? FaultResult::resolved
                                                             : FaultResult::waiting;
  thread_state().resolved_object.set(nullptr);
  if (is_left_to_service && result == FaultResult::waiting) return FaultService::get().resolve(object, fault);
  return result;
}

/// Whether the access can be repeated.
bool resolve(const void* address, const void* context) {
  const PinnedObject object = pinned_object_at(address);
  if (object == nullptr) return false;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - object->data());
  const AccessKind kind = kind_of(context);
  if (kind == AccessKind::execution) return false;
  const HostFault fault{offset, kind == AccessKind::write, ::gettid()};
  const std::int64_t until_ns = now_ns() + object->deadline_ns();
  for (;;) {
    const FaultResult result = resolve_once(*object, fault);
    if (result != FaultResult::waiting) return result == FaultResult::resolved;
    if (now_ns() >= until_ns) {
      object->refuse(offset, "kernels that use the object have not ended within its deadline");
      return false;
    }
    nap(poll_period_ns);
  }
}

/// For the next fault, there is no handler.
void reset(int signal) {
  struct sigaction none {};
  none.sa_handler = SIG_DFL;
  ::sigaction(signal, &none, nullptr);
}

/// Calls the handler that a fault which is not ours belongs to. If there is none, the fault is repeated without a
/// handler, and ends the process as it would have without this library.
void pass_on(int signal, siginfo_t* info, void* context) {
  // The latest handler has called ours as its predecessor, inside our call. If it has left by a jump, a later fault may
  // have its information at the same address, but is passed on from the same depth of the stack.
  const void* const frame = __builtin_frame_address(0);
  const bool is_passed_back = thread_state().passed_on.get() == info && frame < thread_state().passing_frame.get();
  EarlierHandler& earlier = is_passed_back ? handlers().first : handlers().latest;
  const bool is_sent = info->si_code <= 0;  // by a call: it is not repeated, and may be ignored
  if (is_sent && earlier.is_ignored()) return;
  if (earlier.is_default() || earlier.is_ignored()) {
    reset(signal);
    if (is_sent) ::syscall(SYS_tgkill, ::getpid(), ::gettid(), signal);
    return;
  }
  const struct sigaction& next = earlier.action;
  if ((next.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) earlier.is_used_up.store(true, std::memory_order_relaxed);
  sigset_t blocked = next.sa_mask, before;
  if ((next.sa_flags & SA_NODEFER) == 0) ::sigaddset(&blocked, signal);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const void* const outer = thread_state().passed_on.exchange(info);
  const void* const outer_frame = thread_state().passing_frame.exchange(frame);
  if ((next.sa_flags & SA_SIGINFO) != 0)
    next.sa_sigaction(signal, info, context);
  else
    next.sa_handler(signal);
  thread_state().passed_on.set(outer);
  thread_state().passing_frame.set(outer_frame);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void handle(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  if (thread_state().resolved_object.get() !=
      nullptr) {  // inside this handler's own path, to which no handler can return
    thread_state().resolved_object.exchange(nullptr)->abandon();
    pass_on(signal, info, context);
    reset(signal);
  } else if (info->si_code != SEGV_ACCERR || !resolve(info->si_addr, context)) {
    pass_on(signal, info, context);
  }
  errno = error;
}

}  // namespace

PinnedObject pinned_object_at(const void* address) noexcept {
  lookups.fetch_add(1, std::memory_order_seq_cst);
  BlockObject* object = nullptr;
  if (const auto found = OwnerTable::of_process().find(address); found && found->copying != nullptr) {
    object = static_cast<BlockObject*>(found->copying);
    object->pin();
  }
  lookups.fetch_sub(1, std::memory_order_seq_cst);
  return PinnedObject(object);
}

void await_lookups() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (lookups.load(std::memory_order_seq_cst) > 0) ::sched_yield();
}

void forget_lookups() noexcept { lookups.store(0); }

void install_fault_handler() {
  struct sigaction now {};
  if (::sigaction(SIGSEGV, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &handle)
    return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static_cast<void>(thread_state());  // makes the keys, which the handler must not do
  Handlers& before = handlers();
  if (::sigaction(SIGSEGV, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &handle)
    return;
  before.latest.set(now);
  if (!before.are_there.exchange(true)) before.first.set(now);
  struct sigaction own {};
  own.sa_sigaction = &handle;
  own.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  if (::sigaction(SIGSEGV, &own, nullptr) != 0)
    throw Error(Status::internal, fmt::format("sigaction(SIGSEGV): {}", std::strerror(errno)));
}

}  // namespace beeline::hpe::detail
