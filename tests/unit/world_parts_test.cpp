// SPDX-License-Identifier: Apache-2.0
// The parts of a world, each tested without a world.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "host/world/contexts.hpp"
#include "host/world/engines.hpp"
#include "host/world/grids.hpp"
#include "host/world/heaps.hpp"
#include "host/world/launches.hpp"
#include "host/world/memory_map.hpp"
#include "host/world/streams.hpp"
#include "host/world/teams.hpp"
#include "tests/unit/rank_areas.hpp"

namespace beeline {

namespace {

/// The code of the error that a call throws; ok if it throws none.
template <class Call>
Status code_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return Status::ok;
}

TEST(Membership, KnowsWhatRanksShare) {
  const RankAreas ranks({0, 1, 0, 1, 2});
  const Membership& all = ranks.membership;
  EXPECT_EQ((std::vector{0, 2}), all.local_ranks());
  EXPECT_TRUE(all.spans_nodes());
  EXPECT_TRUE(all.is_local(2));
  EXPECT_FALSE(all.is_local(1));
  EXPECT_EQ((std::vector{1, 4}), all.remote_among({0, 1, 2, 4}));
  EXPECT_EQ((std::vector{1, 3}), all.members_to_notify({0, 1, 3}));
  EXPECT_EQ(1, all.sharers().all);
  EXPECT_FALSE(all.has_gpus());
}

TEST(Membership, OfManyMembersOneOnEachNodeIsNotified) {
  std::vector<int> nodes(max_node_ranks, 0);
  nodes.insert(nodes.end(), 3, 1);
  const RankAreas ranks(nodes);
  EXPECT_EQ(std::vector{static_cast<int>(max_node_ranks)},
            ranks.membership.members_to_notify(ranks.membership.everyone()));
}

TEST(Membership, TellsKindsOfDevicesApart) {
  std::vector<Member> members(2);
  members[1].device.kind = DeviceKind::gpu;
  members[1].device.uuid = "GPU-1";
  const Membership mixed(1, members);
  EXPECT_TRUE(mixed.has_gpus());
  EXPECT_TRUE(mixed.has_both_kinds());
  EXPECT_TRUE(mixed.mixes_kinds({0, 1}));
  EXPECT_FALSE(mixed.mixes_kinds({1}));
  EXPECT_EQ(1, mixed.sharers().all);
}

TEST(Membership, CountsTheRanksOnADevice) {
  std::vector<Member> members(5);
  for (Member& member : members) member.device.kind = DeviceKind::gpu, member.device.uuid = "GPU-1";
  members[2].process = 1;
  members[3].device.uuid = "GPU-2";
  members[4].device = {};
  const Membership first(0, members), other_process(2, members), alone(3, members), host(4, members);
  EXPECT_EQ(3, first.sharers().all);
  EXPECT_EQ(2, first.sharers().of_process);
  EXPECT_EQ(3, other_process.sharers().all);
  EXPECT_EQ(1, other_process.sharers().of_process);
  for (const Membership* const lone : {&alone, &host}) {
    EXPECT_EQ(1, lone->sharers().all);
    EXPECT_EQ(1, lone->sharers().of_process);
  }
}

TEST(Teams, IdsAreFreeUntilTheyAreTakenOrRetired) {
  Teams teams({0, 1, 2});
  EXPECT_EQ(~TeamSet{1}, teams.free_ids());
  teams.open(3, {0, 2});
  EXPECT_EQ(~TeamSet{1 | 8}, teams.free_ids());
  EXPECT_EQ((std::vector{0, 2}), teams.members(3));
  EXPECT_EQ(TeamSet{1 | 8}, teams.living());
  teams.close(3);
  EXPECT_FALSE(teams.holds(3));
  const auto may_hold = [](int rank, std::uint32_t id) { return rank == 2 && id == 3; };
  EXPECT_EQ(~TeamSet{1 | 8}, teams.free_ids_among({0, 1}, may_hold)) << "rank 2 may still be in it";
  EXPECT_EQ(~TeamSet{1}, teams.free_ids_among({0, 2}, may_hold));
}

TEST(Teams, EndWithTheirMembersAndKeepTheirIds) {
  Teams teams({0, 1, 2});
  teams.set_barrier_id(45);
  teams.open(1, {0, 1});
  teams.open(2, {0, 2});
  TeamSet ended = 0;
  teams.end_those_of(2, [&](std::uint32_t id) { ended |= team_set(id); });
  EXPECT_EQ(TeamSet{1 | 4}, ended);
  teams.close(2);
  EXPECT_EQ(~(TeamSet{1 | 2 | 4} | team_set(45)), teams.free_ids()) << "also that of the world's barrier";
  ended = 0;
  teams.end_those_of(-1, [&](std::uint32_t id) { ended |= team_set(id); });
  EXPECT_EQ(TeamSet{1 | 2}, ended) << "the launcher's end is that of all";
}

TEST(Grids, AreLentAgainWhenTheyAreGivenBack) {
  const auto states = std::make_unique<PaddedGridState[]>(max_streams);
  Grids grids(states.get(), Device{});
  std::vector<std::shared_ptr<GridState>> lent;
  for (std::uint32_t i = 0; i < max_streams; ++i) lent.push_back(grids.lend());
  EXPECT_EQ(&states[0].state, lent.front().get());
  EXPECT_EQ(Status::no_resource, code_of([&] { static_cast<void>(grids.lend()); }));
  grids.ledger().claim(
      lent.back().get(), nullptr, 1.0, [] { return std::string("a"); }, [] { return false; });
  lent.pop_back();
  EXPECT_EQ(&states[max_streams - 1].state, grids.lend().get());
  grids.ledger().keep(&grids, {1.0}, [] { return std::string("b"); });  // the first entry is booked no longer
}

TEST(Launches, NamesAreShownOnceAndCut) {
  const RankAreas ranks({0});
  const OwnProcess process(0);
  Launches launches(ranks.membership, ranks.areas, process);
  EXPECT_TRUE(launches.is_named(0)) << "it never will have a name";
  EXPECT_FALSE(launches.is_named(2));
  launches.name(2, std::string(2 * max_kernel_name, 'k'));
  launches.name(2, "another");
  EXPECT_TRUE(launches.is_named(2));
  EXPECT_EQ(std::string(max_kernel_name - 1, 'k'), ranks.areas.host_header()->kernel_names[1]);
}

TEST(Launches, CoresOfANodeAreShared) {
  const RankAreas ranks({0, 0, 1});
  const OwnProcess process(0);
  Launches launches(ranks.membership, ranks.areas, process);
  const auto& mine = ranks.areas.host_header()->cores;
  std::copy(std::begin(mine), std::end(mine), ranks.areas.host_header(1)->cores);
  std::copy(std::begin(mine), std::end(mine), ranks.areas.host_header(2)->cores);
  launches.count_cores();
  unsigned all = 0;
  for (const std::uint64_t word : mine) all += static_cast<unsigned>(std::popcount(word));
  EXPECT_EQ(std::max(1u, all / 2), launches.cores()) << "not with the other node";
}

class HeapsOfARank : public ::testing::Test {
 protected:
  RankAreas ranks_{{0}};
  detail::AllocationMap allocations_;
  Heaps heaps_{ranks_.areas, RankAreas::heap_bytes, RankAreas::pinned_bytes, allocations_, true};
};

TEST_F(HeapsOfARank, FindPlacesOfAddresses) {
  std::byte* const start = ranks_.areas.pinned_start();
  EXPECT_FALSE(heaps_.place_of(start - 1));
  ASSERT_TRUE(heaps_.place_of(start + 5));
  EXPECT_EQ(Heap::pinned, heaps_.place_of(start + 5)->heap);
  EXPECT_EQ(5u, heaps_.place_of(start + 5)->offset);
  EXPECT_EQ(start + 5, heaps_.address_of({Heap::pinned, 5}));
  EXPECT_FALSE(heaps_.place_of(start + RankAreas::pinned_bytes));
  EXPECT_EQ(Heap::symmetric, heaps_.place_of(ranks_.areas.heap_start())->heap);
}

TEST_F(HeapsOfARank, OperationsMayUseWhatIsOpen) {
  const Heaps::Place low{Heap::symmetric, heaps_.take(Heap::symmetric, 100, {})};
  const Heaps::Place high{Heap::symmetric, heaps_.take(Heap::symmetric, 100, RankAreas::heap_bytes)};
  EXPECT_LT(low.offset, high.offset);
  const std::uint64_t offset = ranks_.areas.offset_in_slot(heaps_.address_of(low));
  EXPECT_FALSE(allocations_.holds(offset, 1));
  heaps_.open(low);
  EXPECT_TRUE(allocations_.holds(offset, 100));
  EXPECT_EQ(allocation_alignment, heaps_.bytes_at(low));
  heaps_.free(low);
  EXPECT_FALSE(allocations_.holds(offset, 1));
  EXPECT_FALSE(heaps_.bytes_at(low));
  heaps_.give_back(high);
  EXPECT_EQ(Status::no_resource,
            code_of([&] { static_cast<void>(heaps_.take(Heap::symmetric, RankAreas::heap_bytes + 1, {})); }));
}

TEST_F(HeapsOfARank, AreasSayWhatAnOffsetIs) {
  const std::uint64_t word = ranks_.areas.offset_in_slot(ranks_.areas.heap_start()) + 0x40;
  EXPECT_EQ("offset 0x40 of its own symmetric heap", ranks_.areas.describe_offset(word));
  EXPECT_EQ("offset 0x0 of its own pinned heap",
            ranks_.areas.describe_offset(RankAreas::slot.host_area_offset() + aligned(sizeof(HostAreaHeader))));
}

/// The parts of a world of one host rank.
class LonePartsOfAWorld : public ::testing::Test {
 protected:
  static Config small() {
    Config config;
    config.heap_bytes = std::size_t{1} << 20, config.pinned_heap_bytes = std::size_t{1} << 16;
    return config;
  }
  const std::unique_ptr<Bootstrap> bootstrap_ = make_single_bootstrap();
  Config config_ = small();
  const Membership membership_{0, std::vector<Member>(1)};
  MemoryMap memory_{*bootstrap_, config_, membership_, 1, find_copy_paths(membership_, true)};
  Routes routes_{membership_, find_copy_paths(membership_, true), memory_.areas(), memory_.addresses(),
                 [](const void*) { return false; }};
  Contexts contexts_{config_, membership_, memory_, routes_};
};

TEST_F(LonePartsOfAWorld, AddressesHaveOwners) {
  EXPECT_EQ(0u, memory_.addresses().owner_of(memory_.areas().heap_start()));
  EXPECT_TRUE(memory_.addresses().is_in_slot(memory_.areas().heap_start()));
  EXPECT_EQ(no_peer, memory_.addresses().owner_of(&config_));
  EXPECT_FALSE(memory_.addresses().is_in_slot(&config_));
  std::size_t pieces = 0, bytes = 0;
  memory_.for_pieces(memory_.areas().heap_start(), &config_, 100,
                     [&](std::byte*, const std::byte*, std::size_t piece) { ++pieces, bytes += piece; });
  EXPECT_EQ(1u, pieces);
  EXPECT_EQ(100u, bytes);
}

TEST_F(LonePartsOfAWorld, ContextsPointToTheStateOfTheirTeam) {
  const Context kernels = contexts_.make(3, {0}, false);
  EXPECT_EQ(&memory_.areas().heap_header()->teams[3], kernels.sync);
  EXPECT_EQ(&memory_.areas().host_header()->teams[3], contexts_.make(3, {0}, true).sync);
  EXPECT_EQ(3u, kernels.team);
  EXPECT_EQ(0u, kernels.has_routes);
  contexts_.regroup(4, {0});
  EXPECT_EQ(0u, contexts_.barrier().team) << "it waits and aborts as the world";
  EXPECT_EQ(&memory_.areas().host_header()->teams[4], contexts_.barrier().sync);
  EXPECT_EQ(&memory_.areas().host_header()->teams[0], contexts_.host().sync);
}

TEST_F(LonePartsOfAWorld, StreamsThatTheProgramKeepsEnd) {
  Grids grids(memory_.areas().heap_header()->grids, Device{});
  Streams streams(membership_, contexts_.host(), grids, routes_, [](const void*) { return false; }, {});
  EXPECT_FALSE(streams.reach_gpus());
  int from = 7, to = 0;
  const std::unique_ptr<Stream> kept = streams.handed().hand_out(streams.make());
  kept->copy(&to, &from, sizeof to);
  streams.end_handed(false);
  EXPECT_EQ(7, to) << "the end waits for work";
  EXPECT_EQ(Status::invalid_argument, code_of([&] { kept->copy(&to, &from, sizeof to); }));
  EXPECT_EQ(streams.carry_buffer(streams.main()).data(), streams.carry_buffer(streams.main()).data());
  streams.end();
  EXPECT_EQ(nullptr, streams.of_copies());
}

TEST_F(LonePartsOfAWorld, EnginesKeepRefusalsUntilTheyAreTaken) {
  Engines engines(config_, Device{}, [] { return EngineClient{}; });
  EXPECT_EQ(nullptr, engines.of_peers());
  EXPECT_EQ(Status::invalid_argument, code_of([&] { static_cast<void>(engines.make_host_engine(0, false)); }));
  const int first = 0, second = 0, third = 0;
  engines.device_refusals().add(&third, "third", true);
  engines.device_refusals().add(&first, "first");
  engines.device_refusals().add(&second, "second");
  engines.device_refusals().forget(&first);
  EXPECT_EQ(std::vector<std::string>{"second"}, engines.take_refusals());
  EXPECT_TRUE(engines.take_refusals().empty());
  EXPECT_EQ("third", engines.device_refusals().of(&third));
}

}  // namespace

}  // namespace beeline
