// SPDX-License-Identifier: Apache-2.0
#include "memory/distributed_memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <type_traits>

#include "beeline/core/error.hpp"
#include "memory/agreement.hpp"

namespace beeline {

namespace {

/// Each chunk is a mapping of its own in every process, and the system limits the number of mappings. A chunk in device
/// memory is also an allocation and a descriptor of its own.
constexpr std::size_t most_host_chunks = 16384, most_device_chunks = 512;

std::size_t whole_multiple(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

const char* text(MemoryKind kind) {
  return kind == MemoryKind::device ? "device" : kind == MemoryKind::pinned ? "pinned" : "host";
}

std::string describe(const DistributedRequest& request) {
  return fmt::format("{} bytes in chunks of {} of {} memory", request.bytes,
                     request.chunk_bytes == 0 ? "equal size" : fmt::format("{} bytes", request.chunk_bytes),
                     text(request.kind));
}

}  // namespace

bool DistributedMemory::in_device_memory(int rank, MemoryKind kind) const {
  return kind == MemoryKind::device && members_[static_cast<std::size_t>(rank)].gpu >= 0;
}

std::vector<DistributedMemory::Proposal> DistributedMemory::exchange(const DistributedRequest& request) {
  Proposal mine{request, 1, used()};
  static_assert(std::is_trivially_copyable_v<Proposal>);
  const auto all = allgather_values(bootstrap_, mine, deadline_ns_);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const DistributedRequest& theirs = all[rank].request;
    require(all[rank].calls == 0 || (theirs.bytes == request.bytes && theirs.chunk_bytes == request.chunk_bytes &&
                                     theirs.kind == request.kind),
            Status::invalid_argument,
            fmt::format("distributed arrays differ: rank {} asks for {}, rank {} for {}", bootstrap_.rank(),
                        describe(request), rank, describe(theirs)));
  }
  require(request.bytes > 0, Status::invalid_argument, "a distributed array of no bytes");
  return all;
}

DistributedMemory::Places DistributedMemory::used() const {
  Places places;
  for (const auto& [first, table] : arrays_) {
    const std::size_t count = (table.bytes + place_bytes() - 1) / place_bytes();
    for (std::size_t place = first; place < first + count; ++place) places.set(place);
  }
  return places;
}

/// The first free run of places. It is the same on every rank, even if a failure has left ranks with different arrays.
std::uint32_t DistributedMemory::find_place(const std::vector<Proposal>& all, std::size_t bytes) const {
  Places taken;
  for (const Proposal& each : all) taken |= each.used;
  const std::size_t count = (bytes + place_bytes() - 1) / place_bytes();
  std::size_t run = 0;
  for (std::size_t place = 0; place < array_places; ++place) {
    run = taken.test(place) ? 0 : run + 1;
    if (run == count) return static_cast<std::uint32_t>(place + 1 - count);
  }
  throw Error(
      Status::no_resource,
      fmt::format("no place for a distributed array of {} bytes: of {} places of {} bytes, {} are taken and no {} "
                  "in a row are free; free arrays, or, if they are large, raise BEELINE_SLOT_SHIFT",
                  bytes, array_places, place_bytes(), taken.count(), count),
      bootstrap_.rank());
}

ChunkTable DistributedMemory::plan(const DistributedRequest& request, const std::vector<Proposal>& all) const {
  ChunkTable table{};
  bool device = false;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].calls == 0) continue;
    require(table.owner_count < max_node_ranks, Status::unavailable,
            fmt::format("a distributed array over more than {} ranks", max_node_ranks));
    table.owners[table.owner_count++] = static_cast<std::uint16_t>(rank);
    device = device || in_device_memory(static_cast<int>(rank), request.kind);
  }
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t granularity = device ? AddressRange::device_bytes(1) : page;
  const std::size_t most = place_bytes() * array_places;
  require(request.bytes <= most && request.chunk_bytes <= most, Status::no_resource,
          fmt::format("a distributed array of {}: the address range has {} bytes for them; raise BEELINE_SLOT_SHIFT",
                      describe(request), most));
  const std::size_t wanted = request.chunk_bytes == 0 ? (request.bytes + table.owner_count - 1) / table.owner_count
                                                      : std::min(request.chunk_bytes, request.bytes);
  table.chunk_pages = static_cast<std::uint32_t>(whole_multiple(wanted, granularity) >> ChunkTable::page_shift);
  table.bytes = request.bytes;
  const std::size_t count = (request.bytes + table.chunk_bytes() - 1) / table.chunk_bytes();
  const std::size_t limit = device ? most_device_chunks : most_host_chunks;
  require(count <= limit, Status::invalid_argument,
          fmt::format("{} chunks of {} bytes; at most {}: make them larger", count, table.chunk_bytes(), limit));
  const std::uint32_t place = find_place(all, request.bytes);
  table.base = reinterpret_cast<std::uintptr_t>(range_.slot(bootstrap_.size())) + place * place_bytes();
  return table;
}

std::vector<DistributedMemory::Chunk> DistributedMemory::chunks_of(const ChunkTable& table, MemoryKind kind) const {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<Chunk> chunks;
  std::vector<std::size_t> ends(members_.size());  // bytes of each owner's memory used so far
  for (std::size_t start = 0; start < table.bytes; start += table.chunk_bytes()) {
    const auto owner = static_cast<int>(table.owner_at(start));
    const bool device = in_device_memory(owner, kind);
    const std::size_t bytes = whole_multiple(std::min<std::size_t>(table.chunk_bytes(), table.bytes - start),
                                             device ? AddressRange::device_bytes(1) : page);
    std::size_t& end = ends[static_cast<std::size_t>(owner)];
    chunks.push_back({reinterpret_cast<std::byte*>(table.base) + start, bytes, owner, end, device});
    end += bytes;
  }
  return chunks;
}

