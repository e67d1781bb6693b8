// SPDX-License-Identifier: Apache-2.0
#include "memory/registration.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "beeline/core/error.hpp"
#include "memory/agreement.hpp"

namespace beeline {

namespace {

constexpr std::uintptr_t alignment = 16;  // as malloc's; signals and 16-byte accesses need it

bool ranges_overlap(std::uintptr_t a, std::uint64_t a_bytes, std::uintptr_t b, std::uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

/// Throws unless every page of a range of host memory is mapped.
void check_mapped(const void* pointer, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  constexpr std::size_t pages_at_once = 4096;
  unsigned char resident[pages_at_once];
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer), end = begin + bytes;
  for (std::uintptr_t at = begin / page * page; at < end; at += pages_at_once * page)
    if (mincore(reinterpret_cast<void*>(at), std::min(end - at, pages_at_once * page), resident) != 0)
      throw Error(Status::invalid_argument, fmt::format("{} bytes at {}: not all of it is memory", bytes, pointer));
}

}  // namespace

bool Registration::is_pinned(const std::byte* start, std::size_t bytes) {
  const auto pinned = [](const std::byte* at) {
    return gpu_memory::describe(at).kind == gpu_memory::PointerKind::pinned;
  };
  return pinned(start) && pinned(start + bytes - 1);
}

Registration::Registration(Bootstrap& bootstrap, AddressRange& range, MemoryAliases& aliases,
                           std::vector<MemoryMember> members, std::int64_t deadline_ns)
    : bootstrap_(bootstrap), rank_(bootstrap.rank()), range_(range), aliases_(aliases), members_(std::move(members)),
      deadline_ns_(deadline_ns) {}

Registration::~Registration() {
  for (auto& [id, entry] : entries_) detach(*entry);
}

const MemoryMember& Registration::own() const { return members_[static_cast<std::size_t>(rank_)]; }

bool Registration::same_process(int rank) const {
  return members_[static_cast<std::size_t>(rank)].process == own().process;
}

const RegisteredMemory& Registration::add(void* pointer, std::size_t bytes) {
  Offer mine;
  Problem problem = problem_of([&] { mine = offer(pointer, bytes); });
  auto entry = std::make_unique<Entry>();
  try {
    fail_together(bootstrap_, problem, deadline_ns_);
    const auto all = allgather_values(bootstrap_, mine, deadline_ns_);
    check_conflicts(all);
    for (const Offer& each : all) next_id_ = std::max(next_id_, each.next_id);
    entry->memory.id = next_id_++;
    problem = problem_of([&] {
      if (aliases_.is_used()) open_alias(*entry, all);
      attach(*entry, all);
    });
    fail_together(bootstrap_, problem, deadline_ns_);
  } catch (...) {
    detach(*entry);
    throw;
  }
  const std::lock_guard lock(mutex_);
  return (entries_[entry->memory.id] = std::move(entry))->memory;
}

Registration::Offer Registration::offer(void* pointer, std::size_t bytes) const {
  Offer mine;
  mine.calls = 1;
  mine.next_id = next_id_;
  mine.proof = ProcessProof::mine();
  if (pointer == nullptr && bytes == 0) return mine;
  require(pointer != nullptr, Status::invalid_argument, fmt::format("{} bytes at no address (nullptr)", bytes));
  require(bytes > 0, Status::invalid_argument,
          fmt::format("no bytes at {}: a rank without a part passes nullptr and 0", pointer));
  const auto start = reinterpret_cast<std::uintptr_t>(pointer);
  require(start % alignment == 0, Status::invalid_argument,
          fmt::format("{} is not aligned to {} bytes", pointer, alignment));
  require(start + bytes > start, Status::invalid_argument,
          fmt::format("{} bytes at {}: not all of it is memory", bytes, pointer));
  const std::size_t slots = static_cast<std::size_t>(bootstrap_.size()) + array_slots;
  require(!ranges_overlap(start, bytes, reinterpret_cast<std::uintptr_t>(range_.base()),
                          range_.layout().slot_bytes() * slots),
          Status::invalid_argument, fmt::format("{} bytes at {} are the world's own memory", bytes, pointer));
  for (const auto& [id, entry] : entries_) {
    const RegisteredPart& part = entry->memory.parts[static_cast<std::size_t>(rank_)];
    require(
        part.bytes == 0 || !ranges_overlap(start, bytes, reinterpret_cast<std::uintptr_t>(part.address), part.bytes),
        Status::invalid_argument,
        fmt::format("{} bytes at {} are registered already, in registered memory {}", bytes, pointer, id));
  }
  mine.pointer = start;
  mine.bytes = bytes;
  describe_part(mine, pointer, bytes);
  return mine;
}

void Registration::describe_part(Offer& mine, void* pointer, std::size_t bytes) const {
  const gpu_memory::PointerInfo info = own().gpu >= 0 ? gpu_memory::describe(pointer) : gpu_memory::PointerInfo{};
  require(info.kind != gpu_memory::PointerKind::managed, Status::invalid_argument,
          fmt::format("{} is managed memory, which moves: it cannot be registered", pointer));
  mine.device = info.kind == gpu_memory::PointerKind::device;
  if (!mine.device) {
    mine.is_for_engines = own().gpu < 0 || is_pinned(static_cast<std::byte*>(pointer), bytes);
    return check_mapped(pointer, bytes);
  }
  require(info.gpu == own().gpu, Status::invalid_argument,
          fmt::format("{} lies on GPU {}; this rank's is {}", pointer, info.gpu, own().gpu));
  const std::size_t there = gpu_memory::bytes_behind(pointer, own().gpu);
  require(bytes <= there, Status::invalid_argument,
          fmt::format("{} bytes at {}: its allocation ends after {}", bytes, pointer, there));
  for (int rank = 0; rank < bootstrap_.size(); ++rank)
    if (!same_process(rank) && is_local(rank)) {
      mine.handle = gpu_memory::export_ipc(pointer, own().gpu);
      return;
    }
}

/// Checks the offers of all ranks, so that either all throw or none.
void Registration::check_conflicts(const std::vector<Offer>& all) const {
  bool any = false;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    any = any || all[rank].bytes > 0;
    for (std::size_t other = 0; other < rank; ++other)
      require(members_[rank].process != members_[other].process || all[rank].bytes == 0 || all[other].bytes == 0 ||
                  !ranges_overlap(all[rank].pointer, all[rank].bytes, all[other].pointer, all[other].bytes),
              Status::invalid_argument,
              fmt::format("ranks {} and {} register the same memory, {:#x}", other, rank, all[rank].pointer));
  }
  require(any, Status::invalid_argument, "no rank has any memory to register");
}

