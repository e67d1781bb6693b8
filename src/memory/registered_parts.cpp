// SPDX-License-Identifier: Apache-2.0
// How a rank reaches the parts of registered memory: by address, by CUDA's handles, or through the owner's process.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "beeline/core/error.hpp"
#include "memory/registration.hpp"

namespace beeline {

void Registration::open_alias(Entry& entry, const std::vector<Offer>& all) {
  const auto rank = static_cast<std::size_t>(rank_);
  std::size_t most = 0;
  for (const Offer& each : all) most = std::max<std::size_t>(most, each.bytes);
  auto* const start = reinterpret_cast<std::byte*>(all[rank].pointer);
  entry.alias = aliases_.open(most, {static_cast<std::uint32_t>(rank), start, all[rank].bytes});
  entry.memory.alias = range_.slot(rank_) + entry.alias;
  if (all[rank].bytes != 0 && all[rank].is_for_engines) range_.add(start, all[rank].bytes, all[rank].device);
}

void Registration::close_alias(Entry& entry) {
  if (entry.alias == 0) return;
  if (std::byte* const start = aliases_.find(static_cast<std::uint32_t>(rank_), entry.alias))
    range_.unmap(start, deadline_ns_);
  aliases_.close(std::exchange(entry.alias, 0));
}

void Registration::attach(Entry& entry, const std::vector<Offer>& all) {
  entry.memory.parts.resize(all.size());
  entry.access.resize(all.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].bytes == 0) continue;
    RegisteredPart& part = entry.memory.parts[rank];
    Access& access = entry.access[rank];
    part.kind = all[rank].device ? MemoryKind::device : MemoryKind::host;
    part.bytes = all[rank].bytes;
    if (!is_local(static_cast<int>(rank)) && !all[rank].is_for_engines) {
      part.not_directly = fmt::format(
          "rank {} is on another node, and its GPU does not reach the memory, which is not pinned (cudaHostRegister)",
          rank);
    } else if (!is_local(static_cast<int>(rank))) {
      access.alias = range_.slot(static_cast<int>(rank)) + entry.alias;
      part.not_directly = fmt::format("rank {} is on another node: copies, and operations by the alias, only", rank);
    } else if (all[rank].device)
      attach_device(part, access, all[rank], static_cast<int>(rank));
    else
      attach_host(part, access, all[rank], static_cast<int>(rank));
    part.copies = access.address != nullptr || access.alias != nullptr || access.process != nullptr;
  }
  check_intervals(entry);
}

void Registration::attach_device(RegisteredPart& part, Access& access, const Offer& theirs, int owner) const {
  const MemoryMember& member = members_[static_cast<std::size_t>(owner)];
  if (own().gpu < 0) {
    part.not_directly = fmt::format("rank {}'s GPU memory, and rank {} has no GPU", owner, rank_);
    return;
  }
  if (member.copies == CopyPath::none) {
    part.not_directly = fmt::format("no peer access to rank {}'s GPU, and this process does not see that", owner);
    return;
  }
  const bool direct = member.copies == CopyPath::direct;
  if (!direct) part.not_directly = fmt::format("no peer access to rank {}'s GPU: staged copies only", owner);
  if (same_process(owner)) {
    access.address = reinterpret_cast<std::byte*>(theirs.pointer);
    if (direct && gpu_memory::enable_peer(own().gpu, member.gpu))
      part.address = access.address;
    else if (direct)
      part.not_directly = fmt::format("CUDA gives no peer access to GPU {}: copies only", member.gpu);
    return;
  }
  try {
    access.ipc_gpu = direct ? own().gpu : member.gpu_here;
    access.ipc_start = gpu_memory::open_ipc(theirs.handle, access.ipc_gpu);
    access.address = access.ipc_start + theirs.handle.offset;
    if (direct) part.address = access.address;
  } catch (const Error& error) {
    part.not_directly = fmt::format("rank {}'s GPU memory cannot be mapped: {}", owner, error.what());
  }
}

void Registration::attach_host(RegisteredPart& part, Access& access, const Offer& theirs, int owner) {
  if (same_process(owner)) {
    access.address = reinterpret_cast<std::byte*>(theirs.pointer);
    if (own().gpu < 0 || is_pinned(access.address, part.bytes))
      part.address = access.address;
    else  // pinning it here would pin the pages for their other owners too, and conflict with their pinning
      part.not_directly = fmt::format("rank {}'s host memory is not pinned (cudaHostRegister): copies only", owner);
    return;
  }
  try {
    auto& process = processes_[owner];
    if (process == nullptr) process = std::make_shared<ProcessMemory>(theirs.proof);
    access.process = process;
    access.there = theirs.pointer;
    part.not_directly = fmt::format("private memory of rank {}'s process: copies only", owner);
  } catch (const Error& error) {
    part.not_directly = fmt::format("private memory of rank {}'s process: {}", owner, error.what());
  }
}

void Registration::check_intervals(const Entry& entry) const {
  const std::vector<AddressInterval> known = intervals();
  std::size_t reached = known.size();
  for (std::size_t rank = 0; rank < entry.access.size(); ++rank) {
    if (entry.access[rank].address == nullptr) continue;
    ++reached;
    const auto begin = reinterpret_cast<std::uintptr_t>(entry.access[rank].address);
    for (const AddressInterval& other : known)
      require(begin >= other.begin + other.bytes || other.begin >= begin + entry.memory.parts[rank].bytes,
              Status::invalid_argument,
              fmt::format("rank {} registers memory at {:#x} that rank {} has registered", rank, begin, other.owner));
  }
  require(reached <= max_intervals, Status::no_resource,
          fmt::format("{} parts of registered memory have an address here; at most {}", reached, max_intervals));
}

void Registration::detach(Entry& entry) {
  if (entry.alias != 0) {
    if (std::byte* const start = aliases_.find(static_cast<std::uint32_t>(rank_), entry.alias)) range_.forget(start);
    aliases_.close(std::exchange(entry.alias, 0));
  }
  for (Access& access : entry.access)
    if (access.ipc_start != nullptr) gpu_memory::close_ipc(access.ipc_start, access.ipc_gpu);
}

}  // namespace beeline
