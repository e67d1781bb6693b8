// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/segment_mappings.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "host/world/membership.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"
#include "memory/gpu_pointers.hpp"

namespace beeline {

namespace {

constexpr std::size_t most_mapped_ranks = detail::most_mapping_members, segments = SegmentMappings::most_segments;

/// During a capture memory is neither published nor mapped, since CUDA forbids the calls.
constexpr const char* not_known_to_graph = "the ranks had not mapped it when a graph captured the call";

/// A segment as its owner publishes it. The generation is written last; 0: no segment.
struct SegmentOffer {
  std::uint64_t generation, start;
  SegmentMemory::Handle handle;
};

/// The address at which a rank has mapped a peer's segment of this generation; address 0: it cannot.
struct Seen {
  std::uint64_t generation, address;
};

/// A rank's board, written by that rank and read by all.
struct Board {
  std::uint64_t changes;  ///< number of changes of `offers`
  SegmentOffer offers[segments];
  Seen seen[most_mapped_ranks][segments];  ///< by owner
};

std::uint64_t read(std::uint64_t& word) {
  return detail::SystemAtomic<std::uint64_t>(word).load(std::memory_order_acquire);
}
void write(std::uint64_t& word, std::uint64_t value) {
  detail::SystemAtomic<std::uint64_t>(word).store(value, std::memory_order_release);
}

/// Memory from cudaMalloc, shared by CUDA IPC.
class CudaSegments final : public SegmentMemory {
 public:
  explicit CudaSegments(World& world)
      : routes_(world_part<Routes>(world)), membership_(world_part<Membership>(world)), gpu_(world.device().index) {}

  std::uint64_t id_at(std::uintptr_t address) const override {
    return gpu_memory::allocation_id(reinterpret_cast<void*>(address), gpu_);
  }
  Segment segment_at(std::uintptr_t address) const override {
    const gpu_memory::Allocation found = gpu_memory::allocation_at(reinterpret_cast<void*>(address), gpu_);
    return {found.start, found.bytes, found.id};
  }
  Handle share(std::uintptr_t start) const override {
    return gpu_memory::export_ipc(reinterpret_cast<void*>(start), gpu_).bytes;
  }
  std::uintptr_t open(int owner, std::uintptr_t start, const Handle& handle) override {
    const Route route = routes_.to_gpu_of(owner);
    require(route.is_direct(), Status::unreachable, std::string(route.reason));
    if (!membership_.shares_process(owner))
      return reinterpret_cast<std::uintptr_t>(gpu_memory::open_ipc({.bytes = handle, .offset = 0}, gpu_));
    require(gpu_memory::enable_peer(gpu_, membership_.of(owner).device.index), Status::unreachable, "no peer access");
    return start;
  }
  void close(int owner, std::uintptr_t address) override {
    if (!membership_.shares_process(owner)) gpu_memory::close_ipc(reinterpret_cast<std::byte*>(address), gpu_);
  }

 private:
  const Routes& routes_;
  const Membership& membership_;
  const int gpu_;
};

}  // namespace

class SegmentMappings::Implementation {
 public:
  Implementation(World& world, std::unique_ptr<SegmentMemory> memory)
      : world_(world), memory_(std::move(memory)), boards_(world, 1, Heap::pinned) {
    if (memory_ == nullptr && world.device().is_gpu()) memory_ = std::make_unique<CudaSegments>(world);
    std::memset(static_cast<void*>(boards_.data()), 0, sizeof(Board));
    world.barrier();
  }
  ~Implementation() {
    for (std::size_t owner = 0; owner < most_mapped_ranks; ++owner)
      for (Mapping& mapping : mappings_[owner]) close(owner, mapping);
  }

  detail::VectorMappings find(Team& team, Vector destination, Vector source, bool is_captured) {
    const std::lock_guard lock(mutex_);
    detail::VectorMappings found{};
    reason_.clear();
    is_captured_ = is_captured;
    latest_ = 0;
    if (!is_captured_) look_at_peers();
    const bool reaches_destination = add(team, destination, found.destination);
    found.complete = add(team, source, found.source) && reaches_destination;
    if (!is_captured_) look_at_one_segment();
    return found;
  }

  std::string reason() {
    const std::lock_guard lock(mutex_);
    return reason_;
  }

