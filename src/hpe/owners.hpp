// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The ranges of addresses that this layer has allocated, and their owners.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "beeline/hpe/memory.hpp"
#include "core/fork.hpp"

namespace beeline::hpe {

namespace detail {

class StreamState;

/// Memory whose current bytes may be elsewhere than at its address. `hpe::copy` leaves copies of it to its owner.
/// Both functions are asynchronous, in the order of `stream`; the range lies within the owner's. The other address may
/// be in memory of another such owner: an owner that calls `detail::copy` for its parts reaches that one, too.
class CopyingOwner {
 public:
  virtual ~CopyingOwner() = default;
  virtual void copy_out(void* to, const std::byte* from, std::size_t bytes, StreamState& stream) = 0;
  virtual void copy_in(std::byte* to, const void* from, std::size_t bytes, StreamState& stream) = 0;

  /// The address of a byte in the copy of the stream's device.
  [[nodiscard]] virtual std::byte* address_for(const std::byte* byte, const StreamState& stream) = 0;
  /// Runs `put`, which puts work on `stream` that reads the range in that copy, or writes it.
  virtual void put_work(const std::byte* start, std::size_t bytes, bool writes, StreamState& stream,
                        const std::function<void()>& put) = 0;
};

/// A range and its owner.
struct OwnedRange {
  Owner owner;                      ///< `start` and `bytes` are known
  CopyingOwner* copying = nullptr;  ///< of an object; outlives the range's entry
};

/// The table of ranges, by address. Readers take no lock: they repeat a read during which the table has changed.
class OwnerTable {
 public:
  [[nodiscard]] static OwnerTable& of_process();

  /// Throws no_resource if the table is full.
  void add(const OwnedRange& range);
  /// Removes the range that begins at `start`, if there is one.
  void remove(const std::byte* start);
  [[nodiscard]] std::optional<OwnedRange> find(const void* pointer) const;

  static constexpr std::size_t capacity = 65536;

 private:
  /// `OwnedRange` in words that readers may load while they change.
  struct Entry {
    std::atomic<std::uintptr_t> start{0}, end{0};
    std::atomic<std::uint64_t> kind{0};  ///< Memory, kind of device, index of device
    std::atomic<CopyingOwner*> copying{nullptr};
    void assign(const Entry& other);
  };
  [[nodiscard]] std::size_t first_beyond(std::uintptr_t address, std::size_t count) const;
  [[nodiscard]] OwnedRange read(std::size_t index) const;

  std::mutex mutex_;  ///< held by writers, and during a fork: a child finds the table whole
  beeline::detail::ForkHandler fork_handler_{[] {}, &mutex_};
  std::atomic<std::uint64_t> version_{0};  ///< odd while a writer changes the table
  std::atomic<std::size_t> count_{0};
  Entry entries_[capacity];  ///< [count_] in the order of addresses
};

/// As `owner_of`, with the object's own copies.
[[nodiscard]] OwnedRange range_of(const void* pointer);
/// As `range_of`, for `bytes` bytes, at least one. Also throws invalid_argument if they are known to lie beyond the
/// allocation, or a page is not mapped.
///   what  the range in errors
[[nodiscard]] OwnedRange checked_range(const void* pointer, std::size_t bytes, const char* what);

}  // namespace detail
}  // namespace beeline::hpe
