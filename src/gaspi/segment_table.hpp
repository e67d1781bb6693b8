// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The segments of all ranks as this process reaches them. The service thread writes the table; every call that names
/// a segment reads it, without a lock.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "beeline/c/base.h"
#include "gaspi/segment_readers.hpp"

namespace beeline::gaspi {

/// Notifications of a rank's segment; each has a signal of 8 bytes, a *flag*.
inline constexpr std::uint32_t segment_notifications = 65536;

/// The kind of a part's memory.
enum class Memory : std::uint32_t {
  none,   ///< the rank has no segment of this id
  host,   ///< host memory
  device  ///< memory of the rank's GPU
};

/// One rank's part of a segment, as this process reaches it.
struct Part {
  std::byte* data = nullptr;       ///< symmetric address of the first byte, which puts and gets take together with the
                                   ///< owner's rank; nullptr: only copies to and from `registered` reach the part
  std::byte* address = nullptr;    ///< address of the first byte for `beeline_copy` and copies on streams; nullptr:
                                   ///< they do not reach it. Of this rank's own part never nullptr
  std::uint64_t* flags = nullptr;  ///< symmetric address of flag 0 of `segment_notifications`
  beeline_registered* registered = nullptr;  ///< of memory that its owner had before: the registration, else nullptr
  std::uint64_t registered_offset = 0;       ///< bytes from the start of the registration to the part's first byte
  std::uint64_t bytes = 0;
  Memory kind = Memory::none;
  bool is_for_me = false;            ///< the owner has registered the segment for this rank; true for the own part
  bool has_flags_on_device = false;  ///< the flags are in memory of the owner's GPU
  bool is_direct = false;            ///< loads and stores reach `address`, too, as far as its kind of memory allows
};

/// A part as words, for threads that read it while another thread writes it.
using PartWords = std::array<std::uint64_t, 7>;
[[nodiscard]] PartWords words_of(const Part& part);
/// Sets each member by itself, and makes no copy of a part: a copy stores words and then loads two at once, for which a
/// CPU waits until the stores are in its cache.
[[nodiscard]] inline Part part_of(const PartWords& words) {
  const auto bit = [last = words[6]](unsigned which) { return (last >> which & 1) != 0; };
  return {.data = reinterpret_cast<std::byte*>(words[0]),
          .address = reinterpret_cast<std::byte*>(words[1]),
          .flags = reinterpret_cast<std::uint64_t*>(words[2]),
          .registered = reinterpret_cast<beeline_registered*>(words[3]),
          .registered_offset = words[4],
          .bytes = words[5],
          .kind = static_cast<Memory>(words[6] & 0xff),
          .is_for_me = bit(8),
          .has_flags_on_device = bit(9),
          .is_direct = bit(10)};
}

/// Thread-safe: one thread writes, all read. A reader holds a `Use` (or `SharedUse`) from the reading of a part until
/// it no longer touches the part's memory, since the deletion of a segment waits for the readers and then unmaps the
/// memory.
class SegmentTable {
 public:
  explicit SegmentTable(int ranks) : ranks_(static_cast<std::size_t>(ranks)) { SegmentReaders::prepare(); }
  SegmentTable(const SegmentTable&) = delete;
  SegmentTable& operator=(const SegmentTable&) = delete;

  /// Keeps the memory of a segment mapped, in one thread. Hold it for the time of one transfer, or of one slice of a
  /// wait (`Waiting`), never longer: deleting the segment waits for it.
  class Use {
   public:
    explicit Use(std::uint32_t id) : count_(id < segment_ids ? SegmentReaders::enter(id) : nullptr) {}
    ~Use() {
      if (count_ != nullptr) SegmentReaders::leave(count_);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    std::atomic<std::uint32_t>* const count_;
  };
  /// The same, where another thread may end it. Costs two atomic additions.
  class SharedUse {
   public:
    SharedUse(const SegmentTable& table, std::uint32_t id)
        : count_(id < segment_ids ? &table.shared_uses_[id] : nullptr) {
      // Either this thread sees afterwards that the part has ended, or the thread that ends it sees this use.
      if (count_ != nullptr) count_->fetch_add(1, std::memory_order_seq_cst);
    }
    ~SharedUse() {
      if (count_ != nullptr) count_->fetch_sub(1, std::memory_order_release);
    }
    SharedUse(const SharedUse&) = delete;
    SharedUse& operator=(const SharedUse&) = delete;

