// SPDX-License-Identifier: Apache-2.0
// How segments are published, closed and mapped again, with memory that is not really allocated: ranks are threads, and
// addresses are numbers that are never dereferenced.
#include "beeline/host/segment_mappings.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "beeline/core/error.hpp"
#include "tests/support/check.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test::segment_mappings_test {

namespace {

using namespace beeline;

constexpr int ranks = 3;
constexpr std::uintptr_t first = std::uintptr_t{1} << 56;  // outside every world
constexpr std::size_t bytes = 4096;

/// The segments that the ranks have allocated, and which of them they have mapped.
class Machine {
 public:
  void allocate(int rank, std::uintptr_t start, std::size_t size) {
    const std::lock_guard lock(mutex_);
    segments_[{rank, start}] = {start, size, ++ids_};
  }
  void free(int rank, std::uintptr_t start) {
    const std::lock_guard lock(mutex_);
    segments_.erase({rank, start});
  }
  SegmentMemory::Segment at(int rank, std::uintptr_t address) {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, segment] : segments_)
      if (key.first == rank && segment.start <= address && address < segment.start + segment.bytes) return segment;
    return {};
  }
  /// The address at which `rank` maps a segment: different for each rank and segment.
  std::uintptr_t open(int rank, int owner, std::uintptr_t start) {
    const std::lock_guard lock(mutex_);
    if (refusing == rank) throw Error(Status::unreachable, "another container");
    const auto segment = segments_.find({owner, start});
    if (segment == segments_.end()) throw Error(Status::unreachable, "it was freed");
    const std::uintptr_t address = first * 2 + segment->second.id * (bytes << 20) + static_cast<unsigned>(rank) * bytes;
    opened_[{rank, address}] = owner;
    return address;
  }
  void close(int rank, std::uintptr_t address) {
    const std::lock_guard lock(mutex_);
    BEELINE_CHECK(opened_.erase({rank, address}) == 1);
  }
  std::size_t opened() {
    const std::lock_guard lock(mutex_);
    return opened_.size();
  }
  std::uintptr_t seen_by(int rank, int owner, std::uintptr_t start) {
    return at(owner, start).id * (bytes << 20) + first * 2 + static_cast<unsigned>(rank) * bytes;
  }

  int refusing = -1;

 private:
  std::mutex mutex_;
  std::uint64_t ids_ = 0;
  std::map<std::pair<int, std::uintptr_t>, SegmentMemory::Segment> segments_;
  std::map<std::pair<int, std::uintptr_t>, int> opened_;
};

/// One rank's view of the machine.
class Memory final : public SegmentMemory {
 public:
  Memory(Machine& machine, int rank) : machine_(machine), rank_(rank) {}
  std::uint64_t id_at(std::uintptr_t address) const override { return machine_.at(rank_, address).id; }
  Segment segment_at(std::uintptr_t address) const override { return machine_.at(rank_, address); }
  Handle share(std::uintptr_t) const override { return {}; }
  std::uintptr_t open(int owner, std::uintptr_t start, const Handle&) override {
    return machine_.open(rank_, owner, start);
  }
  void close(int, std::uintptr_t address) override { machine_.close(rank_, address); }

 private:
  Machine& machine_;
  const int rank_;
};

SegmentMappings::Vector vector_at(std::uintptr_t address, std::size_t size = 64) {
  return {reinterpret_cast<void*>(address), size};
}

/// Runs `body(world, mappings, find)`. `find(address)` is a call of all ranks: it returns whether all ranks have mapped
/// this rank's vector at the address, and checks that they agree.
template <class Body>
void with_mappings(Machine& machine, const Body& body) {
  expect_passed_on_cpus(ranks, [&](World& world) {
    SegmentMappings mappings(world, std::make_unique<Memory>(machine, world.rank()));
    const auto find = [&](std::uintptr_t address) {
      world.barrier();
      const detail::VectorMappings found = mappings.find(world, vector_at(address), {});
      world.barrier();
      const std::uintptr_t start = machine.at(world.rank(), address).start;
      for (int peer = 0; found.complete && peer < ranks; ++peer)
        if (peer != world.rank())
          BEELINE_CHECK_EQ(machine.seen_by(peer, world.rank(), start) - start,
                           static_cast<std::uintptr_t>(found.destination[peer]));
      return found.complete;
    };
    body(world, mappings, find);
    world.barrier();  // no rank closes what another still counts
  });
  EXPECT_EQ(0u, machine.opened());  // all ranks have closed what they had mapped
}

/// The first call publishes a segment, and the others map it in the second at the latest, so that all have it in the
/// third. `before`: calls until an entry is free.
template <class Find>
void expect_known_in_the_third(const Find& find, std::uintptr_t address, int before = 0) {
  for (int call = 0; call < before + 2; ++call) static_cast<void>(find(address));
  for (unsigned call = 0; call < 3; ++call) BEELINE_CHECK(find(address + 500 * call));
}

TEST(SegmentMappings, SegmentsBecomeKnown) {
  Machine machine;
  with_mappings(machine, [&](World& world, SegmentMappings& mappings, const auto& find) {
    machine.allocate(world.rank(), first, bytes);
    expect_known_in_the_third(find, first);
    BEELINE_CHECK_EQ(std::string(), mappings.reason());
    machine.allocate(world.rank(), first + bytes, bytes);
    expect_known_in_the_third(find, first + bytes);
    BEELINE_CHECK(find(first));
  });
}