 private:
  /// A segment of this rank.
  struct Segment {
    std::size_t bytes = 0, entry = segments;  ///< of the board; `segments`: not published, for `reason`
    std::uint64_t id = 0, generation = 0;
    std::array<std::uint64_t, most_mapped_ranks> addresses{};  ///< the ranks' mappings; 0: not known
    std::string reason;
  };
  using Segments = std::map<std::uint64_t, Segment>;  ///< by start

  /// The mapping of a peer's segment in this process.
  struct Mapping {
    std::uint64_t generation = 0;
    std::uint64_t address = 0;
  };

  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(world_.rank()); }
  [[nodiscard]] Board& board(std::size_t of) const { return *boards_.at(static_cast<int>(of)); }
  [[nodiscard]] bool shares_process(std::size_t other) const {
    return world_part<Membership>(world_).shares_process(static_cast<int>(other));
  }

  /// Computes the distances from a vector to its mappings; false unless all members have mapped it.
  bool add(Team& team, Vector vector, std::int64_t (&distances)[most_mapped_ranks]) {
    const Context& ctx = team.context();
    if (vector.bytes == 0 || ctx.owner_of(vector.at) == ctx.own_world_rank) return true;
    const auto at = reinterpret_cast<std::uint64_t>(vector.at);
    const auto found = memory_ == nullptr ? segments_.end() : segment_of(at, vector.bytes);
    bool complete = true;
    for (int member = 0; member < team.size(); ++member) {
      const auto other = static_cast<std::size_t>(team.world_rank(member));
      if (other == rank()) continue;
      if (memory_ == nullptr) {
        if (!shares_process(other)) reason_ = "private memory of another process";
        complete = complete && shares_process(other);
        continue;
      }
      const std::uint64_t address = found == segments_.end() ? 0 : address_on(other, found->second);
      complete = complete && address != 0;
      if (address != 0) distances[member] = static_cast<std::int64_t>(address - found->first);
    }
    return complete;
  }

  /// The address at which a rank has mapped the segment; 0: not mapped, or not yet.
  std::uint64_t address_on(std::size_t other, Segment& segment) {
    if (segment.addresses[other] != 0 || segment.entry == segments) return segment.addresses[other];
    Seen& seen = board(other).seen[rank()][segment.entry];
    if (read(seen.generation) != segment.generation) {
      if (is_captured_) reason_ = not_known_to_graph;
      return 0;
    }
    segment.addresses[other] = seen.address;
    if (seen.address == 0) reason_ = fmt::format("rank {} cannot map rank {}'s memory", other, rank());
    return seen.address;
  }

  /// This rank's segment that holds a vector; a new segment is published. The end iterator: no segment holds it.
  Segments::iterator segment_of(std::uint64_t at, std::size_t bytes) {
    auto found = segments_.upper_bound(at);
    if (found != segments_.begin() && at < std::prev(found)->first + std::prev(found)->second.bytes) {
      --found;
      if (found->first == latest_ || memory_->id_at(at) == found->second.id) {
        latest_ = found->first;
      } else {
        withdraw(found);
        found = segments_.end();
      }
    } else {
      found = segments_.end();
    }
    if (found == segments_.end() && is_captured_) reason_ = not_known_to_graph;
    if (found == segments_.end() && !is_captured_) found = show(at);
    if (found == segments_.end()) return found;
    if (at + bytes > found->first + found->second.bytes) {
      reason_ = "it lies in several allocations, as expandable segments do";
      return segments_.end();
    }
    if (!found->second.reason.empty()) reason_ = found->second.reason;
    return found;
  }

  Segments::iterator show(std::uint64_t at) {
    const SegmentMemory::Segment found = memory_->segment_at(at);
    if (found.bytes == 0) {
      reason_ = "it is in no allocation of this GPU's memory";
      return segments_.end();
    }
    for (auto old = segments_.begin(); old != segments_.end();) {  // segments whose memory was freed
      const auto next = std::next(old);
      if (old->first < found.start + found.bytes && found.start < old->first + old->second.bytes) withdraw(old);
      old = next;
    }
    Segment segment;
    segment.bytes = found.bytes, segment.id = found.id;
    try {
      const SegmentMemory::Handle handle = memory_->share(found.start);
      const std::size_t entry = free_entry();
      if (entry == segments) {
        reason_ = fmt::format("{} segments are mapped, or wait for peers to close them", segments);
        return segments_.end();
      }
      SegmentOffer& offer = board(rank()).offers[entry];
      offer.start = found.start, offer.handle = handle;
      segment.entry = entry, segment.generation = ++generation_;
      write(offer.generation, segment.generation);
      publish_change();
    } catch (const Error& error) {
      segment.reason = error.what();
    }
    return segments_.insert_or_assign(found.start, std::move(segment)).first;
  }

