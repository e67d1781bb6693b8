// SPDX-License-Identifier: Apache-2.0
// The parts that carry commands to other nodes, each tested alone and without UCX.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "beeline/core/command_protocol.hpp"
#include "host/node_map.hpp"
#include "host/pairs/call_chunks.hpp"
#include "host/pairs/pair_transfers.hpp"
#include "runtime/node.hpp"
#include "tests/support/errors.hpp"
#include "tests/unit/lone_context.hpp"
#include "transports/introduction.hpp"
#include "transports/network_devices.hpp"
#include "transports/ordered_arrivals.hpp"
#include "transports/posted_commands.hpp"
#include "transports/rows.hpp"
#include "transports/turns.hpp"
#include "transports/waiting_helpers.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

Arrival numbered(std::uint64_t number) {
  Arrival arrival;
  arrival.message.number = number;
  return arrival;
}

TEST(OrderedArrivals, WaitForThoseBefore) {
  OrderedArrivals arrivals;
  EXPECT_TRUE(arrivals.keep(numbered(3)));
  EXPECT_TRUE(arrivals.keep(numbered(2)));
  EXPECT_FALSE(arrivals.keep(numbered(2))) << "the same again";
  EXPECT_EQ(nullptr, arrivals.next());
  EXPECT_FALSE(arrivals.is_next(numbered(2).message));
  ASSERT_TRUE(arrivals.is_next(numbered(1).message));
  arrivals.end();
  for (std::uint64_t number = 2; number <= 3; ++number) {
    ASSERT_NE(nullptr, arrivals.next());
    EXPECT_EQ(number, arrivals.next()->message.number);
    EXPECT_EQ(arrivals.next(), arrivals.find(number));
    EXPECT_EQ(number, arrivals.take_next().message.number);
    arrivals.end();
  }
  EXPECT_EQ(nullptr, arrivals.find(3));
  EXPECT_EQ(3u, arrivals.done());
  EXPECT_FALSE(arrivals.may_come(numbered(3).message)) << "done before";
  EXPECT_TRUE(arrivals.may_come(numbered(3 + most_ahead).message));
  EXPECT_FALSE(arrivals.may_come(numbered(4 + most_ahead).message)) << "further than its sender may go";
}

TEST(OrderedArrivals, AreSeenUpToTheFirstThatIsMissing) {
  OrderedArrivals arrivals;
  for (const std::uint64_t number : {1, 2, 3, 5}) EXPECT_TRUE(arrivals.keep(numbered(number)));
  std::vector<std::uint64_t> seen;
  const auto note = [&](const Arrival& each) {
    seen.push_back(each.message.number);
    return each.message.number != 2;
  };
  arrivals.for_next(note);
  EXPECT_EQ((std::vector<std::uint64_t>{1, 2}), seen);
  static_cast<void>(arrivals.take_next());
  static_cast<void>(arrivals.find(2));
  arrivals.end();
  seen.clear();
  arrivals.for_next([&](const Arrival& each) {
    seen.push_back(each.message.number);
    return true;
  });
  EXPECT_EQ((std::vector<std::uint64_t>{2, 3}), seen);
}

Command strided(std::uint64_t rows, std::uint64_t row_bytes, std::uint64_t remote_stride, std::uint64_t local_stride) {
  Command command{};
  command.verb = Verb::put, command.remote = 1000, command.local = 5000;
  command.rows = rows, command.row_bytes = row_bytes;
  command.remote_stride = remote_stride, command.local_stride = local_stride;
  return command;
}

/// Calls `each(part)` for the parts of a command, in order.
template <class Each>
std::uint64_t for_parts(const Command& command, std::uint64_t most_bytes, Each each) {
  const Cut cut = cut_of(command, most_bytes);
  for (std::uint64_t piece = 0; piece < cut.messages(); ++piece) each(piece_of(command, cut, piece));
  return cut.messages();
}

