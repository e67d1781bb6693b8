// SPDX-License-Identifier: Apache-2.0
// A rank's knowledge of failures, and its routes to other ranks, tested without a world.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "beeline/core/call_fault.hpp"
#include "beeline/device/wait.hpp"
#include "host/world/failures.hpp"
#include "host/world/routes.hpp"
#include "tests/unit/rank_areas.hpp"

namespace beeline {

namespace {

/// The text of the error that a call throws, which begins with its code; empty if it throws none.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// Ranks 0 and 1 are on one node, rank 2 on another. The tests take the view of rank 0.
class FailuresOfThree : public ::testing::Test {
 protected:
  /// Records a wait of `rank` for `peer` that ended with `status`.
  void record(std::uint32_t rank, std::uint32_t peer, Status status) {
    WaitRecord& found = ranks_.areas.host_header(static_cast<int>(rank))->control.host_waits.records[records_++];
    found = {.status = static_cast<std::uint32_t>(status),
             .operation = static_cast<std::uint32_t>(Operation::barrier),
             .rank = rank,
             .peer = peer,
             .team = 0,
             .comparison = static_cast<std::uint8_t>(Compare::greater_equal),
             .resident = true,
             .kernel = 0,
             .sequence = 7,
             .expected = 7,
             .observed = 6,
             .waited_ns = 1'000'000'000};
  }
  [[nodiscard]] std::string failure() const {
    return error_of([this] { failures_.check(Teams::world_only); });
  }

  RankAreas ranks_{{0, 0, 1}};
  Teams teams_{{0, 1, 2}};
  std::string remote_call_ = "barrier";
  Meetings meetings_{ranks_.membership, ranks_.areas, teams_, [this](int, void* to, const void*, std::size_t bytes) {
                       std::memset(to, 0, bytes);
                       remote_call_.copy(static_cast<char*>(to), bytes - 1);
                       return !remote_call_.empty();
                     }};
  OwnProcess process_{0};
  std::vector<int> ended_sources_;
  int notices_ = 0;
  Failures failures_{ranks_.membership,
                     ranks_.areas,
                     teams_,
                     meetings_,
                     process_,
                     {.notify_kernels = [this] { ++notices_; },
                      .zero = [](void* memory, std::size_t bytes) { std::memset(memory, 0, bytes); },
                      .end_sources = [this](const std::vector<int>& ranks) { ended_sources_ = ranks; }}};
  std::size_t records_ = 0;
};

TEST_F(FailuresOfThree, TheEndOfARankIsTheEndOfItsTeams) {
  teams_.open(1, {0, 2});
  EXPECT_FALSE(failures_.failed());
  failures_.note_end(1, "rank 1 was killed");
  EXPECT_TRUE(failures_.failed());
  EXPECT_EQ(1, notices_);
  EXPECT_EQ(-1, failures_.failed_team(2)) << "rank 1 is not in team 1";
  const std::string text = failure();
  EXPECT_NE(std::string::npos, text.find("peer_died")) << text;
  EXPECT_NE(std::string::npos, text.find("rank 1 was killed")) << text;
  EXPECT_EQ(std::vector{2}, ended_sources_) << "of members on other nodes";
}

TEST_F(FailuresOfThree, AnEndThatCameWhileATeamWasMadeIsRaisedAgain) {
  failures_.note_end(1, "gone");
  teams_.open(1, {0, 1});
  failures_.clear(1);
  EXPECT_EQ(-1, failures_.failed_team(2));
  failures_.raise_missed_ends(1);
  EXPECT_EQ(1, failures_.failed_team(2));
}

TEST_F(FailuresOfThree, TheWaitThatReachedItsDeadlineIsTheCause) {
  record(0, 1, Status::aborted);
  record(1, 2, Status::deadline);
  failures_.take_remote_abort(0, abort_word(1), "");
  const std::string text = failure();
  EXPECT_NE(std::string::npos, text.find("because of rank 1: barrier on rank 2, sequence 7")) << text;
  EXPECT_NE(std::string::npos, text.find("at that time:\n  rank 0: barrier on rank 1")) << text;
  EXPECT_EQ(2u, failures_.waits().size());
  EXPECT_NE(std::string::npos, failures_.cause_for_others(0).find("rank 1: barrier on rank 2"));
  failures_.clear(0);
  EXPECT_EQ(1u, failures_.waits().size()) << "rank 1 clears its own";
  EXPECT_FALSE(failures_.failed());
}

TEST_F(FailuresOfThree, ADeadlineNamesTheCallsOfThoseThatAreAwaited) {
  record(0, 2, Status::deadline);
  const std::string text = error_of([this] { failures_.fail(Status::deadline, 0, "more"); });
  EXPECT_NE(std::string::npos, text.find("rank 2 is in barrier")) << text;
  EXPECT_NE(std::string::npos, text.find("; more")) << text;
  remote_call_.clear();
  EXPECT_EQ("", meetings_.call_of(2)) << "it does not answer";
}

TEST_F(FailuresOfThree, TheFirstCauseAndTheFirstRefusalAreKept) {
  failures_.take_remote_abort(0, abort_word(2), "rank 2: the first");
  failures_.take_remote_abort(0, abort_word(2), "rank 2: the second");
  failures_.note_refusal("rank 0's engine refused a put");
  failures_.note_refusal("rank 0's engine refused another");
  EXPECT_EQ("rank 2: the first", failures_.cause_of_abort(0).text);
  const std::string text = failure();
  EXPECT_NE(std::string::npos, text.find("refused a put")) << text;
  EXPECT_EQ(std::string::npos, text.find("refused another")) << text;
}

TEST_F(FailuresOfThree, ACallIsShownWhileItLastsAndAfterItHasFailed) {
  {
    Meetings::Call call(meetings_, "allocate");
    EXPECT_EQ("allocate", meetings_.call_of(0));
  }
  EXPECT_EQ("", meetings_.call_of(0));
  {
    Meetings::Call call(meetings_, "a call with a long name that does not fit at all");
    call.fail();
  }
  EXPECT_EQ("a call with a long name that do", meetings_.call_of(0));
}

TEST(WaitTexts, WaitsThatSayTheSameAreOneLine) {
  detail::KnownWait wait{};
  wait.record.status = static_cast<std::uint32_t>(Status::aborted);
  wait.record.operation = static_cast<std::uint32_t>(Operation::barrier);
  wait.record.comparison = static_cast<std::uint8_t>(Compare::greater_equal);
  wait.record.peer = 9, wait.record.expected = 3, wait.record.resident = true;
  detail::KnownWait longer = wait;
  longer.record.rank = 1, longer.record.waited_ns = 2'000'000'000;
  const std::string text = detail::describe_all({wait, longer}, "");
  EXPECT_EQ(text.find('\n'), text.rfind('\n')) << text;
  EXPECT_NE(std::string::npos, text.find("the longest of these waits")) << text;
  EXPECT_NE(std::string::npos, text.find("2.000 s")) << text;
}

/// Rank 1 is reached by loads and stores, rank 2 by the engine, and rank 3 not at all.
class SomeEngine final : public Engine {
 public:
  PeerRoute route_to(int peer) const override {
    if (peer == 1) return {};
    return {peer == 2 ? PeerAccess::engine : PeerAccess::refused, peer == 2 ? "by a test" : "nothing leads there"};
  }
  void serve(const EngineClient&) override {}
};

class RoutesOfFour : public ::testing::Test {
 protected:
  RoutesOfFour() {
    addresses_.open(range_, min_slot_shift, 4);
    routes_.ask(SomeEngine());
  }
  /// An address in a rank's slot, where no memory is mapped.
  [[nodiscard]] std::byte* address_of(int rank) const {
    return range_ + (static_cast<std::uintptr_t>(rank) << min_slot_shift) + 64;
  }

