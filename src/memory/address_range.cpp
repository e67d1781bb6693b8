// SPDX-License-Identifier: Apache-2.0
#include "memory/address_range.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "beeline/core/error.hpp"
#include "core/fork.hpp"
#include "memory/gpu_memory.hpp"
#include "memory/memory_limits.hpp"

namespace beeline {

namespace {

constexpr std::size_t device_granularity = std::size_t{2} << 20;  // of cuMemCreate on every supported GPU

#if defined(__SANITIZE_THREAD__)
constexpr bool places_can_be_chosen = false;  // ThreadSanitizer has memory there; its mmap would end the process
#else
constexpr bool places_can_be_chosen = true;
#endif

[[noreturn]] void fail(const char* call, std::size_t bytes) {
  const bool lacks_resource = errno == ENOMEM || errno == EMFILE || errno == ENFILE;
  const Status code = lacks_resource ? Status::no_resource : Status::internal;
  throw Error(code, fmt::format("{} of {} bytes: {}", call, bytes, std::strerror(errno)));
}

std::byte* reserve_host(std::byte* address, std::size_t bytes) {
  if (address != nullptr && !places_can_be_chosen) return nullptr;
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* given = mmap(address, bytes, PROT_NONE, flags | (address == nullptr ? 0 : MAP_FIXED_NOREPLACE), -1, 0);
  if (given == MAP_FAILED) return nullptr;
  if (address == nullptr || given == address) return static_cast<std::byte*>(given);
  munmap(given, bytes);
  return nullptr;
}

}  // namespace

std::shared_ptr<AddressRange> AddressRange::of_world(std::uint64_t world_id) {
  static std::mutex mutex;
  static std::map<std::uint64_t, std::weak_ptr<AddressRange>> ranges;
  const std::lock_guard lock(mutex);
  std::erase_if(ranges, [](const auto& entry) { return entry.second.expired(); });
  if (auto known = ranges[world_id].lock()) return known;
  auto made = std::make_shared<AddressRange>();
  ranges[world_id] = made;
  return made;
}

AddressRange::AddressRange()
    : fork_handler_(std::make_unique<detail::ForkHandler>([this] { make_private_in_child(); }, &mutex_)) {}

AddressRange::~AddressRange() {
  fork_handler_.reset();  // its handler reads the mappings
  while (!mappings_.empty()) unmap_locked(mappings_.begin());
  release();
}

bool AddressRange::reserve(std::byte* base, SlotLayout layout, int ranks, const std::vector<bool>& gpu_ranks) {
  const std::lock_guard lock(mutex_);
  if (base_ != nullptr) return base == nullptr || base == base_;
  const bool any_gpu = std::find(gpu_ranks.begin(), gpu_ranks.end(), true) != gpu_ranks.end();
  if (base == nullptr && any_gpu) return false;  // CUDA cannot leave the host's parts out of a range that it chooses
  layout_ = layout, ranks_ = ranks, gpu_ranks_ = gpu_ranks;
  if (!any_gpu) {
    base_ = reserve_host(base, total_bytes());
    return base_ != nullptr;
  }
  std::byte* arrays = base + layout.slot_bytes() * static_cast<std::size_t>(ranks);
  // Below 32 MiB CUDA reserves no range at a chosen address, but it accepts host memory inside a range that it has
  // reserved: so the arrays' slots are reserved as a whole, for chunks of either kind.
  if (!gpu_memory::reserve(arrays, layout.slot_bytes() * array_slots)) return false;
  for (int rank = 0; rank < ranks; ++rank) {
    std::byte* slot = base + layout.slot_bytes() * static_cast<std::size_t>(rank);
    const bool gpu = gpu_ranks[static_cast<std::size_t>(rank)];
    const bool device_half =
        gpu ? gpu_memory::reserve(slot, layout.half()) : reserve_host(slot, layout.half()) != nullptr;
    if (device_half && reserve_host(slot + layout.half(), layout.half()) != nullptr) continue;
    if (device_half) gpu ? gpu_memory::release(slot, layout.half()) : static_cast<void>(munmap(slot, layout.half()));
    gpu_memory::release(arrays, layout.slot_bytes() * array_slots);
    ranks_ = rank;
    base_ = base;
    release_slots();
    return false;
  }
  base_ = base;
  return true;
}

void AddressRange::release() {
  if (base_ == nullptr) return;
  const std::size_t arrays = layout_.slot_bytes() * array_slots;
  if (std::find(gpu_ranks_.begin(), gpu_ranks_.end(), true) != gpu_ranks_.end())
    gpu_memory::release(slot(ranks_), arrays);
  else
    munmap(slot(ranks_), arrays);
  release_slots();
}

void AddressRange::release_slots() {
  for (int rank = 0; rank < ranks_; ++rank) {
    const bool gpu = gpu_ranks_[static_cast<std::size_t>(rank)];
    if (gpu) gpu_memory::release(slot(rank), layout_.half());
    munmap(slot(rank) + (gpu ? layout_.half() : 0), gpu ? layout_.half() : layout_.slot_bytes());
  }
  base_ = nullptr;
}

std::size_t AddressRange::total_bytes() const {
  return layout_.slot_bytes() * (static_cast<std::size_t>(ranks_) + array_slots);
}

std::byte* AddressRange::slot(int rank) const { return base_ + layout_.slot_bytes() * static_cast<std::size_t>(rank); }

int AddressRange::owner_of(const void* address) const {
  const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
  const auto slot = offset >> layout_.shift;
  return slot < static_cast<std::uintptr_t>(ranks_) ? static_cast<int>(slot) : -1;
}

void AddressRange::set_gpus(std::vector<int> gpus) {
  const std::lock_guard lock(mutex_);
  gpus_ = std::move(gpus);
}

bool AddressRange::is_gpu_memory(const void* address) {
  auto* byte = static_cast<std::byte*>(const_cast<void*>(address));
  const std::lock_guard lock(mutex_);
  const auto behind = mappings_.upper_bound(byte);
  if (behind != mappings_.begin())
    if (const auto& [start, mapping] = *std::prev(behind); byte < start + mapping.bytes) return mapping.device;
  return byte >= base_ && byte < base_ + total_bytes();
}

std::span<const std::byte> AddressRange::piece_at(const void* address) {
  auto* byte = static_cast<std::byte*>(const_cast<void*>(address));
  const std::lock_guard lock(mutex_);
  const auto behind = mappings_.upper_bound(byte);
  if (behind == mappings_.begin()) return {};
  const auto& [start, mapping] = *std::prev(behind);
  return static_cast<std::size_t>(byte - start) < mapping.bytes ? std::span<const std::byte>(start, mapping.bytes)
                                                                : std::span<const std::byte>();
}

std::vector<std::span<const std::byte>> AddressRange::pieces() {
  const std::lock_guard lock(mutex_);
  std::vector<std::span<const std::byte>> all;
  for (const auto& [start, mapping] : mappings_)
    if (!mapping.is_programs) all.emplace_back(start, mapping.bytes);
  return all;
}

void AddressRange::set_access(std::vector<std::vector<int>> seen_by) {
  const std::lock_guard lock(mutex_);
  seen_by_ = std::move(seen_by);
}

const std::vector<int>& AddressRange::seen_by(const std::byte* address, int owner) const {
  return seen_by_.at(static_cast<std::size_t>(owner < 0 ? owner_of(address) : owner));
}

std::size_t AddressRange::device_bytes(std::size_t bytes) {
  return (bytes + device_granularity - 1) / device_granularity * device_granularity;
}

FileDescriptor AddressRange::make_host(std::size_t bytes) {
  check_file_size(bytes);
  FileDescriptor memory(memfd_create("beeline", MFD_CLOEXEC));
  if (!memory) fail("memfd_create", bytes);
  if (ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) fail("ftruncate", bytes);
  return memory;
}

FileDescriptor AddressRange::create_host(std::byte* address, std::size_t bytes) {
  FileDescriptor memory = make_host(bytes);
  auto kept = std::make_shared<const FileDescriptor>(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0));
  if (!*kept) fail("the descriptor's copy", bytes);
  const std::lock_guard lock(mutex_);
  map_host_locked(address, bytes, std::move(kept), 0);
  return memory;
}

