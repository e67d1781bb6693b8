// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One virtual address range for all ranks of a node: a slot for each.
///
/// Slot of 2^shift bytes:  [ heap | device segments ][ free | host area and host segments ]
/// where each bar splits a half in two. The first half is device memory on a GPU rank; the heap of a host rank lies at
/// the same offset, in host memory, so that symmetric addresses are one addition apart whatever the kinds. Behind the
/// ranks' slots lie those of distributed arrays.
/// Source: seed 001, segmented unified address space; seed 000 section 6.3.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "beeline/core/layout.hpp"
#include "beeline/memory/address_map.hpp"
#include "beeline/runtime/file_descriptor.hpp"
#include "memory/memory_users.hpp"

namespace beeline {

namespace detail {
class ForkHandler;
}

/// The range in one process: shared by the ranks that are its threads. Thread-safe. A forked child gets the host memory
/// as a copy of its own, like all of its memory: what it stores there reaches no rank.
class AddressRange {
 public:
  /// The range of world `world_id` in this process, made by whichever rank asks first.
  [[nodiscard]] static std::shared_ptr<AddressRange> of_world(std::uint64_t world_id);
  AddressRange();
  ~AddressRange();

  /// Reserves `ranks` slots and those of arrays at `base` (nullptr: anywhere), the first halves of the slots in
  /// `gpu_ranks` with CUDA.
  /// Returns false, with nothing reserved, when the place is taken. True at once when this process holds it already.
  [[nodiscard]] bool reserve(std::byte* base, SlotLayout layout, int ranks, const std::vector<bool>& gpu_ranks);
  void release();

  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::byte* slot(int rank) const;
  [[nodiscard]] const SlotLayout& layout() const { return layout_; }
  /// Rank whose slot holds `address`, or -1.
  [[nodiscard]] int owner_of(const void* address) const;

  /// GPUs of this process that are to reach mapped memory. Set before anything is mapped. Without one, the device
  /// memory of other processes stays out of this one's reach.
  void set_gpus(std::vector<int> gpus);
  /// Whether an address lies in the range, but not in host memory that this process has mapped: in GPU memory, where no
  /// CPU thread loads or stores.
  [[nodiscard]] bool is_gpu_memory(const void* address);
  /// The piece of memory that an address of the range lies in, as this process has mapped it; empty: in none. It holds
  /// until something is unmapped.
  [[nodiscard]] std::span<const std::byte> piece_at(const void* address);
  /// All pieces, by address.
  [[nodiscard]] std::vector<std::span<const std::byte>> pieces();
  /// The users of pieces by plain loads and stores: nothing is unmapped while they are active.
  [[nodiscard]] MemoryUsers& users() { return users_; }
  /// The number of unmaps so far.
  [[nodiscard]] const std::atomic<std::uint64_t>& unmaps() const { return unmaps_; }
  /// By rank, the GPUs of this process that its device memory is mapped for. Set before anything is mapped.
  void set_access(std::vector<std::vector<int>> seen_by);

  /// Makes `bytes` of zeroed host memory that is mapped nowhere yet.
  [[nodiscard]] static FileDescriptor make_host(std::size_t bytes);
  /// Makes `bytes` of zeroed host memory at `address` and returns its descriptor for the other processes.
  [[nodiscard]] FileDescriptor create_host(std::byte* address, std::size_t bytes);
  /// Makes `bytes` of memory of GPU `gpu` at `address` and returns its descriptor. The memory is not zeroed.
  /// `owner` is the rank whose it is; -1: that of the slot.
  [[nodiscard]] FileDescriptor create_device(std::byte* address, std::size_t bytes, int gpu, int owner = -1);
  /// Maps another process's memory; does nothing where a thread of this process has mapped it.
  void map_host(std::byte* address, std::size_t bytes, FileDescriptor descriptor);
  bool map_device(std::byte* address, std::size_t bytes, const FileDescriptor& descriptor, int owner = -1);
  /// Maps `bytes` of a memfd from `offset` on; does nothing where a thread of this process has.
  void map_host_piece(std::byte* address, std::size_t bytes, const std::shared_ptr<const FileDescriptor>& descriptor,
                      std::size_t offset);
  /// Undoes create or map; does nothing when another thread of this process has undone it. Waits for what the network
  /// writes to the range. Throws deadline.
  void unmap(std::byte* address, std::int64_t deadline_ns);

  /// Bytes rounded up to the granularity of device memory.
  [[nodiscard]] static std::size_t device_bytes(std::size_t bytes);

 private:
  struct Mapping {
    std::size_t bytes;
    bool device;
    std::shared_ptr<const FileDescriptor> descriptor;  ///< of host memory, for forked children
    std::size_t offset;                                ///< in the descriptor's file
  };
  [[nodiscard]] std::size_t total_bytes() const;
  void release_slots();
  void map_host_locked(std::byte* address, std::size_t bytes, std::shared_ptr<const FileDescriptor> descriptor,
                       std::size_t offset);
  [[nodiscard]] const std::vector<int>& seen_by(const std::byte* address, int owner) const;
  void make_private_in_child();
  void unmap_locked(std::map<std::byte*, Mapping>::iterator mapping);

  std::mutex mutex_;
  MemoryUsers users_;
  std::atomic<std::uint64_t> unmaps_{0};
  std::byte* base_ = nullptr;
  SlotLayout layout_{};
  int ranks_ = 0;
  std::vector<bool> gpu_ranks_;
  std::vector<int> gpus_;
  std::vector<std::vector<int>> seen_by_;  ///< [ranks]
  std::map<std::byte*, Mapping> mappings_;
  std::unique_ptr<detail::ForkHandler> fork_handler_;
};

}  // namespace beeline