  /// An index on the board that no peer's mapping uses.
  [[nodiscard]] std::size_t free_entry() const {
    for (std::size_t entry = 0; entry < segments; ++entry) {
      bool free = board(rank()).offers[entry].generation == 0;
      for (int other = 0; free && other < world_.size(); ++other)
        free = read(board(static_cast<std::size_t>(other)).seen[rank()][entry].generation) == 0;
      if (free) return entry;
    }
    return segments;
  }

  void withdraw(Segments::iterator found) {
    if (found->second.entry != segments) {
      write(board(rank()).offers[found->second.entry].generation, 0);
      publish_change();
    }
    segments_.erase(found);
  }

  void publish_change() { write(board(rank()).changes, board(rank()).changes + 1); }

  /// Withdraws the next segment in turn if its memory was freed.
  void look_at_one_segment() {
    auto found = segments_.upper_bound(looked_at_);
    if (found == segments_.end()) found = segments_.begin();
    if (found == segments_.end()) return;
    looked_at_ = found->first;
    if (looked_at_ != latest_ && memory_->id_at(looked_at_) != found->second.id) withdraw(found);
  }

  /// Maps segments that peers have newly published, and closes mappings of segments that peers have withdrawn.
  void look_at_peers() {
    for (std::size_t owner = 0; owner < static_cast<std::size_t>(world_.size()); ++owner) {
      if (owner == rank() || memory_ == nullptr) continue;
      const std::uint64_t changes = read(board(owner).changes);
      if (changes == changes_[owner]) continue;
      changes_[owner] = changes;
      for (std::size_t entry = 0; entry < segments; ++entry) follow(owner, entry);
    }
  }

  void follow(std::size_t owner, std::size_t entry) {
    SegmentOffer& offer = board(owner).offers[entry];
    Seen& seen = board(rank()).seen[owner][entry];
    Mapping& mapping = mappings_[owner][entry];
    const std::uint64_t generation = read(offer.generation);
    if (generation == mapping.generation) return;
    close(owner, mapping);
    write(seen.generation, 0);
    if (generation == 0) return;
    const std::uint64_t start = offer.start;
    const SegmentMemory::Handle handle = offer.handle;
    if (read(offer.generation) != generation) return;  // it is changing; a later call will read it
    try {
      mapping.address = memory_->open(static_cast<int>(owner), start, handle);
    } catch (const Error& error) {
      log(LogLevel::info, fmt::format("rank {}'s segment at {:#x}: {}", owner, start, error.what()), world_.rank());
    }
    mapping.generation = generation;
    seen.address = mapping.address;
    write(seen.generation, generation);
  }

  void close(std::size_t owner, Mapping& mapping) {
    if (mapping.address != 0) memory_->close(static_cast<int>(owner), mapping.address);
    mapping = {};
  }

  World& world_;
  std::unique_ptr<SegmentMemory> memory_;
  SymmetricArray<Board> boards_;
  std::mutex mutex_;
  Segments segments_;
  std::uint64_t generation_ = 0, looked_at_ = 0;
  std::array<std::array<Mapping, segments>, most_mapped_ranks> mappings_;
  std::array<std::uint64_t, most_mapped_ranks> changes_{};
  bool is_captured_ = false;  ///< the current call is captured
  std::uint64_t latest_ = 0;  ///< start of the segment that this call has verified; 0: none
  std::string reason_;
};

SegmentMappings::SegmentMappings(World& world, std::unique_ptr<SegmentMemory> memory) {
  require(static_cast<std::size_t>(world.size()) <= most_mapped_ranks, Status::invalid_argument,
          fmt::format("{} ranks map each other's memory: at most {}", world.size(), most_mapped_ranks));
  implementation_ = detail::TeamOwned<Implementation>(new Implementation(world, std::move(memory)),
                                                      detail::DeleteWithTeam{world.life()});
}
SegmentMappings::~SegmentMappings() = default;

detail::VectorMappings SegmentMappings::find(Team& team, Vector destination, Vector source, bool is_captured) {
  return implementation_->find(team, destination, source, is_captured);
}
std::string SegmentMappings::reason() const { return implementation_->reason(); }

}  // namespace beeline