   private:
    std::atomic<std::uint32_t>* const count_;
  };

  /// The part of `rank`; kind `none` if there is none, also for numbers out of range. Does not block.
  [[nodiscard]] Part part(std::uint32_t id, int rank) const {
    if (id >= segment_ids || rank < 0 || static_cast<std::size_t>(rank) >= ranks_) return {};
    const Entry* const row = rows_[id].load(std::memory_order_seq_cst);
    if (row == nullptr) return {};
    return part_of(row[rank].read());
  }
  /// Number of changes of the table, for copies of it such as those that kernels read.
  [[nodiscard]] std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  [[nodiscard]] int ranks() const { return static_cast<int>(ranks_); }

  /// Waits while the service thread waits for the segment's readers; call it between two uses of a thread that reads
  /// all the time. Returns whether that ended within `limit_ns`.
  [[nodiscard]] bool await_removal(std::uint32_t id, std::uint64_t limit_ns) const {
    return id >= segment_ids || !is_removed_from_[id].load(std::memory_order_relaxed) || await_end(id, limit_ns);
  }

  // --- For the service thread -----------------------------------------------------------------------------------

  void set(std::uint32_t id, int rank, const Part& part);
  /// The readers that may still touch memory of a segment's parts that were removed before this object was made. While
  /// it exists, threads that wait for notifications of the segment let it pass (`await_removal`).
  class EarlierReaders {
   public:
    EarlierReaders(const SegmentTable& table, std::uint32_t id) : table_(table), id_(id), uses_(id) {
      table_.is_removed_from_[id_].store(true, std::memory_order_relaxed);
    }
    ~EarlierReaders() { table_.is_removed_from_[id_].store(false, std::memory_order_relaxed); }
    EarlierReaders(const EarlierReaders&) = delete;
    EarlierReaders& operator=(const EarlierReaders&) = delete;
    [[nodiscard]] bool have_ended();

   private:
    const SegmentTable& table_;
    const std::uint32_t id_;
    SegmentReaders::Earlier uses_;
    bool have_shared_ended_ = false;
  };

 private:
  /// A part behind a sequence number, which is odd while the words change.
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> sequence{0};
    std::array<std::atomic<std::uint64_t>, std::tuple_size_v<PartWords>> values{};

    [[nodiscard]] PartWords read() const {
      for (;;) {
        const std::uint64_t before = sequence.load(std::memory_order_seq_cst);
        const auto word = [this](std::size_t i) { return values[i].load(std::memory_order_acquire); };
        const PartWords words{word(0), word(1), word(2), word(3), word(4), word(5), word(6)};
        if (before % 2 == 0 && sequence.load(std::memory_order_relaxed) == before) [[likely]]
          return words;
      }
    }
  };

  [[nodiscard]] bool await_end(std::uint32_t id, std::uint64_t limit_ns) const;

  const std::size_t ranks_;
  std::array<std::atomic<Entry*>, segment_ids> rows_{};  ///< [ranks_] each; nullptr: never used
  std::vector<std::unique_ptr<Entry[]>> owned_;          ///< the rows; changed by the service thread alone
  mutable std::array<std::atomic<std::uint32_t>, segment_ids> shared_uses_{};
  /// Whether an `EarlierReaders` of the segment exists.
  mutable std::array<std::atomic<bool>, segment_ids> is_removed_from_{};
  std::atomic<std::uint64_t> changes_{0};
};

}  // namespace beeline::gaspi
