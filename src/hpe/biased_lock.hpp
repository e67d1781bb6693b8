// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A lock that mostly one thread takes.

#include <atomic>

namespace beeline::hpe::detail {

/// A lock without waits. The first thread that takes it, its owner, takes it without an atomic exchange from then on.
/// Such an exchange waits until the thread's earlier stores have left the processor, and the doorbell of a GPU, which
/// the thread's call before has stored to, takes as long as the rest of a call. The first other thread that asks for
/// the lock makes it an ordinary one: it makes all threads pass a memory barrier (membarrier(2)), behind which the
/// owner sees that it is no owner any more, or the other thread that the owner holds the lock.
class BiasedLock {
 public:
  BiasedLock() noexcept : is_shared_(!has_barrier()), owner_(is_shared_ ? nobody() : nullptr) {}
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  [[nodiscard]] bool try_lock() noexcept {
    const void* const self = this_thread();
    if (owner_.load(std::memory_order_relaxed) == self && enter_as_owner(self)) return true;
    if (is_taken_.load(std::memory_order_relaxed) || is_taken_.exchange(true, std::memory_order_acquire)) return false;
    if (is_free_of_owner(self)) return true;
    is_taken_.store(false, std::memory_order_release);
    return false;
  }
  void unlock() noexcept {
    if (is_held_by_owner_)
      is_owner_inside_.store(false, std::memory_order_release);
    else
      is_taken_.store(false, std::memory_order_release);
  }

 private:
  /// An address that no other thread has.
  [[nodiscard]] static const void* this_thread() noexcept {
    static thread_local char here;
    return &here;
  }
  [[nodiscard]] static const void* nobody() noexcept {
    static const char no_thread = 0;
    return &no_thread;
  }
  /// Whether the system offers the barrier.
  [[nodiscard]] static bool has_barrier() noexcept;
  /// Makes all threads of the process pass a memory barrier. Returns false if the system lacks memory for it.
  [[nodiscard]] static bool pass_barrier() noexcept;

  [[nodiscard]] bool enter_as_owner(const void* self) noexcept {
    // A thread that has ended may have had the same address: what it did under the lock has happened before.
    static_cast<void>(is_owner_inside_.load(std::memory_order_acquire));
    is_owner_inside_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the processor's order is the matter of `pass_barrier`
    if (owner_.load(std::memory_order_relaxed) != self) {
      is_owner_inside_.store(false, std::memory_order_release);
      return false;
    }
    is_held_by_owner_ = true;
    return true;
  }
  /// The calling thread has set `is_taken_`. Returns whether it holds the lock now.
  [[nodiscard]] bool is_free_of_owner(const void* self) noexcept {
    if (owner_.load(std::memory_order_relaxed) == nullptr) {
      owner_.store(self, std::memory_order_relaxed);
      return true;
    }
    if (!is_shared_) {
      owner_.store(nobody(), std::memory_order_relaxed);
      if (!pass_barrier()) return false;
      is_shared_ = true;
    }
    if (is_owner_inside_.load(std::memory_order_acquire)) return false;
    is_held_by_owner_ = false;
    return true;
  }

  std::atomic<bool> is_taken_{false};         ///< by a thread that is not the owner, or has just become it
  std::atomic<bool> is_owner_inside_{false};  ///< the owner holds the lock, or looks whether it is still the owner
  bool is_shared_;                            ///< there is no owner any more; guarded by `is_taken_`
  bool is_held_by_owner_ = false;             ///< guarded by the lock
  std::atomic<const void*> owner_;            ///< nullptr: no thread has taken the lock
};

}  // namespace beeline::hpe::detail
