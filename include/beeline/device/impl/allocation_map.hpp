// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which parts of a rank's heaps are allocated, for checks by CPU threads.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace beeline::detail {

/// The allocations of one rank, by offsets from the start of its slot. Heaps are added first; then one thread at a time
/// changes allocations, and any thread may call `holds`.
class AllocationMap {
 public:
  /// Allocations begin at multiples of `unit` from the start of a heap; their lengths are multiples of `unit`.
  static constexpr std::size_t unit = 256;

  void add_heap(std::uint64_t offset, std::size_t bytes) { heaps_.emplace_back(offset, bytes); }
  void allocate(std::uint64_t offset, std::size_t bytes) { change(offset, bytes, true); }
  void free(std::uint64_t offset, std::size_t bytes) { change(offset, bytes, false); }
  /// Whether a range that begins in a heap is in one allocation; true for a range that begins in no heap.
  [[nodiscard]] bool holds(std::uint64_t offset, std::size_t bytes) const {
    for (const HeapUnits& heap : heaps_)
      if (offset - heap.offset < heap.bytes) return heap.holds(offset - heap.offset, bytes);
    return true;
  }

 private:
  static constexpr std::size_t word_bits = 64;
  /// A bit for each unit. For large heaps the operating system allocates the pages of this table at their first use.
  class Bits {
   public:
    explicit Bits(std::size_t count)
        : words_(static_cast<std::uint64_t*>(std::calloc(count / word_bits + 1, sizeof(std::uint64_t)))) {
      if (words_ == nullptr) throw std::bad_alloc();
    }
    [[nodiscard]] std::uint64_t word(std::size_t index) const {
      return std::atomic_ref(words_.get()[index]).load(std::memory_order_relaxed);
    }
    [[nodiscard]] bool operator[](std::size_t bit) const {
      return (word(bit / word_bits) >> bit % word_bits & 1u) != 0;
    }
    void set(std::size_t index, std::uint64_t mask, bool value) {
      const std::uint64_t old = word(index);
      std::atomic_ref(words_.get()[index]).store(value ? old | mask : old & ~mask, std::memory_order_relaxed);
    }

   private:
    struct Free {
      void operator()(std::uint64_t* words) const { std::free(words); }
    };
    std::unique_ptr<std::uint64_t[], Free> words_;
  };
  struct HeapUnits {
    HeapUnits(std::uint64_t first, std::size_t size)
        : offset(first), bytes(size), used(size / unit + 1), starts(size / unit + 1) {}
    [[nodiscard]] bool holds(std::uint64_t begin, std::size_t size) const {
      const std::size_t first = begin / unit, last = (begin + (size == 0 ? 0 : size - 1)) / unit;
      if (!used[first]) return false;
      for (std::size_t index = (first + 1) / word_bits; first < last && index <= last / word_bits; ++index) {
        const std::uint64_t mask = mask_of(index, first + 1, last);
        if ((used.word(index) & ~starts.word(index) & mask) != mask) return false;
      }
      return true;
    }
    std::uint64_t offset;
    std::size_t bytes;
    Bits used, starts;
  };

  /// The bits of word `index` for the units from `first` to `last`.
  [[nodiscard]] static std::uint64_t mask_of(std::size_t index, std::size_t first, std::size_t last) {
    std::uint64_t mask = ~std::uint64_t{0};
    if (index == first / word_bits) mask &= ~std::uint64_t{0} << first % word_bits;
    if (index == last / word_bits) mask &= ~std::uint64_t{0} >> (word_bits - 1 - last % word_bits);
    return mask;
  }
  void change(std::uint64_t offset, std::size_t bytes, bool is_allocated) {
    for (HeapUnits& heap : heaps_) {
      if (offset - heap.offset >= heap.bytes) continue;
      const std::size_t first = (offset - heap.offset) / unit, last = (offset - heap.offset + bytes - 1) / unit;
      for (std::size_t index = first / word_bits; index <= last / word_bits; ++index) {
        heap.used.set(index, mask_of(index, first, last), is_allocated);
        heap.starts.set(index, mask_of(index, first, last), false);
      }
      if (is_allocated) heap.starts.set(first / word_bits, std::uint64_t{1} << first % word_bits, true);
    }
  }

  std::vector<HeapUnits> heaps_;
};

}  // namespace beeline::detail