ChunkTable DistributedMemory::create(const DistributedRequest& request) {
  const ChunkTable table = plan(request, exchange(request));
  const std::vector<Chunk> chunks = chunks_of(table, request.kind);
  try {
    share(chunks);
    if (aliases_.is_used()) aliases_.open(table);
  } catch (...) {  // every rank throws here, and frees the same addresses
    remove(chunks);
    throw;
  }
  const std::uint32_t place = place_of(table.base);
  kinds_[place] = request.kind;
  return arrays_[place] = table;
}

void DistributedMemory::share(const std::vector<Chunk>& chunks) {
  const int rank = bootstrap_.rank();
  FileDescriptor host;
  std::vector<FileDescriptor> device;
  fail_together(bootstrap_, problem_of([&] {
                  std::size_t host_bytes = 0;
                  for (const Chunk& chunk : chunks) {
                    if (chunk.owner != rank) continue;
                    if (chunk.device)
                      device.push_back(range_.create_device(chunk.address, chunk.bytes,
                                                            members_[static_cast<std::size_t>(rank)].gpu, rank));
                    else
                      host_bytes = chunk.offset + chunk.bytes;
                  }
                  if (host_bytes > 0) host = AddressRange::make_host(host_bytes);
                }),
                deadline_ns_);
  share_host(chunks, host.get());
  share_device(chunks, device);
}

void DistributedMemory::share_host(const std::vector<Chunk>& chunks, int descriptor) {
  if (std::all_of(chunks.begin(), chunks.end(), [](const Chunk& chunk) { return chunk.device; })) return;
  std::vector<std::shared_ptr<const FileDescriptor>> descriptors;
  for (FileDescriptor& theirs : bootstrap_.exchange_descriptors(descriptor, deadline_ns_))
    descriptors.push_back(std::make_shared<const FileDescriptor>(std::move(theirs)));
  fail_together(bootstrap_, problem_of([&] {
                  for (const Chunk& chunk : chunks)
                    if (!chunk.device && is_local(chunk.owner))
                      range_.map_host_piece(chunk.address, chunk.bytes,
                                            descriptors[static_cast<std::size_t>(chunk.owner)], chunk.offset);
                }),
                deadline_ns_);
}

/// Exchanges a descriptor for each chunk: in each round every rank shares its next chunk.
void DistributedMemory::share_device(const std::vector<Chunk>& chunks, const std::vector<FileDescriptor>& mine) {
  std::vector<std::vector<const Chunk*>> by_owner(members_.size());
  std::size_t rounds = 0;
  for (const Chunk& chunk : chunks) {
    if (!chunk.device) continue;
    auto& theirs = by_owner[static_cast<std::size_t>(chunk.owner)];
    theirs.push_back(&chunk);
    rounds = std::max(rounds, theirs.size());
  }
  if (rounds == 0) return;
  Problem problem;
  for (std::size_t round = 0; round < rounds; ++round) {
    const int next = round < mine.size() ? mine[round].get() : -1;
    const auto descriptors = bootstrap_.exchange_descriptors(next, deadline_ns_);
    if (problem.code != Status::ok) continue;
    problem = problem_of([&] {
      for (std::size_t owner = 0; owner < by_owner.size(); ++owner)
        if (owner != static_cast<std::size_t>(bootstrap_.rank()) && is_local(static_cast<int>(owner)) &&
            round < by_owner[owner].size())
          range_.map_device(by_owner[owner][round]->address, by_owner[owner][round]->bytes, descriptors[owner],
                            static_cast<int>(owner));
    });
  }
  fail_together(bootstrap_, problem, deadline_ns_);
}

void DistributedMemory::remove(const std::vector<Chunk>& chunks) {
  for (const Chunk& chunk : chunks)
    if (is_local(chunk.owner)) range_.unmap(chunk.address, deadline_ns_);
}

std::uint32_t DistributedMemory::place_of(std::uintptr_t base) const {
  const auto start = reinterpret_cast<std::uintptr_t>(range_.slot(bootstrap_.size()));
  return static_cast<std::uint32_t>((base - start) / place_bytes());
}

void DistributedMemory::free(std::uintptr_t base) {
  const std::uint32_t place = place_of(base);
  struct Which {
    std::uint32_t place;
    std::uint8_t calls, holds;
  };
  const auto held = arrays_.find(place);
  const bool holds = held != arrays_.end() && held->second.base == base;
  const auto all = allgather_values<Which>(bootstrap_, {place, 1, holds}, deadline_ns_);
  // After this no rank uses the array.
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    require(all[rank].calls == 0 || (all[rank].place == place && all[rank].holds != 0), Status::invalid_argument,
            fmt::format("ranks free different distributed arrays: rank {} the one at place {}, rank {} {}",
                        bootstrap_.rank(), place, rank,
                        all[rank].holds == 0 ? "none that it has" : fmt::format("that at {}", all[rank].place)));
  remove(chunks_of(held->second, kinds_[place]));
  if (aliases_.is_used()) aliases_.close_array(base);
  arrays_.erase(held);
  kinds_.erase(place);
  bootstrap_.barrier(deadline_ns_);  // no thread of this process reuses the place before all have left this array
}

}  // namespace beeline
