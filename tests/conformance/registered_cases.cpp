// SPDX-License-Identifier: Apache-2.0
// Memory that the world did not allocate: registered, then accessed by rank and offset, or by address if possible.
#include <algorithm>
#include <span>

#include "tests/conformance/foreign_memory.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::registered_cases {

namespace {

using namespace beeline;

struct Choice {
  std::size_t bytes;
  Origin origin;
};

/// Memory for each rank, of random size and origin; in worlds of three or more ranks one random rank gets none.
std::vector<Choice> choose(RankTest& test) {
  std::vector<Choice> all;
  for (int rank = 0; rank < test.size(); ++rank) {
    const auto on_gpu = static_cast<Origin>(test.random().below(3));
    all.push_back({1000 + test.random().below(std::size_t{under_thread_sanitizer ? 5000u : 400'000u}),
                   test.on_gpu(rank) ? on_gpu : Origin::heap});
  }
  if (test.size() >= 3) all[static_cast<std::size_t>(test.random().below(test.size()))].bytes = 0;
  return all;
}

struct FillArguments {
  std::uint8_t* there;
  std::size_t bytes;
  std::uint8_t value;
};

struct FillKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport*, FillArguments a) const {
    for (std::size_t i = grid.thread_rank(); i < a.bytes; i += grid.size()) a.there[i] = a.value;
    static_cast<void>(quiet(grid.block(), ctx));
  }
};

/// Whether `rank` can copy to and from such a part. Ranks without a GPU cannot reach GPU memory of their node; the
/// engine of a GPU rank on another node cannot reach memory that is not pinned.
bool copies(RankTest& test, int rank, int owner, const Choice& part) {
  if (test.world().node(rank) != test.world().node(owner)) return !test.on_gpu(owner) || part.origin != Origin::heap;
  return test.on_gpu(rank) || part.origin != Origin::cuda_device;
}

/// Checks that parts describe their owners' memory, and that an address on this rank belongs to the part's owner.
void check_memory(RankTest& test, const RegisteredMemory& memory, const std::vector<Choice>& all) {
  for (int rank = 0; rank < test.size(); ++rank) {
    const RegisteredPart& part = memory.parts[static_cast<std::size_t>(rank)];
    const Choice& choice = all[static_cast<std::size_t>(rank)];
    BEELINE_CHECK_EQ(choice.bytes, part.bytes);
    if (choice.bytes == 0) continue;
    BEELINE_CHECK_EQ(choice.origin == Origin::cuda_device, part.kind == MemoryKind::device);
    BEELINE_CHECK_EQ(part.address == nullptr, !part.not_directly.empty());
    if (part.copies != copies(test, test.rank(), rank, choice))
      throw CheckFailure(join("copies to rank ", rank, ": ", part.copies, ": ", part.not_directly));
    if (part.address == nullptr) continue;
    BEELINE_CHECK_EQ(rank, test.world().owner_of(part.address));
    BEELINE_CHECK_EQ(rank, test.world().owner_of(part.address + part.bytes - 1));
  }
}

/// Every rank writes into the next rank's part and reads it back; the owner finds the data.
BEELINE_CASE(registered, copies_by_rank_and_offset, 1) {
  World& world = test.world();
  for (int round = 0; round < 3; ++round) {
    const std::vector<Choice> all = choose(test);
    std::size_t most = 1;
    for (const Choice& each : all) most = std::max(most, each.bytes);
    const Choice& own = all[static_cast<std::size_t>(test.rank())];
    const ForeignMemory foreign(test, own.bytes, own.origin);
    const RegisteredMemory& memory = world.register_memory(own.bytes == 0 ? nullptr : foreign.data(), own.bytes);
    check_memory(test, memory, all);
    const std::uint64_t key = test.random().next();
    const auto data_for = [&](int rank, std::size_t bytes) {
      return pattern(key + static_cast<std::uint64_t>(rank), bytes);
    };
    const std::size_t offset = test.random().below(std::size_t{500});
    const int next = test.ahead(1);
    const SymmetricArray<std::byte> local(world, most, test.any_heap());
    const Choice& theirs = all[static_cast<std::size_t>(next)];
    if (const std::size_t bytes = theirs.bytes; bytes > 0 && !copies(test, test.rank(), next, theirs)) {
      check_error(Status::unreachable, {join("rank ", next)}, [&] {
        world.copy(RegisteredPlace{memory.id, next, offset}, local.data(), bytes - offset);
      });
    } else if (bytes > 0) {
      test.write(local.data(), data_for(next, bytes - offset));
      world.copy(RegisteredPlace{memory.id, next, offset}, local.data(), bytes - offset);
      test.write(local.data(), std::vector<std::byte>(bytes - offset));
      world.copy(local.data(), RegisteredPlace{memory.id, next, offset}, bytes - offset);
      check_bytes(data_for(next, bytes - offset), test.read(local.data(), bytes - offset), "read back");
    }
    world.barrier();
    if (own.bytes > 0 && copies(test, test.behind(1), test.rank(), own))
      check_bytes(data_for(test.rank(), own.bytes - offset), test.read(foreign.data() + offset, own.bytes - offset),
                  "own registered memory");
    world.deregister_memory(memory.id);
    BEELINE_CHECK_EQ(-1, world.owner_of(foreign.data()));
  }
}

/// Kernels store to parts that have an address on this rank; their owners load the data.
BEELINE_CASE(registered, kernels_store_to_registered_memory, 1) {
  World& world = test.world();
  const std::vector<Choice> all = choose(test);
  const Choice& own = all[static_cast<std::size_t>(test.rank())];
  const ForeignMemory foreign(test, own.bytes, own.origin);
  const RegisteredMemory& memory = world.register_memory(own.bytes == 0 ? nullptr : foreign.data(), own.bytes);
  for (int writer = 0; writer < test.size(); ++writer) {
    const int owner = (writer + 1) % test.size();
    const auto value = static_cast<std::uint8_t>(100 + writer);
    std::uint8_t stored = 0;
    if (test.rank() == writer) {
      const RegisteredPart& part = memory.parts[static_cast<std::size_t>(owner)];
      stored = part.address == nullptr ? 0 : 1;
      if (stored != 0)
        test.run(test.shape(2, false), FillKernel{},
                 FillArguments{reinterpret_cast<std::uint8_t*>(part.address), part.bytes, value}, "stores");
    }
    const auto told = world.allgather(std::as_bytes(std::span(&stored, 1)));
    if (test.rank() == owner && told[static_cast<std::size_t>(writer)].front() != std::byte{0})
      check_bytes(std::vector<std::byte>(own.bytes, std::byte{value}), test.read(foreign.data(), own.bytes),
                  "stored by another rank");
  }
  world.deregister_memory(memory.id);
}

/// Several registrations at once, deregistered in another order.
BEELINE_CASE(registered, registrations_come_and_go, 1) {
  World& world = test.world();
  const ForeignMemory first(test, 256, Origin::heap), second(test, 256, Origin::heap), third(test, 256);
  const std::uint32_t a = world.register_memory(first.data(), 256).id, b = world.register_memory(second.data(), 256).id;
  world.deregister_memory(a);
  const std::uint32_t c = world.register_memory(third.data(), 256).id;
  BEELINE_CHECK(a != b && b != c && a != c);
  BEELINE_CHECK_EQ(-1, world.owner_of(first.data()));
  BEELINE_CHECK_EQ(test.rank(), world.owner_of(second.data() + 255));
  BEELINE_CHECK_EQ(test.rank(), world.owner_of(third.data()));
  world.deregister_memory(c);
  world.deregister_memory(b);
  const std::uint32_t again = world.register_memory(first.data(), 128).id;
  world.deregister_memory(again);
}

}  // namespace

}  // namespace beeline_test::registered_cases
