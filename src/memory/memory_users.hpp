// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps mapped memory in its place while threads use it by plain loads and stores, and while a network writes to it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace beeline {

class MemoryUser;

/// Told when memory is unmapped, by any thread of the process.
class UnmapWatcher {
 public:
  /// The piece that begins at `start` is about to be unmapped. Waits until it is unused; throws deadline.
  virtual void before_unmap(const std::byte* start, std::int64_t deadline_ns) = 0;
  /// The piece was unmapped, or the unmapping was given up.
  virtual void after_unmap(const std::byte* start) noexcept = 0;

 protected:
  ~UnmapWatcher() = default;
};

/// The users of one address range. A thread that unmaps holds the lock: it waits for the active users, and all others
/// wait for it, also users that return at once.
class MemoryUsers {
 public:
  /// Begins a use that outlasts a call: nothing is unmapped until `release`, which any thread may call. Returns false
  /// if a thread is about to unmap.
  [[nodiscard]] bool try_hold();
  void release() { --held_; }
  /// While it lives, nothing is held.
  class NoHolds {
   public:
    /// Waits until all that is held is released; does the network's work meanwhile. Throws deadline.
    NoHolds(MemoryUsers& users, std::int64_t deadline_ns);
    ~NoHolds() { --users_.ending_; }
    NoHolds(const NoHolds&) = delete;
    NoHolds& operator=(const NoHolds&) = delete;

   private:
    MemoryUsers& users_;
  };
  /// While it lives, all watchers know that a piece is being unmapped.
  class Unmapping {
   public:
    /// Throws what `before_unmap` throws.
    Unmapping(MemoryUsers& users, const std::byte* start, std::int64_t deadline_ns);
    ~Unmapping() { end(users_.watchers_.size()); }

   private:
    void end(std::size_t told) noexcept;
    MemoryUsers& users_;
    const std::byte* start_;
    std::unique_lock<std::mutex> lock_;
  };
  void watch(UnmapWatcher& watcher);
  /// From here on the watcher is not called.
  void unwatch(UnmapWatcher& watcher);
  void lock();
  void unlock();

 private:
  friend class MemoryUser;
  std::mutex watchers_mutex_;  ///< while they are told, too; taken before anything else
  std::vector<UnmapWatcher*> watchers_;
  std::mutex mutex_;  ///< of the list
  std::vector<MemoryUser*> users_;
  std::atomic<int> unmapping_{0};  ///< threads that unmap, or are about to
  std::atomic<int> held_{0}, ending_{0};
};

/// One thread's use of memory, between `lock` and `unlock`: nothing is unmapped meanwhile. Taken before anything else
/// of the range. It has its own lock and cache line, so that threads that use memory millions of times a second do not
/// contend for one word.
class alignas(64) MemoryUser {
 public:
  explicit MemoryUser(MemoryUsers& users);
  ~MemoryUser();
  void lock();
  void unlock() { mutex_.unlock(); }

 private:
  friend class MemoryUsers;
  MemoryUsers& users_;
  std::mutex mutex_;
};

}  // namespace beeline