  std::byte* const range_ = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 44);
  RankAreas ranks_{{0, 0, 1, 0}};
  AddressBook addresses_;
  Routes routes_{ranks_.membership, find_copy_paths(ranks_.membership, true), ranks_.areas, addresses_,
                 [](const void*) { return false; }};
};

TEST_F(RoutesOfFour, AreThoseThatTheEngineSays) {
  EXPECT_TRUE(routes_.to(1).is_direct());
  EXPECT_EQ(RouteKind::engine, routes_.to(2).kind);
  EXPECT_EQ("by a test", routes_.to(2).reason);
  EXPECT_EQ(RouteKind::refused, routes_.to(3).kind);
  EXPECT_EQ("rank 2 is on node 1, rank 0 on node 0", routes_.why_not_direct(2));
  EXPECT_STREQ("nothing leads there", ranks_.areas.host_header()->route_reasons[3]);
  EXPECT_EQ("loads and stores", routes_.describe(1).operations);
  EXPECT_EQ("commands to an engine", routes_.describe(2).copies);
  EXPECT_EQ("none", routes_.describe(3).operations);
}

TEST_F(RoutesOfFour, CopiesGoWhereTheOwnerOfTheAddressIs) {
  const int own = 0;
  EXPECT_TRUE(routes_.of_copy(&own).is_direct());
  EXPECT_TRUE(routes_.of_copy(address_of(1)).is_direct());
  EXPECT_TRUE(routes_.needs_engine(address_of(2)));
  EXPECT_NE(std::string::npos, error_of([&] {
                                 static_cast<void>(routes_.of_copy(address_of(3)));
                               }).find("rank 0 does not reach: nothing leads there"));
  const std::byte registered{};
  addresses_.set_intervals({{reinterpret_cast<std::uintptr_t>(&registered), 1, 2, 0}});
  EXPECT_NE(std::string::npos,
            error_of([&] { static_cast<void>(routes_.of_copy(&registered)); }).find("outside its heaps and segments"));
}

TEST_F(RoutesOfFour, ContextsGetATableWhereAMemberIsNotDirect) {
  Context ctx{};
  routes_.add_to(ctx, {0, 1}, {0, 1}, true);
  EXPECT_EQ(0u, ctx.has_routes);
  routes_.add_to(ctx, {0, 1, 2}, {0, 1, 2}, true);
  EXPECT_EQ(1u, ctx.has_routes);
  EXPECT_EQ(3u, ctx.direct_places);
  EXPECT_EQ(PeerAccess::engine, ctx.access_to(2).access);
}

TEST(Routes, WithoutPeerAccessCopiesAreStaged) {
  const RankAreas ranks({0, 0});
  AddressBook addresses;
  auto* const range = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 44);
  addresses.open(range, min_slot_shift, 2);
  const Routes routes(ranks.membership, find_copy_paths(ranks.membership, false), ranks.areas, addresses,
                      [](const void*) { return false; });
  const Route route = routes.of_copy(range + (std::uintptr_t{1} << min_slot_shift));
  EXPECT_EQ(RouteKind::copy, route.kind);
  EXPECT_EQ(1, route.device);
  EXPECT_TRUE(routes.of_copy(range).is_direct());
  EXPECT_TRUE(routes.has_staged_copies());
  EXPECT_EQ("staged through host memory", routes.describe(1).copies);
}

TEST(Routes, PlacesOfManyMembersAreThoseOfTheNode) {
  std::vector<int> nodes(max_node_ranks + 1, 1);
  nodes[0] = nodes[5] = 0;
  const RankAreas ranks(nodes);
  const std::vector<std::uint32_t> places = places_of(ranks.membership, ranks.membership.everyone());
  EXPECT_EQ(0u, places[0]);
  EXPECT_EQ(1u, places[5]);
  EXPECT_EQ(no_place, places[1]);
  EXPECT_EQ(2u, places_of(ranks.membership, {0, 1, 5})[2]) << "of a few all have one";
}

}  // namespace

}  // namespace beeline
