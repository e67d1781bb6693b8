// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps mapped memory in its place while threads use it by plain loads and stores.

#include <atomic>
#include <mutex>
#include <vector>

namespace beeline {

class MemoryUser;

/// Those of one address range. Who unmaps holds its lock: it waits for the users that work, and the others wait for it,
/// also those that come back at once.
class MemoryUsers {
 public:
  void lock();
  void unlock();

 private:
  friend class MemoryUser;
  std::mutex mutex_;  ///< of the list
  std::vector<MemoryUser*> users_;
  std::atomic<int> unmapping_{0};  ///< threads that unmap, or are about to
};

/// One thread's use of memory, between `lock` and `unlock`: nothing is unmapped meanwhile. Taken before anything else
/// of the range. It has a lock and a cache line of its own, so that threads which use memory millions of times a second
/// do not meet in one word.
class alignas(64) MemoryUser {
 public:
  explicit MemoryUser(MemoryUsers& users);
  ~MemoryUser();
  MemoryUser(const MemoryUser&) = delete;
  MemoryUser& operator=(const MemoryUser&) = delete;
  void lock();
  void unlock() { mutex_.unlock(); }

 private:
  friend class MemoryUsers;
  MemoryUsers& users_;
  std::mutex mutex_;
};

}  // namespace beeline