FileDescriptor AddressRange::create_device(std::byte* address, std::size_t bytes, int gpu, int owner) {
  const std::lock_guard lock(mutex_);
  FileDescriptor memory = gpu_memory::create(address, bytes, gpu, seen_by(address, owner));
  mappings_[address] = {bytes, true, nullptr, 0};
  return memory;
}

void AddressRange::map_host(std::byte* address, std::size_t bytes, FileDescriptor descriptor) {
  map_host_piece(address, bytes, std::make_shared<const FileDescriptor>(std::move(descriptor)), 0);
}

void AddressRange::map_host_piece(std::byte* address, std::size_t bytes,
                                  const std::shared_ptr<const FileDescriptor>& descriptor, std::size_t offset) {
  const std::lock_guard lock(mutex_);
  if (!mappings_.contains(address)) map_host_locked(address, bytes, descriptor, offset);
}

bool AddressRange::map_device(std::byte* address, std::size_t bytes, const FileDescriptor& descriptor, int owner) {
  const std::lock_guard lock(mutex_);
  if (mappings_.contains(address) || seen_by(address, owner).empty()) return false;
  gpu_memory::map(address, bytes, descriptor.get(), seen_by(address, owner));
  mappings_[address] = {bytes, true, nullptr, 0};
  return true;
}

