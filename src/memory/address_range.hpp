// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One virtual address range for all ranks of a node, with a slot for each rank.
///
/// Slot of 2^shift bytes:  [ heap | device segments ][ free | host area and host segments ]
/// where each bar divides a half into two quarters. On a GPU rank the first half is device memory. A host rank's heap
/// lies at the same offset, in host memory, so that symmetric addresses differ by a constant whatever the kinds. The
/// slots of distributed arrays follow those of the ranks.
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

/// The range in one process, shared by the ranks that are its threads. Thread-safe. A forked child gets a private copy
/// of the host memory, like of all its memory: its stores there reach no rank.
class AddressRange {
 public:
  /// The range of world `world_id` in this process, made by the first rank that calls this function.
  [[nodiscard]] static std::shared_ptr<AddressRange> of_world(std::uint64_t world_id);
  AddressRange();
  ~AddressRange();

  /// Reserves `ranks` slots and the slots of arrays at `base` (nullptr: anywhere); with CUDA for arrays and for the
  /// first halves of slots in `gpu_ranks`. Returns false, with nothing reserved, if the addresses are taken. Returns
  /// true at once if this process has reserved them already.
  [[nodiscard]] bool reserve(std::byte* base, SlotLayout layout, int ranks, const std::vector<bool>& gpu_ranks);
  void release();

  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::byte* slot(int rank) const;
  [[nodiscard]] const SlotLayout& layout() const { return layout_; }
  /// The rank whose slot contains `address`, or -1.
  [[nodiscard]] int owner_of(const void* address) const;

  /// Sets the GPUs of this process that reach mapped memory. Called before anything is mapped. Without a GPU, this
  /// process cannot reach the device memory of other processes.
  void set_gpus(std::vector<int> gpus);
  /// Whether an address is GPU memory, which CPU threads cannot load or store: an address of the range outside the host
  /// memory that this process has mapped, or an address in device memory that `add` has added.
  [[nodiscard]] bool is_gpu_memory(const void* address);
  /// The piece of memory that contains an address, as this process has mapped or added it; empty if there is none.
  /// Valid until something is unmapped.
  [[nodiscard]] std::span<const std::byte> piece_at(const void* address);
  /// All pieces of the range, sorted by address.
  [[nodiscard]] std::vector<std::span<const std::byte>> pieces();
  /// The threads that access pieces by plain loads and stores: nothing is unmapped while they are active.
  [[nodiscard]] MemoryUsers& users() { return users_; }
  /// The number of unmaps so far.
  [[nodiscard]] const std::atomic<std::uint64_t>& unmaps() const { return unmaps_; }
  /// Sets, for each rank, the GPUs of this process for which the rank's device memory is mapped. Called before anything
  /// is mapped.
  void set_access(std::vector<std::vector<int>> seen_by);

  /// Makes `bytes` of zeroed host memory that is not mapped yet.
  [[nodiscard]] static FileDescriptor make_host(std::size_t bytes);
  /// Makes `bytes` of zeroed host memory at `address`. Returns its descriptor, for other processes.
  [[nodiscard]] FileDescriptor create_host(std::byte* address, std::size_t bytes);
  /// Makes `bytes` of memory of GPU `gpu` at `address`, not zeroed. Returns its descriptor.
  ///   owner  the rank that owns the memory; -1: the rank whose slot contains `address`
  [[nodiscard]] FileDescriptor create_device(std::byte* address, std::size_t bytes, int gpu, int owner = -1);
  /// Maps another process's memory; does nothing if a thread of this process has mapped it already.
  void map_host(std::byte* address, std::size_t bytes, FileDescriptor descriptor);
  bool map_device(std::byte* address, std::size_t bytes, const FileDescriptor& descriptor, int owner = -1);
  /// Maps `bytes` of a memfd from `offset` on; does nothing if a thread of this process has mapped them already.
  void map_host_piece(std::byte* address, std::size_t bytes, const std::shared_ptr<const FileDescriptor>& descriptor,
                      std::size_t offset);
  /// Adds memory of the program outside the range as a piece: until `unmap` or `forget`, engines reach it.
  void add(std::byte* address, std::size_t bytes, bool is_device);
  /// Ends `add` once no engine runs.
  void forget(std::byte* address);
  /// Undoes create, map or add; does nothing if another thread of this process has undone it. Waits until the network
  /// no longer writes to the memory. Throws deadline.
  void unmap(std::byte* address, std::int64_t deadline_ns);

  /// Bytes rounded up to the granularity of device memory.
  [[nodiscard]] static std::size_t device_bytes(std::size_t bytes);

 private:
  struct Mapping {
    std::size_t bytes;
    bool device;
    std::shared_ptr<const FileDescriptor> descriptor;  ///< of host memory, for forked children
    std::size_t offset;                                ///< in the descriptor's file
    bool is_programs = false;                          ///< memory that `add` has added
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