void Registration::remove(std::uint32_t id) {
  struct Which {
    std::uint32_t id;
    std::uint8_t calls, holds;
  };
  const bool holds = entries_.contains(id);
  const auto all = allgather_values<Which>(bootstrap_, {id, 1, holds}, deadline_ns_);
  // After this no rank uses the memory.
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    require(all[rank].calls == 0 || (all[rank].id == id && all[rank].holds != 0), Status::invalid_argument,
            fmt::format("rank {} deregisters memory {}, rank {} {}{}", rank_, id, rank, all[rank].id,
                        all[rank].holds == 0 ? ", which is not registered" : ""));
  close_alias(*entries_[id]);
  std::unique_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    entry = std::move(entries_[id]);
    entries_.erase(id);
  }
  detach(*entry);
  bootstrap_.barrier(deadline_ns_);  // from now on the owners may free it
}

Registration::Address Registration::reach(const RegisteredPlace& place, std::size_t bytes) const {
  const std::shared_lock lock(mutex_);
  const auto found = entries_.find(place.id);
  require(found != entries_.end(), Status::invalid_argument, fmt::format("memory {} is not registered", place.id));
  require(place.rank >= 0 && place.rank < bootstrap_.size(), Status::invalid_argument,
          fmt::format("rank {} of a world of {}", place.rank, bootstrap_.size()));
  const auto rank = static_cast<std::size_t>(place.rank);
  const RegisteredPart& part = found->second->memory.parts[rank];
  require(place.offset <= part.bytes && bytes <= part.bytes - place.offset, Status::invalid_argument,
          fmt::format("{} bytes at offset {} of registered memory {}: rank {}'s part has {}", bytes, place.offset,
                      place.id, place.rank, part.bytes));
  const Access& access = found->second->access[rank];
  require(part.copies || bytes == 0, Status::unreachable,
          fmt::format("rank {}'s part of registered memory {}: {}", place.rank, place.id, part.not_directly));
  std::byte* const address = access.address != nullptr ? access.address : access.alias;
  return {address == nullptr ? nullptr : address + place.offset, access.process, access.there + place.offset};
}

std::vector<AddressInterval> Registration::intervals() const {
  const std::shared_lock lock(mutex_);
  std::vector<AddressInterval> all;
  for (const auto& [id, entry] : entries_)
    for (std::size_t rank = 0; rank < entry->access.size(); ++rank)
      if (const std::byte* address = entry->access[rank].address; address != nullptr)
        all.push_back({reinterpret_cast<std::uintptr_t>(address), entry->memory.parts[rank].bytes,
                       static_cast<std::uint32_t>(rank), 0});
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return all;
}

}  // namespace beeline
