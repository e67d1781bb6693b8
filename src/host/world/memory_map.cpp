// SPDX-License-Identifier: Apache-2.0
#include "host/world/memory_map.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cstring>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "core/default_heap.hpp"
#include "memory/agreement.hpp"
#include "memory/memory_limits.hpp"

namespace beeline {

namespace {

Areas areas_of(const NodeMemory& memory, const Membership& membership) {
  std::vector<std::byte*> heaps, host_areas;
  for (const int rank : membership.everyone())
    heaps.push_back(memory.heap(rank)), host_areas.push_back(memory.host_area(rank));
  return {membership.rank(), memory.range().layout(), std::move(heaps), std::move(host_areas)};
}

/// Sizes of the heaps with their headers.
MemorySizes sizes_of(const Config& config) {
  return {config.slot_shift, config.heap_bytes + aligned(sizeof(HeapHeader)),
          config.pinned_heap_bytes + aligned(sizeof(HostAreaHeader))};
}

/// Enlarges the slots for large heaps, and reduces them if those of many ranks would not fit the address space.
void fit_slots(Config& config, int rank, int ranks) {
  if (config.slot_shift < min_slot_shift || config.slot_shift > max_slot_shift) return;  // refused elsewhere
  const std::uint32_t fitted = fitted_slot_shift(sizes_of(config), ranks);
  if (fitted != config.slot_shift)
    log(LogLevel::info,
        fmt::format("slots of 2^{} bytes instead of 2^{}: {}", fitted, config.slot_shift,
                    fitted > config.slot_shift
                        ? "the heaps need them"
                        : fmt::format("those of {} ranks would not fit the address space", ranks)),
        rank);
  config.slot_shift = fitted;
}

/// Refuses heaps that cannot fit host memory. Host memory is allocated at the first touch, and a process that exceeds
/// its limit is killed then.
void check_host_memory(const Config& config, const Membership& membership, bool has_chosen_heaps) {
  const MemoryLimit limit = host_memory_limit();
  const std::vector<int>& local = membership.local_ranks();
  const auto on_host = static_cast<std::size_t>(
      std::count_if(local.begin(), local.end(), [&](int each) { return !membership.of(each).device.is_gpu(); }));
  require(!has_chosen_heaps || on_host == 0 || config.heap_bytes <= limit.bytes / on_host, Status::no_resource,
          fmt::format("symmetric heaps of {} bytes for {} host ranks are more than {}, {} bytes: lower "
                      "BEELINE_HEAP_BYTES, or start fewer ranks",
                      config.heap_bytes, on_host, limit.name, limit.bytes));
  require(config.pinned_heap_bytes <= limit.bytes, Status::no_resource,
          fmt::format("a pinned heap of {} bytes is more than {}, {} bytes: lower BEELINE_PINNED_HEAP_BYTES",
                      config.pinned_heap_bytes, limit.name, limit.bytes));
}

}  // namespace

MemoryMap::MemoryMap(Bootstrap& bootstrap, const Config& config, const Membership& membership, std::uint64_t secret,
                     std::vector<MemoryMember> members)
    : node_(bootstrap, secret, members, sizes_of(config), config.deadline_ns),
      aliases_(node_.range().layout(), membership.spans_nodes()),
      distributed_(bootstrap, node_.range(), aliases_, members, config.deadline_ns),
      registration_(bootstrap, node_.range(), aliases_, std::move(members), config.deadline_ns),
      areas_(areas_of(node_, membership)),
      heaps_(areas_, config.heap_bytes, config.pinned_heap_bytes, checks_.allocations, !membership.device().is_gpu()) {
  addresses_.open(node_.range().base(), config.slot_shift, static_cast<std::uint32_t>(membership.size()));
  for (const int other : membership.local_ranks()) checks_.mapped.set(static_cast<std::size_t>(other));
  for (int rank = 0; rank < membership.size(); ++rank)
    checks_.on_gpus.set(static_cast<std::size_t>(rank), membership.of(rank).device.is_gpu());
}

std::byte* MemoryMap::named_in_slot(void* address) const {
  if (addresses_.is_in_slot(address)) return static_cast<std::byte*>(address);
  const auto owner = static_cast<int>(addresses_.owner_of(address));
  return node_.range().slot(owner) + aliases_.offset_in_array(address);
}

void agree_on_sizes(Bootstrap& bootstrap, Config& config, const Membership& membership) {
  const int rank = membership.rank();
  const bool all_gpus = std::all_of(membership.all().begin(), membership.all().end(),
                                    [](const Member& each) { return each.device.is_gpu(); });
  const bool is_chosen = config.heap_bytes != 0;  // the default heap need not fit as a whole
  if (!is_chosen) config.heap_bytes = all_gpus ? default_gpu_heap_bytes : default_host_heap_bytes;
  fit_slots(config, rank, membership.size());
  const std::string mine = fmt::format("{} {} {}", config.heap_bytes, config.pinned_heap_bytes, config.slot_shift);
  const auto all = allgather_text(bootstrap, mine, config.deadline_ns);
  for (std::size_t other = 0; other < all.size(); ++other)
    require(all[other] == mine, Status::invalid_argument,
            fmt::format("rank {} has heap, pinned heap, slot shift {}, rank {} has {}: they must agree", rank, mine,
                        other, all[other]));
  fail_together(bootstrap, problem_of([&] { check_host_memory(config, membership, is_chosen); }), config.deadline_ns);
}

std::uint64_t agree_on_secret(Bootstrap& bootstrap, std::int64_t deadline_ns) {
  std::uint64_t mine = 0;
  require(getrandom(&mine, sizeof mine, 0) == sizeof mine, Status::internal, "getrandom failed");
  const auto all = bootstrap.allgather(std::as_bytes(std::span(&mine, 1)), deadline_ns);
  std::uint64_t first = 0;
  std::memcpy(&first, all.front().data(), sizeof first);
  return first;
}

}  // namespace beeline
