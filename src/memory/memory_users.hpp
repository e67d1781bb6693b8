// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps memory mapped while threads use it by plain loads and stores, and while a network reads it or writes to it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace beeline {

class MemoryUser;

/// Notified of each unmapping, by any thread of the process.
class UnmapWatcher {
 public:
  /// The piece that begins at `start` is about to be unmapped. Waits until it is unused; throws deadline.
  virtual void before_unmap(const std::byte* start, std::int64_t deadline_ns) = 0;
  /// The piece was unmapped, or the unmapping was given up.
  virtual void after_unmap(const std::byte* start) noexcept = 0;

 protected:
  ~UnmapWatcher() = default;
};

/// The users of one address range. A thread that unmaps holds the lock: it waits for active users, and new users wait
/// for it, even if they would need the memory only briefly.
class MemoryUsers {
 public:
  /// Begins a use that outlasts a call: nothing is unmapped until `release`, which any thread may call. Returns false
  /// if a thread is about to unmap.
  [[nodiscard]] bool try_hold();
  void release() { --held_; }
  /// While an object of this class exists, `try_hold` fails and nothing is held.
  class NoHolds {
   public:
    /// Waits until all holds are released; does the network's work meanwhile. Throws deadline.
    NoHolds(MemoryUsers& users, std::int64_t deadline_ns);
    ~NoHolds() { --users_.ending_; }
    NoHolds(const NoHolds&) = delete;
    NoHolds& operator=(const NoHolds&) = delete;

   private:
    MemoryUsers& users_;
  };
  /// While an object of this class exists, all watchers know that a piece is being unmapped.
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
  /// From now on the watcher is not called.
  void unwatch(UnmapWatcher& watcher);
  void lock();
  void unlock();

 private:
  friend class MemoryUser;
  std::mutex watchers_mutex_;  ///< held while watchers are notified, too; taken before all other locks
  std::vector<UnmapWatcher*> watchers_;
  std::mutex mutex_;  ///< guards the list of users
  std::vector<MemoryUser*> users_;
  std::atomic<int> unmapping_{0};  ///< threads that unmap, or are about to
  std::atomic<int> held_{0}, ending_{0};
};

/// One thread's use of memory: nothing is unmapped between `lock` and `unlock`. Locked before any other lock of the
/// range. Each user has its own lock and cache line, so that threads that use memory millions of times a second do not
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