void AddressRange::add(std::byte* address, std::size_t bytes, bool is_device) {
  const std::lock_guard lock(mutex_);
  mappings_[address] = {bytes, is_device, nullptr, 0, true};
}

void AddressRange::forget(std::byte* address) {
  const std::lock_guard lock(mutex_);
  mappings_.erase(address);
}

void AddressRange::map_host_locked(std::byte* address, std::size_t bytes,
                                   std::shared_ptr<const FileDescriptor> descriptor, std::size_t offset) {
  if (mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor->get(),
           static_cast<off_t>(offset)) == MAP_FAILED)
    fail("mmap", bytes);
  mappings_[address] = {bytes, false, std::move(descriptor), offset};
  if (!gpus_.empty()) gpu_memory::register_host(address, bytes);
}

void AddressRange::make_private_in_child() {
  for (const auto& [address, memory] : mappings_) {
    if (memory.device || memory.is_programs) continue;  // a child cannot call CUDA
    constexpr int flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
    if (mmap(address, memory.bytes, PROT_READ | PROT_WRITE, flags, memory.descriptor->get(),
             static_cast<off_t>(memory.offset)) == MAP_FAILED)
      std::abort();  // otherwise the child would store into the ranks' memory
  }
}

void AddressRange::unmap(std::byte* address, std::int64_t deadline_ns) {
  const MemoryUsers::Unmapping unmapping(users_, address, deadline_ns);
  const MemoryUsers::NoHolds no_holds(users_, deadline_ns);
  const std::lock_guard unused(users_);
  const std::lock_guard lock(mutex_);
  if (const auto mapping = mappings_.find(address); mapping != mappings_.end()) unmap_locked(mapping);
}

void AddressRange::unmap_locked(std::map<std::byte*, Mapping>::iterator mapping) {
  const auto& [address, memory] = *mapping;
  ++unmaps_;
  if (memory.is_programs) {
    // It stays mapped.
  } else if (memory.device) {
    gpu_memory::unmap(address, memory.bytes);
  } else {
    if (!gpus_.empty()) gpu_memory::unregister_host(address);
    // The addresses stay reserved, as inaccessible pages.
    mmap(address, memory.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  mappings_.erase(mapping);
}

}  // namespace beeline
