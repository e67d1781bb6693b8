// SPDX-License-Identifier: Apache-2.0
// Fences for ThreadSanitizer, which knows the atomic operations but not std::atomic_thread_fence: programs that
// synchronize by relaxed accesses between fences would be reported. The linker puts these functions before the
// sanitizer's own (--wrap, cmake/BeelineTests.cmake).
//
// C++ [atomics.fences]: a release fence before a relaxed store synchronizes with an acquire fence behind a relaxed load
// that reads the stored value. A thread therefore has two more clocks. Each is the clock of a fiber, which is the
// sanitizer's name for a thread of execution that others switch to explicitly:
//
//   released  the thread's clock at its last fence: a relaxed store releases this clock, not the thread's own, so that
//             what the thread did between the fence and the store stays unordered
//   acquired  the clocks that its relaxed loads found: they become the thread's own at its next fence
//
// Every fence counts as both acquire and release. The order that sequentially consistent fences have among themselves
// is not modelled, nor are accesses of 16 bytes.
#include <sanitizer/tsan_interface.h>

#include <cstdint>
#include <utility>

namespace {

class FenceClocks {
 public:
  FenceClocks() = default;
  FenceClocks(const FenceClocks&) = delete;
  FenceClocks& operator=(const FenceClocks&) = delete;
  ~FenceClocks() {
    for (void** fiber : {&released_, &acquired_})
      if (void* const gone = std::exchange(*fiber, nullptr)) __tsan_destroy_fiber(gone);
  }

  void store(volatile void* word) {
    if (released_ == nullptr) return;  // no fence so far
    in_fiber(released_, [word] { __tsan_release(const_cast<void*>(word)); });
  }
  void load(const volatile void* word) {
    if (acquired_ == nullptr) acquired_ = __tsan_create_fiber(0);
    in_fiber(acquired_, [word] { __tsan_acquire(const_cast<void*>(word)); });
  }
  void fence() {
    void* const thread = __tsan_get_current_fiber();
    if (acquired_ != nullptr) {
      __tsan_switch_to_fiber(acquired_, __tsan_switch_to_fiber_no_sync);
      __tsan_switch_to_fiber(thread, synchronizes);
    }
    if (released_ == nullptr) released_ = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(released_, synchronizes);
    __tsan_switch_to_fiber(thread, __tsan_switch_to_fiber_no_sync);
  }

 private:
  static constexpr unsigned synchronizes = 0;

  template <class Call>
  static void in_fiber(void* fiber, Call call) {
    void* const thread = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync);
    call();
    __tsan_switch_to_fiber(thread, __tsan_switch_to_fiber_no_sync);
  }

  void* released_ = nullptr;
  void* acquired_ = nullptr;
};

thread_local FenceClocks clocks;

bool releases(int order) { return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST; }
bool acquires(int order) { return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE; }

}  // namespace

extern "C" {

void __real___tsan_atomic_thread_fence(int order);
void __wrap___tsan_atomic_thread_fence(int order) {
  clocks.fence();
  __real___tsan_atomic_thread_fence(order);
}

#define BEELINE_WRAP_UPDATE(Word, name)                                   \
  Word __real___tsan_##name(volatile Word*, Word, int);                   \
  Word __wrap___tsan_##name(volatile Word* word, Word value, int order) { \
    if (!releases(order)) clocks.store(word);                             \
    const Word old = __real___tsan_##name(word, value, order);            \
    if (!acquires(order)) clocks.load(word);                              \
    return old;                                                           \
  }

#define BEELINE_WRAP(Word, atomic)                                                  \
  Word __real___tsan_##atomic##_load(const volatile Word*, int);                    \
  Word __wrap___tsan_##atomic##_load(const volatile Word* word, int order) {        \
    const Word value = __real___tsan_##atomic##_load(word, order);                  \
    if (!acquires(order)) clocks.load(word);                                        \
    return value;                                                                   \
  }                                                                                 \
  void __real___tsan_##atomic##_store(volatile Word*, Word, int);                   \
  void __wrap___tsan_##atomic##_store(volatile Word* word, Word value, int order) { \
    if (!releases(order)) clocks.store(word);                                       \
    __real___tsan_##atomic##_store(word, value, order);                             \
  }                                                                                 \
  BEELINE_WRAP_UPDATE(Word, atomic##_exchange)                                      \
  BEELINE_WRAP_UPDATE(Word, atomic##_fetch_add)                                     \
  BEELINE_WRAP_UPDATE(Word, atomic##_fetch_and)                                     \
  BEELINE_WRAP_UPDATE(Word, atomic##_fetch_or)

BEELINE_WRAP(std::uint8_t, atomic8)
BEELINE_WRAP(std::uint16_t, atomic16)
BEELINE_WRAP(std::uint32_t, atomic32)
BEELINE_WRAP(std::uint64_t, atomic64)
}