constexpr std::uint64_t no_limit = ~std::uint64_t{0};

/// The engine's thread rests beside waiting threads that work, the longer the longer they have, and not beside those
/// that work rarely or no more.
TEST(WaitingHelpers, LetTheEnginesThreadRest) {
  constexpr std::uint64_t often_ns = WaitingHelpers::period_ns / 2, rarely_ns = WaitingHelpers::period_ns * 2;
  WaitingHelpers helpers;
  std::uint64_t now = 1'000'000'000;
  const auto work = [&](int rounds, std::uint64_t every_ns) {
    for (int i = 0; i < rounds; ++i) helpers.count(now += every_ns);
  };
  EXPECT_EQ(0u, helpers.rest_ns(now)) << "no thread has worked";
  work(1, often_ns);
  EXPECT_TRUE(helpers.has_worked(now + often_ns));
  EXPECT_FALSE(helpers.has_worked(now + rarely_ns));
  EXPECT_EQ(0u, helpers.rest_ns(now)) << "one round in all this time";
  work(20, often_ns);
  EXPECT_EQ(WaitingHelpers::least_rest_ns, helpers.rest_ns(now));
  work(400, often_ns);
  EXPECT_EQ(420 * often_ns / 8, helpers.rest_ns(now));
  work(4000, often_ns);
  EXPECT_EQ(WaitingHelpers::most_rest_ns, helpers.rest_ns(now));
  EXPECT_EQ(0u, helpers.rest_ns(now += often_ns)) << "no thread has worked since";
  work(20, rarely_ns);
  EXPECT_EQ(0u, helpers.rest_ns(now)) << "rarely";
  work(20, often_ns);
  EXPECT_EQ(WaitingHelpers::least_rest_ns, helpers.rest_ns(now)) << "anew";
}

TEST(Rows, OfAPutWithASignalCarryItBehindTheLast) {
  Command command = strided(1, 1000, 640, 7);  // the signal's offset and value
  command.verb = Verb::put_signal;
  const Command moved = without_signal(command);
  const Cut cut = cut_of(moved, 600);
  ASSERT_EQ(2u, cut.messages());
  const Command first = message_of(piece_of(moved, cut, 0), command, false);
  EXPECT_EQ(Verb::put, first.verb);
  EXPECT_EQ(600u, first.row_bytes);
  EXPECT_EQ(0u, first.local) << "no address of this rank's leaves it";
  const Command last = message_of(piece_of(moved, cut, 1), command, true);
  EXPECT_EQ(Verb::put_signal, last.verb);
  EXPECT_EQ(400u, last.row_bytes);
  EXPECT_EQ(1600u, last.remote);
  EXPECT_EQ(0u, last.local);
  const Command signal = signal_of(last);
  EXPECT_EQ(640u, signal.remote);
  EXPECT_EQ(7u, signal.local);
}

