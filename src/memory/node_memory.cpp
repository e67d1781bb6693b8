// SPDX-License-Identifier: Apache-2.0
#include "memory/node_memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <random>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/layout.hpp"
#include "memory/agreement.hpp"
#include "memory/allocator_union.hpp"
#include "memory/gpu_memory.hpp"

namespace beeline {

namespace {

/// Addresses for the range: above AddressSanitizer's shadow memory, and below the addresses that loaders, heaps and
/// CUDA choose themselves.
constexpr std::uintptr_t lowest_base = 0x110000000000, range_end = 0x550000000000;
/// Most random addresses that are tried until all processes of a world find one free.
constexpr int most_draws = 10;
/// CUDA refuses some addresses. The last attempts use multiples of this step, which CUDA is known to accept.
constexpr std::size_t coarse_step = std::size_t{1} << 44;
constexpr int coarse_draws = 5;

/// A random address for `bytes`, so that only processes that know it can find a rank's memory.
///   step  the address is a multiple of it: at least the largest page size of mapped memory
std::byte* draw_base(std::mt19937_64& random, std::size_t bytes, std::size_t step) {
  const std::size_t lowest = (lowest_base + step - 1) / step * step, room = range_end - lowest;
  const std::size_t bases = bytes < room ? (room - bytes) / step + 1 : 1;
  return reinterpret_cast<std::byte*>(lowest + std::uniform_int_distribution<std::size_t>(0, bases - 1)(random) * step);
}

std::size_t round_to_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

/// A heap's part of its slot.
struct HeapPlace {
  const char *kind, *variable;
  std::size_t shares;  ///< number of such parts in a slot
  const char* share;
};

constexpr HeapPlace symmetric_heap{"symmetric", "BEELINE_HEAP_BYTES", 4, "a quarter"},
    pinned_heap{"pinned", "BEELINE_PINNED_HEAP_BYTES", 8, "an eighth"};

/// Bytes of a heap's part of a slot.
constexpr std::size_t share_of(const HeapPlace& heap, std::uint32_t slot_shift) {
  return (std::size_t{1} << slot_shift) / heap.shares;
}

/// Throws unless `bytes`, a heap with its header, fit into a heap's part of a slot.
void check_fits(const HeapPlace& heap, std::size_t bytes, std::uint32_t slot_shift) {
  require(bytes <= share_of(heap, slot_shift), Status::invalid_argument,
          fmt::format("a {} heap of {} bytes, its header included, does not fit {} of a slot of 2^{} bytes, which is "
                      "{} bytes: lower {}{}",
                      heap.kind, bytes, heap.share, slot_shift, share_of(heap, slot_shift), heap.variable,
                      slot_shift < max_slot_shift ? ", or start fewer ranks, which have larger slots" : ""));
}

/// Whether slots of this shift hold both heaps.
bool hold(std::uint32_t slot_shift, const MemorySizes& sizes) {
  return sizes.heap_bytes <= share_of(symmetric_heap, slot_shift) &&
         sizes.host_area_bytes <= share_of(pinned_heap, slot_shift);
}

}  // namespace

std::uint32_t fitted_slot_shift(const MemorySizes& sizes, int ranks) {
  constexpr std::uint32_t range_shift = 46;  // half of a process's address space
  const auto log_ranks = static_cast<std::uint32_t>(std::bit_width(static_cast<unsigned>(ranks - 1)));
  const std::uint32_t most = std::min(max_slot_shift, range_shift - log_ranks);
  std::uint32_t shift = sizes.slot_shift;
  while (shift < most && !hold(shift, sizes)) ++shift;
  return std::min(shift, most);
}

NodeMemory::NodeMemory(Bootstrap& bootstrap, std::uint64_t world_id, std::vector<MemoryMember> members,
                       const MemorySizes& sizes, std::int64_t deadline_ns)
    : bootstrap_(bootstrap), members_(std::move(members)), sizes_(sizes), deadline_ns_(deadline_ns),
      range_(AddressRange::of_world(world_id)) {
  std::vector<bool> gpu_ranks;
  std::vector<int> gpus;  // GPUs of this process
  for (const MemoryMember& member : members_) {
    gpu_ranks.push_back(member.gpu >= 0);
    const bool here = member.process == members_[static_cast<std::size_t>(bootstrap.rank())].process;
    const int gpu = member.gpu >= 0 ? member.gpu : member.reaching_gpu;
    if (here && gpu >= 0 && std::find(gpus.begin(), gpus.end(), gpu) == gpus.end()) gpus.push_back(gpu);
  }
  const SlotLayout layout{sizes.slot_shift};
  require(sizes.slot_shift >= min_slot_shift && sizes.slot_shift <= max_slot_shift, Status::invalid_argument,
          fmt::format("slots of 2^{} bytes: BEELINE_SLOT_SHIFT is {} to {}", sizes.slot_shift, min_slot_shift,
                      max_slot_shift));
  check_fits(symmetric_heap, sizes.heap_bytes, sizes.slot_shift);
  check_fits(pinned_heap, sizes.host_area_bytes, sizes.slot_shift);
  reserve(world_id, gpus.empty() ? std::vector<bool>(gpu_ranks.size(), false) : gpu_ranks);
  range_->set_gpus(gpus);
  std::vector<std::vector<int>> seen_by;
  for (const MemoryMember& member : members_) seen_by.push_back(member.seen_by);
  range_->set_access(std::move(seen_by));
  std::vector<Part> heaps, host_areas;
  for (int rank = 0; rank < bootstrap.size(); ++rank) {
    heaps.push_back(
        {heap(rank), AddressRange::device_bytes(sizes.heap_bytes), gpu_ranks[static_cast<std::size_t>(rank)]});
    host_areas.push_back({host_area(rank), round_to_pages(sizes.host_area_bytes), false});
    placements_.push_back({OffsetAllocator(layout.quarter(), AddressRange::device_bytes(1)),
                           OffsetAllocator(layout.quarter() / 2, AddressRange::device_bytes(1))});
  }
  share(host_areas);
  share(heaps);
}

NodeMemory::~NodeMemory() = default;

bool NodeMemory::everyone(bool mine) {
  const auto all = allgather_values<std::uint8_t>(bootstrap_, mine ? 1 : 0, deadline_ns_);
  return std::all_of(all.begin(), all.end(), [](std::uint8_t each) { return each != 0; });
}

void NodeMemory::reserve(std::uint64_t seed, const std::vector<bool>& gpu_ranks) {
  const SlotLayout layout{sizes_.slot_shift};
  std::mt19937_64 random(seed);
  const std::size_t bytes = layout.slot_bytes() * (static_cast<std::size_t>(bootstrap_.size()) + array_slots);
  for (int draw = 0; draw < most_draws; ++draw) {
    const std::size_t step = draw < most_draws - coarse_draws ? AddressRange::device_bytes(1) : coarse_step;
    const bool mine = range_->reserve(draw_base(random, bytes, step), layout, bootstrap_.size(), gpu_ranks);
    if (everyone(mine)) return;
    range_->release();
    bootstrap_.barrier(deadline_ns_);  // no thread of this process tries another address before all released this
  }
  Problem problem;
  const MemorySizes least{min_slot_shift, sizes_.heap_bytes, sizes_.host_area_bytes};
  if (!range_->reserve(nullptr, layout, bootstrap_.size(), gpu_ranks))
    problem = {Status::no_resource,
               fmt::format("no address range for {} slots of 2^{} bytes: lower {} on all ranks, or lift the limit on "
                           "virtual memory (ulimit -v)",
                           bootstrap_.size(), sizes_.slot_shift,
                           fitted_slot_shift(least, bootstrap_.size()) < sizes_.slot_shift ? "BEELINE_SLOT_SHIFT"
                                                                                           : "the sizes of the heaps")};
  fail_together(bootstrap_, problem, deadline_ns_);
  const auto bases = allgather_values(bootstrap_, range_->base(), deadline_ns_);
  global_addresses_ = std::all_of(bases.begin(), bases.end(), [&](std::byte* base) { return base == bases.front(); });
}

std::byte* NodeMemory::heap(int rank) const { return range_->slot(rank); }

std::byte* NodeMemory::host_area(int rank) const { return range_->slot(rank) + range_->layout().host_area_offset(); }

void NodeMemory::share(const std::vector<Part>& parts) {
  const auto rank = static_cast<std::size_t>(bootstrap_.rank());
  const Part& mine = parts[rank];
  FileDescriptor descriptor;
  const Problem problem = problem_of([&] {
    if (mine.bytes > 0)
      descriptor = mine.device ? range_->create_device(mine.address, mine.bytes, members_[rank].gpu)
                               : range_->create_host(mine.address, mine.bytes);
  });
  fail_together(bootstrap_, problem, deadline_ns_);
  auto descriptors = bootstrap_.exchange_descriptors(descriptor.get(), deadline_ns_);
  for (std::size_t peer = 0; peer < parts.size(); ++peer) {
    const Part& part = parts[peer];
    if (peer == rank || part.bytes == 0 || !members_[peer].is_local) continue;
    if (!part.device)
      range_->map_host(part.address, part.bytes, std::move(descriptors[peer]));
    else if (range_->map_device(part.address, part.bytes, descriptors[peer]))
      gpu_memory::keep_descriptor(part.address, descriptors[peer].get());  // for engines' windows on the memory
  }
  bootstrap_.barrier(deadline_ns_);
}

std::byte* NodeMemory::segments_of(int rank, bool device) const {
  const SlotLayout layout = range_->layout();
  return range_->slot(rank) + (device ? layout.device_segments_offset() : layout.host_segments_offset());
}

NodeMemory::Part NodeMemory::place(int rank, MemoryKind kind, std::size_t bytes) {
  if (bytes == 0) return {};
  const bool device = kind == MemoryKind::device && members_[static_cast<std::size_t>(rank)].gpu >= 0;
  Placement& placement = placements_[static_cast<std::size_t>(rank)];
  require(
      bytes <= range_->layout().quarter(), Status::no_resource,
      fmt::format("no room for {} bytes in a slot of 2^{}: raise BEELINE_SLOT_SHIFT", bytes, range_->layout().shift));
  const std::size_t rounded = AddressRange::device_bytes(bytes);
  return {segments_of(rank, device) + (device ? placement.device : placement.host).allocate(rounded), rounded, device};
}

void NodeMemory::remove(int rank, const Part& part) {
  if (part.bytes == 0) return;
  Placement& placement = placements_[static_cast<std::size_t>(rank)];
  (part.device ? placement.device : placement.host)
      .free(static_cast<std::size_t>(part.address - segments_of(rank, part.device)));
  range_->unmap(part.address, deadline_ns_);
}

const Segment& NodeMemory::create_segment(MemoryKind kind, std::size_t bytes) {
  struct Request {
    MemoryKind kind;
    std::size_t bytes;
  };
  const auto requests = allgather_values<Request>(bootstrap_, {kind, bytes}, deadline_ns_);
  Segment segment{next_segment_++, {}};
  std::vector<Part> parts;
  try {
    for (int rank = 0; rank < bootstrap_.size(); ++rank) {
      const Request& request = requests[static_cast<std::size_t>(rank)];
      parts.push_back(place(rank, request.kind, request.bytes));
      segment.parts.push_back({request.kind, request.bytes, parts.back().address});
    }
    share(parts);
  } catch (...) {  // every rank throws here, and frees the same addresses
    for (std::size_t rank = 0; rank < parts.size(); ++rank) remove(static_cast<int>(rank), parts[rank]);
    throw;
  }
  list(segment, true);
  return segments_[segment.id] = std::move(segment);
}

void NodeMemory::list(const Segment& segment, bool exists) {
  const std::unique_lock lock(listing_);
  for (const SegmentPart& part : segment.parts) {
    if (part.bytes == 0) continue;
    if (exists)
      part_bytes_[part.address] = part.bytes;
    else
      part_bytes_.erase(part.address);
  }
}

std::size_t NodeMemory::room_in_segment(const void* address) const {
  const auto* const at = static_cast<const std::byte*>(address);
  const std::shared_lock lock(listing_);
  auto part = part_bytes_.upper_bound(at);
  if (part == part_bytes_.begin()) return 0;
  --part;
  const auto offset = static_cast<std::size_t>(at - part->first);
  return offset < part->second ? part->second - offset : 0;
}

void NodeMemory::align_segments() {
  std::vector<OffsetAllocator*> allocators;
  for (Placement& placement : placements_) {
    allocators.push_back(&placement.device);
    allocators.push_back(&placement.host);
  }
  unite_allocators(bootstrap_, allocators, deadline_ns_);
  for (const std::uint32_t next : allgather_values(bootstrap_, next_segment_, deadline_ns_))
    next_segment_ = std::max(next_segment_, next);
}

void NodeMemory::destroy_segment(std::uint32_t id) {
  const auto segment = segments_.find(id);
  require(segment != segments_.end(), Status::invalid_argument, fmt::format("segment {} does not exist", id));
  const std::uint64_t mine = std::uint64_t{id} + 1;  // 0 is the value of ranks that have failed or left
  const auto all = allgather_values(bootstrap_, mine, deadline_ns_);  // after this no rank uses the segment
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    require(all[rank] == 0 || all[rank] == mine, Status::invalid_argument,
            fmt::format("ranks destroy different segments: rank {} segment {}, rank {} segment {}", bootstrap_.rank(),
                        id, rank, all[rank] - 1));
  list(segment->second, false);
  for (int rank = 0; rank < bootstrap_.size(); ++rank) {
    const SegmentPart& part = segment->second.parts[static_cast<std::size_t>(rank)];
    const bool device = part.kind == MemoryKind::device && members_[static_cast<std::size_t>(rank)].gpu >= 0;
    remove(rank, {part.address, part.bytes, device});
  }
  segments_.erase(segment);
  bootstrap_.barrier(deadline_ns_);
}

}  // namespace beeline
