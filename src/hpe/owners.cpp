// SPDX-License-Identifier: Apache-2.0
#include "hpe/owners.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "beeline/core/error.hpp"
#include "hpe/gpu.hpp"

namespace beeline::hpe {

namespace detail {

namespace {

constexpr unsigned gpu_bit = 8, index_shift = 16;

std::uint64_t pack(const Owner& owner) {
  return static_cast<std::uint64_t>(owner.memory) | std::uint64_t{owner.device.is_gpu()} << gpu_bit |
         static_cast<std::uint64_t>(owner.device.index()) << index_shift;
}

/// Whether the bytes at two addresses can be read. Where the system does not permit the question, they can.
bool can_be_read(const std::byte* first, const std::byte* last) {
  std::byte read[2];
  const iovec here = {read, sizeof read};
  const iovec there[] = {{const_cast<std::byte*>(first), 1}, {const_cast<std::byte*>(last), 1}};
  const ssize_t got = ::process_vm_readv(::getpid(), &here, 1, there, 2, 0);
  return got == 2 || (got < 0 && errno != EFAULT);
}

/// Whether all pages of a range are mapped, and the first and the last can be read: addresses that CUDA keeps for
/// device memory are mapped, but cannot be read.
bool is_readable(const void* pointer, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  constexpr std::size_t at_once = 4096;
  unsigned char resident[at_once];
  const auto* const first = static_cast<const std::byte*>(pointer);
  const auto start = reinterpret_cast<std::uintptr_t>(pointer), end = start + bytes;
  if (end < start || !can_be_read(first, first + bytes - 1)) return false;
  for (std::uintptr_t next = start / page * page; next < end; next += at_once * page)
    if (::mincore(reinterpret_cast<void*>(next), std::min(end - next, at_once * page), resident) != 0) return false;
  return true;
}

/// The owner, by the table and CUDA; pageable memory if neither knows the pointer.
OwnedRange known_owner(const void* pointer) {
  if (const std::optional<OwnedRange> known = OwnerTable::of_process().find(pointer)) return *known;
  if (const std::optional<Owner> of_cuda = gpu::owner_of(pointer)) return {*of_cuda};
  return {};
}

[[noreturn]] void refuse_nobody(const void* pointer) {
  throw Error(Status::invalid_argument,
              fmt::format("the address {} belongs to nobody: no device's memory, and not mapped for reading", pointer));
}

}  // namespace

void OwnerTable::Entry::assign(const Entry& other) {
  start.store(other.start.load(std::memory_order_relaxed), std::memory_order_relaxed);
  end.store(other.end.load(std::memory_order_relaxed), std::memory_order_relaxed);
  kind.store(other.kind.load(std::memory_order_relaxed), std::memory_order_relaxed);
  copying.store(other.copying.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

OwnerTable& OwnerTable::of_process() {
  static constinit beeline::detail::ProcessValue<OwnerTable> table;
  return table.get([] { return OwnerTable(); });
}

std::size_t OwnerTable::first_beyond(std::uintptr_t address, std::size_t count) const {
  std::size_t low = 0, high = count;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (entries_[middle].start.load(std::memory_order_relaxed) <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

OwnedRange OwnerTable::read(std::size_t index) const {
  const Entry& entry = entries_[index];
  const std::uintptr_t start = entry.start.load(std::memory_order_relaxed);
  const std::uint64_t kind = entry.kind.load(std::memory_order_relaxed);
  const int device = static_cast<int>(kind >> index_shift);
  OwnedRange range;
  range.owner.memory = static_cast<Memory>(kind & 0xff);
  range.owner.device = detail::device_at((kind >> gpu_bit & 1) != 0 ? DeviceKind::gpu : DeviceKind::host, device);
  range.owner.start = reinterpret_cast<const std::byte*>(start);
  range.owner.bytes = entry.end.load(std::memory_order_relaxed) - start;
  range.copying = entry.copying.load(std::memory_order_relaxed);
  return range;
}

std::optional<OwnedRange> OwnerTable::find(const void* pointer) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (;;) {
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    if (version % 2 != 0) continue;
    const std::size_t index = first_beyond(address, count_.load(std::memory_order_relaxed));
    const bool is_inside = index > 0 && address < entries_[index - 1].end.load(std::memory_order_relaxed);
    const std::optional<OwnedRange> found = is_inside ? std::optional(read(index - 1)) : std::nullopt;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (version_.load(std::memory_order_relaxed) == version) return found;
  }
}

void OwnerTable::add(const OwnedRange& range) {
  const auto start = reinterpret_cast<std::uintptr_t>(range.owner.start);
  const std::lock_guard lock(mutex_);
  const std::size_t count = count_.load(std::memory_order_relaxed);
  require(count < capacity, Status::no_resource,
          fmt::format("{} allocations of device memory, pinned memory and objects exist, the most that are possible",
                      count));
  version_.fetch_add(1, std::memory_order_acq_rel);
  const std::size_t index = first_beyond(start, count);
  for (std::size_t each = count; each > index; --each) entries_[each].assign(entries_[each - 1]);
  Entry& entry = entries_[index];
  entry.start.store(start, std::memory_order_relaxed);
  entry.end.store(start + range.owner.bytes, std::memory_order_relaxed);
  entry.kind.store(pack(range.owner), std::memory_order_relaxed);
  entry.copying.store(range.copying, std::memory_order_relaxed);
  count_.store(count + 1, std::memory_order_relaxed);
  version_.fetch_add(1, std::memory_order_release);
}

void OwnerTable::remove(const std::byte* start) {
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::lock_guard lock(mutex_);
  const std::size_t count = count_.load(std::memory_order_relaxed), index = first_beyond(address, count);
  if (index == 0 || entries_[index - 1].start.load(std::memory_order_relaxed) != address) return;
  version_.fetch_add(1, std::memory_order_acq_rel);
  for (std::size_t each = index; each < count; ++each) entries_[each - 1].assign(entries_[each]);
  count_.store(count - 1, std::memory_order_relaxed);
  version_.fetch_add(1, std::memory_order_release);
}

OwnedRange range_of(const void* pointer) {
  const OwnedRange range = known_owner(pointer);
  if (range.owner.memory == Memory::pageable && !is_readable(pointer, 1)) refuse_nobody(pointer);
  return range;
}

OwnedRange checked_range(const void* pointer, std::size_t bytes, const char* what) {
  const OwnedRange range = known_owner(pointer);
  const Owner& owner = range.owner;
  const auto refuse = [&](const std::string& why) {
    throw Error(Status::invalid_argument, fmt::format("{} of {} bytes at {} {}", what, bytes, pointer, why));
  };
  if (owner.memory == Memory::pageable && !is_readable(pointer, bytes)) {
    if (!is_readable(pointer, 1)) refuse_nobody(pointer);
    refuse("has pages that are not mapped");
  }
  if (owner.start == nullptr) return range;
  const auto before = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - owner.start);
  if (bytes > owner.bytes - before)
    refuse(fmt::format("goes {} bytes beyond its allocation of {} bytes", bytes - (owner.bytes - before), owner.bytes));
  return range;
}

}  // namespace detail

Owner owner_of(const void* pointer) { return detail::range_of(pointer).owner; }

}  // namespace beeline::hpe