TEST(Rows, TravelInPiecesThatCoverThem) {
  EXPECT_EQ(1u, cut_of(strided(1'000, 4096, 4096, 4096), no_limit).messages()) << "they lie in a row at both ends";
  EXPECT_EQ(1u, cut_of(strided(1, std::uint64_t{1} << 30, 0, 0), no_limit).messages());
  EXPECT_EQ(3u, cut_of(strided(3, 100'000, 200'000, 100'000), no_limit).messages()) << "long rows go one by one";
  std::uint64_t rows = 0;
  for_parts(strided(100'001, 8, 16, 24), no_limit, [&](const Command& part) {
    EXPECT_EQ(1000 + rows * 16, part.remote);
    EXPECT_EQ(5000 + rows * 24, part.local);
    EXPECT_LE(part.rows * part.row_bytes, 65536u);
    rows += part.rows;
  });
  EXPECT_EQ(100'001u, rows);
}

TEST(Rows, LongerThanABufferTravelInParts) {
  constexpr std::uint64_t most = 100'000;
  std::uint64_t bytes = 0;
  const auto follow = [&](const Command& part) {
    EXPECT_EQ(1u, part.rows);
    EXPECT_LE(part.row_bytes, most);
    EXPECT_EQ(1000 + bytes, part.remote);
    EXPECT_EQ(5000 + bytes, part.local);
    bytes += part.row_bytes;
  };
  EXPECT_EQ(41u, for_parts(strided(1'000, 4096, 4096, 4096), most, follow));
  EXPECT_EQ(4'096'000u, bytes);
  bytes = 0;
  EXPECT_EQ(11u, for_parts(strided(1, 1'000'001, 0, 0), most, follow));
  EXPECT_EQ(1'000'001u, bytes);
  std::uint64_t part_number = 0;
  const auto follow_rows = [&](const Command& part) {
    const std::uint64_t row = part_number / 3, before = part_number % 3 * most;
    EXPECT_EQ(1000 + row * 300'000 + before, part.remote);
    EXPECT_EQ(5000 + row * 250'000 + before, part.local);
    EXPECT_EQ(before == 2 * most ? 50'000u : most, part.row_bytes);
    ++part_number;
  };
  EXPECT_EQ(12u, for_parts(strided(4, 250'000, 300'000, 250'000), most, follow_rows));
}

TEST(Rows, ArePackedAndUnpacked) {
  std::vector<std::byte> memory(100);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i);
  std::vector<std::byte> packed(12), copy(100);
  Rows{memory.data() + 5, 4, 3, 10}.pack(packed.data());
  EXPECT_EQ(std::byte{15}, packed[3]);
  Rows{copy.data() + 5, 4, 3, 10}.unpack(packed.data());
  EXPECT_EQ(std::byte{37}, copy[37]);
  EXPECT_EQ(std::byte{0}, copy[38]);
}

/// Posts a command in the same way as CPU threads.
void post(CommandRing& ring, std::uint64_t ticket, std::uint32_t peer) {
  Command& command = ring.commands[ticket % command_ring_depth];
  command = {};
  command.peer = peer;
  command.sequence = ticket + 1;
}

TEST(PostedCommands, EndInTheOrderOfTheRing) {
  const auto ring = std::make_unique<CommandRing>();
  PostedCommands posted(*ring);
  std::uint64_t done[3] = {};
  const auto advance = [&] { posted.advance([&](std::uint32_t rank) { return done[rank]; }); };
  for (std::uint64_t ticket = 0; ticket < 3; ++ticket) post(*ring, ticket, ticket == 1 ? 2 : 1);
  PostedCommand* const first = posted.take();
  PostedCommand* const second = posted.take();
  PostedCommand* const third = posted.take();
  ASSERT_TRUE(first != nullptr && second != nullptr && third != nullptr && posted.take() == nullptr);
  first->last = 1, second->last = 1, third->last = 2;
  first->sending = 1;
  advance();
  EXPECT_EQ(0u, ring->reusable.value) << "the first one's source is in use";
  first->sending = 0;
  third->awaited = 1;
  advance();
  EXPECT_EQ(2u, ring->reusable.value);
  EXPECT_EQ(0u, ring->completed.value);
  done[2] = 1;
  advance();
  EXPECT_EQ(0u, ring->completed.value) << "the first one is not in place";
  done[1] = 2;
  advance();
  EXPECT_EQ(2u, ring->completed.value) << "the third one has no answer";
  EXPECT_EQ(third, posted.find(posted.index_of(*third)));
  third->awaited = 0;
  advance();
  EXPECT_EQ(3u, ring->completed.value);
  EXPECT_EQ(nullptr, posted.find(posted.index_of(*third)));
  EXPECT_TRUE(posted.is_idle());
}

TEST(PostedCommands, AreAsManyAsARingHolds) {
  const auto ring = std::make_unique<CommandRing>();
  PostedCommands posted(*ring);
  std::uint64_t ticket = 0, done = 0;
  for (; ticket < command_ring_depth; ++ticket) {
    post(*ring, ticket, 0);
    PostedCommand* const taken = posted.take();
    ASSERT_NE(nullptr, taken);
    taken->last = ticket + 1;
  }
  post(*ring, ticket, 0);
  EXPECT_EQ(nullptr, posted.take()) << "none is in place yet";
  done = 1;
  posted.advance([&](std::uint32_t) { return done; });
  EXPECT_NE(nullptr, posted.take());
}

TEST(WorkTurns, SeeAPostThatComesBeforeSleep) {
  WorkTurns turns;
  const auto nothing = [] { return false; };
  EXPECT_TRUE(turns.may_sleep([] { return true; }));
  EXPECT_FALSE(turns.may_sleep(nothing)) << "the network has something";
  bool has_worked = true;
  const bool may_sleep = turns.may_sleep([&] {
    std::thread([&] {  // a poster, which finds the other thread working
      turns.announce();
      has_worked = turns.try_work([] { return true; }, [] {});
    })
        .join();
    return true;
  });
  EXPECT_FALSE(has_worked);
  EXPECT_FALSE(may_sleep) << "nobody would do what was posted";
  EXPECT_FALSE(turns.try_work(nothing, [] {}));
  EXPECT_TRUE(turns.may_sleep([] { return true; })) << "it has been looked at";
}

TEST(WorkTurns, LookOnceMoreForEachPostButNotForEver) {
  WorkTurns turns;
  int rounds = 0, left = 0;
  const auto work = [&](int posts) {
    return [&rounds, &turns, posts] {
      if (++rounds < posts) turns.announce();
      return true;
    };
  };
  EXPECT_TRUE(turns.try_work(work(3), [&] { ++left; }));
  EXPECT_EQ(3, rounds);
  EXPECT_EQ(0, left);
  EXPECT_TRUE(turns.try_work(work(1'000'000), [&] { ++left; }));
  EXPECT_LT(rounds, 1000);
  EXPECT_EQ(1, left) << "the engine's thread does the rest";
}

TEST(PostedCommands, OfManyPiecesAreDoneWhenAllAreSent) {
  const auto ring = std::make_unique<CommandRing>();
  PostedCommands posted(*ring);
  post(*ring, 0, 1);
  PostedCommand* const command = posted.take();
  ASSERT_NE(nullptr, command);
  EXPECT_EQ(nullptr, posted.begun()) << "it takes no message";
  command->pieces = 3, command->next = 1, command->last = 1;
  EXPECT_EQ(command, posted.begun());
  EXPECT_EQ(2u, posted.sources_of(1));
  EXPECT_EQ(0u, posted.sources_of(2));
  const auto done = [](std::uint32_t) { return std::uint64_t{9}; };
  posted.advance(done);
  EXPECT_EQ(0u, ring->reusable.value);
  command->next = 3;
  EXPECT_EQ(nullptr, posted.begun());
  posted.advance(done);
  EXPECT_EQ(1u, ring->completed.value);
}

TEST(Introduction, HoldsTheProtocolAndTheAddress) {
  const std::vector<std::byte> address(38, std::byte{7});
  std::vector<std::byte> said = introduction(address);
  const auto found = content_of(3, said);
  EXPECT_EQ(address, std::vector<std::byte>(found.begin(), found.end()));
  said[8] = std::byte{'X'};
  check_error(Status::invalid_argument, {"rank 3 speaks", "the same Beeline"},
              [&] { static_cast<void>(content_of(3, said)); });
  check_error(Status::invalid_argument, {"rank 3"}, [&] { static_cast<void>(content_of(3, {})); });
}

TEST(PairProgress, CountsOnBeyond32Bits) {
  constexpr std::uint64_t wrap = std::uint64_t{1} << 32;
  for (const std::uint64_t known : {std::uint64_t{4}, wrap - 2, wrap, 7 * wrap + 1})
    for (std::uint64_t apart = 0; apart <= 4; ++apart) {
      const detail::PairProgress told{static_cast<std::uint32_t>(known + apart),
                                      static_cast<std::uint32_t>(known - apart)};
      const detail::PairProgress heard = detail::PairProgress::of_word(told.word());
      EXPECT_EQ(known + apart, heard.all_put(known));
      EXPECT_EQ(known - apart, heard.all_consumed(known));
    }
}

TEST(NodeMap, NumbersNodesByTheirFirstMembers) {
  const detail::NodeMap map(std::vector<int>{7, 3, 7, 0, 3, 7});
  ASSERT_EQ(3u, map.nodes());
  EXPECT_EQ(1u, map.node_of(4));
  EXPECT_EQ(3u, map.first_of(2));
  const auto members = map.members_of(0);
  EXPECT_EQ((std::vector<std::uint16_t>{0, 2, 5}), std::vector<std::uint16_t>(members.begin(), members.end()));
  EXPECT_EQ(1u, map.smallest());
  EXPECT_EQ(5u, map.node_leader(0, 5));
  EXPECT_EQ(4u, map.node_leader(1, 6, 4)) << "the owner itself, on its node";
}

TEST(Node, OfAMachineThatIsSeveral) {
  Config config;
  config.size = 4, config.split_nodes = 2;
  const std::string first = detail::node_of(config);
  config.rank = 3;
  const std::string second = detail::node_of(config);
  EXPECT_NE(first, second);
  EXPECT_EQ(detail::machine_of(first), detail::machine_of(second));
  EXPECT_FALSE(detail::machine_of(first).empty());
  EXPECT_NE(detail::machine_of("a net:[1] 0"), detail::machine_of("b net:[1] 0"));
  EXPECT_EQ(detail::host_of(first), detail::host_of(second));
  EXPECT_NE(detail::host_of("a net:[1] 0"), detail::host_of("a net:[2] 0"))
      << "the loop-back device of each is its own";
}

/// Three ranks on two hosts; the first host has two of them.
TEST(NetworkDevices, ThatAllHostsReachAreChosen) {
  const NetworkDevice bridge{"docker0", {"172.17.0.1"}};
  const HostNetwork first{"10.0.0.1", {bridge, {"eth0", {"10.0.0.1", "fd00::1"}}, {"storage", {"192.168.1.5"}}}};
  HostNetwork second{"10.0.0.2", {bridge, {"eno1", {"10.0.0.2"}}, {"storage", {"192.168.2.5"}}}};
  const std::array<int, 3> hosts = {0, 0, 1};
  std::string asked;
  const auto names = [&](int rank) {
    const std::array<HostNetwork, 3> networks = {first, first, second};
    const auto route = [&](const std::string& address) {
      asked = address;
      return std::string(address == "10.0.0.1" ? "10.0.0.2" : "");
    };
    std::string text;
    for (const NetworkDevice& device : choose_devices(networks, hosts, rank, route)) text += device.name + " ";
    return text;
  };
  EXPECT_EQ("eth0 ", names(0));
  EXPECT_EQ("eth0 ", names(1)) << "what a rank of the same host has is not somewhere else";
  EXPECT_EQ("eno1 ", names(2));
  EXPECT_EQ("", asked);
  second.meeting_address = "127.0.1.1";  // its own name, as in Debian's /etc/hosts
  EXPECT_EQ("eno1 ", names(2));
  EXPECT_EQ("10.0.0.1", asked);
  second.devices[1].addresses = {"10.0.0.3"};
  EXPECT_EQ("eno1 storage ", names(2)) << "not known: all but the bridge";
}

TEST(NetworkDevices, AreTheSameWhenTheyWereSent) {
  const HostNetwork none, some{"10.0.0.1", {{"eth0", {"10.0.0.1", "fd00::1"}}, {"ib0", {"10.1.0.1"}}}};
  EXPECT_EQ(none, decode_network(encode(none)));
  EXPECT_EQ(some, decode_network(encode(some)));
  EXPECT_EQ("eth0 (10.0.0.1, fd00::1), ib0 (10.1.0.1)", text_of(some.devices));
  const HostNetwork here = host_network("127.0.0.1:80");
  EXPECT_EQ("127.0.0.1", here.meeting_address);
  EXPECT_EQ("", host_network("").meeting_address);
  for (const NetworkDevice& device : here.devices) EXPECT_NE("lo", device.name);
}

/// Rank 0 of three: rank 1 is on its node, rank 2 on another. The third round of the network's work brings a chunk.
class PairWaits : public LoneContext, detail::WaitWork {
 protected:
  static constexpr std::size_t chunk_bytes = 64;

  PairWaits() {
    context_.size = 3;
    context_.polling = Polling(WaitPolicy::spin, 0);  // never yields the core: `back_off` does no work
    members_[2].to.access = PeerAccess::engine;
    routes_.members = members_.data();
    context_.direct_places = 0b011;
    context_.set_routes(&routes_);
    channel_.arrived = arrived_.data(), channel_.consumed = consumed_.data(), channel_.counts = counts_.data();
    channel_.shown = shown_.data(), channel_.state = &state_, channel_.boxes = boxes_.data(), channel_.members = 3,
    channel_.depth = 4;
    channel_.box_bytes = sizeof(detail::ChunkHead) + chunk_bytes;
    state_.number = std::uint64_t{1} << beeline::detail::signature_bits;
    reinterpret_cast<detail::ChunkHead*>(channel_.box(channel_.boxes, 2, 0))->call = state_.number;
    detail::add_wait_work(*this);
  }
  ~PairWaits() override { detail::remove_wait_work(*this); }

  bool work() noexcept override {
    if (++rounds_ != 3) return false;
    channel_.arrived[2].value = detail::PairProgress{1, 0}.word();
    return true;
  }

  std::array<MemberRoute, 3> members_{};
  RouteTable routes_{};
  std::array<PaddedWord, 3> arrived_{}, consumed_{};
  std::array<detail::PairCounts, 3> counts_{};
  std::array<detail::ShownCall, 3> shown_{};
  detail::PairState state_{};
  alignas(64) std::array<std::byte, 3 * 4 * (sizeof(detail::ChunkHead) + chunk_bytes)> boxes_{};
  detail::PairChannel channel_{};
  int rounds_ = 0;
};

TEST_F(PairWaits, ForAnotherNodeDoTheNetworksWork) {
  const detail::PairLinks links(context_, channel_);
  const detail::ChunkHead* chunk = nullptr;
  EXPECT_EQ(Status::ok, detail::CallChunks(links).await(2, chunk));
  EXPECT_NE(nullptr, chunk);
  EXPECT_EQ(3, rounds_);
}

TEST_F(PairWaits, OfTransfersFromAnotherNodeDoTheNetworksWork) {
  const detail::PairLinks links(context_, channel_);
  detail::PairTransfers transfers(links, 0, 0);
  static_cast<void>(transfers.receive({2, 0, nullptr, 0}));
  const auto all_fit = [](const detail::PairReceipt&, const detail::ChunkHead&) { return Status::ok; };
  EXPECT_EQ(Status::ok, transfers.run({Operation::collective, Operation::collective}, false, all_fit));
  EXPECT_EQ(3, rounds_);
}

TEST_F(PairWaits, ForAMemberOfTheNodeLeaveItToOthers) {
  const detail::PairLinks links(context_, channel_);
  for (int poll = 0; poll < 3; ++poll) EXPECT_FALSE(links.work_for(1));
  EXPECT_EQ(0, rounds_);
}

}  // namespace

}  // namespace beeline_test