/// A segment at the address of a freed one, or one that begins elsewhere, is not taken for the freed segment.
TEST(SegmentMappings, AnotherSegmentAtTheSameAddressIsMappedAnew) {
  Machine machine;
  with_mappings(machine, [&](World& world, SegmentMappings&, const auto& find) {
    for (unsigned i = 1; i <= 4; ++i) {  // most checks whether a segment still exists concern these
      machine.allocate(world.rank(), first + i * bytes, bytes);
      static_cast<void>(find(first + i * bytes));
    }
    for (const std::uintptr_t start : {first, first, first - bytes / 2, first}) {
      machine.allocate(world.rank(), start, bytes);
      expect_known_in_the_third(find, first);
      world.barrier();
      machine.free(world.rank(), start);
    }
  });
}

/// Peers close freed segments, even if their addresses are not used again.
TEST(SegmentMappings, FreedSegmentsAreClosedInTheNextCalls) {
  constexpr unsigned freed = 5;
  Machine machine;
  with_mappings(machine, [&](World& world, SegmentMappings&, const auto& find) {
    for (unsigned i = 0; i <= freed; ++i) machine.allocate(world.rank(), first + i * bytes, bytes);
    for (unsigned call = 0; call < 3; ++call)
      for (unsigned i = 0; i <= freed; ++i) find(first + i * bytes);
    BEELINE_CHECK_EQ(std::size_t{ranks * (ranks - 1) * (freed + 1)}, machine.opened());
    world.barrier();
    for (unsigned i = 1; i <= freed; ++i) machine.free(world.rank(), first + i * bytes);
    for (unsigned call = 0; call < freed + 2; ++call) BEELINE_CHECK(find(first));  // one check per call; peers follow
    BEELINE_CHECK_EQ(std::size_t{ranks * (ranks - 1)}, machine.opened());
  });
}

/// A call in a graph uses the mappings that all have; it neither publishes nor maps memory.
TEST(SegmentMappings, CapturedCallsUseWhatIsKnown) {
  Machine machine;
  with_mappings(machine, [&](World& world, SegmentMappings& mappings, const auto& find) {
    const auto captured = [&](std::uintptr_t address) {
      world.barrier();
      const bool complete = mappings.find(world, vector_at(address), {}, true).complete;
      world.barrier();
      return complete;
    };
    const std::string reason = "the ranks had not mapped it when a graph captured the call";
    machine.allocate(world.rank(), first, bytes);
    for (int call = 0; call < 4; ++call) BEELINE_CHECK(!captured(first));
    BEELINE_CHECK_EQ(reason, mappings.reason());
    expect_known_in_the_third(find, first);
    BEELINE_CHECK(captured(first));
    BEELINE_CHECK_EQ(std::string(), mappings.reason());
    machine.free(world.rank(), first);
    machine.allocate(world.rank(), first, bytes);  // another segment there
    BEELINE_CHECK(!captured(first));
    expect_known_in_the_third(find, first, 2);
    BEELINE_CHECK(captured(first));
  });
}

TEST(SegmentMappings, WhoCannotMapIsNamed) {
  Machine machine;
  machine.refusing = 1;
  with_mappings(machine, [&](World& world, SegmentMappings& mappings, const auto& find) {
    machine.allocate(world.rank(), first, bytes);
    for (int call = 0; call < 2; ++call) static_cast<void>(find(first));
    BEELINE_CHECK_EQ(world.rank() == 1, find(first));
    if (world.rank() != 1)
      BEELINE_CHECK_CONTAINS(mappings.reason(), "rank 1 cannot map rank " + std::to_string(world.rank()) + "'s memory");
    BEELINE_CHECK(!find(first * 3));
    BEELINE_CHECK_CONTAINS(mappings.reason(), "in no allocation");
    BEELINE_CHECK(!find(first + bytes - 8));
    BEELINE_CHECK_CONTAINS(mappings.reason(), "in several allocations");
  });
}

/// More segments than entries: the last ones are staged until others are freed and peers have closed them.
TEST(SegmentMappings, PlacesAreUsedAgain) {
  constexpr std::size_t most = SegmentMappings::most_segments;
  Machine machine;
  with_mappings(machine, [&](World& world, SegmentMappings& mappings, const auto& find) {
    for (std::size_t i = 0; i <= most; ++i) machine.allocate(world.rank(), first + i * bytes, bytes);
    for (std::size_t i = 0; i < most; ++i) find(first + i * bytes);
    BEELINE_CHECK(!find(first + most * bytes));
    BEELINE_CHECK_CONTAINS(mappings.reason(), "256 segments are mapped");
    world.barrier();
    machine.free(world.rank(), first);
    machine.allocate(world.rank(), first, bytes);
    if (world.rank() == 0) {  // the peers have not closed the segment that was there
      static_cast<void>(mappings.find(world, vector_at(first), {}));
      BEELINE_CHECK_CONTAINS(mappings.reason(), "256 segments are mapped");
    }
    expect_known_in_the_third(find, first, 2);
  });
}

}  // namespace

}  // namespace beeline_test::segment_mappings_test
