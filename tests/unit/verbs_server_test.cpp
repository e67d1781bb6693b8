// SPDX-License-Identifier: Apache-2.0
// Verbs-style queue pairs at the level of bytes: what posters write, how an engine serves it, and what pollers read.
#include "control/adapters/verbs_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "beeline/control/verbs.hpp"
#include "control/adapters/adapter_source.hpp"
#include "control/command_check.hpp"
#include "control/host_engine.hpp"
#include "tests/support/random.hpp"
#include "tests/unit/lone_client.hpp"

namespace beeline {

using beeline_test::Random;

namespace {

constexpr Thread one{};

/// The rings of one end, in plain memory.
struct End {
  static constexpr std::uint32_t depth = 8, completion_depth = 16;
  std::array<VerbsRequestEntry, depth> sends{}, receives{};
  std::array<VerbsCompletionEntry, completion_depth> completions{};
  VerbsDoorbells doorbells{};
  VerbsCompletionWords words{};
  VerbsPosted posted{};
  VerbsPolled polled{};
  std::array<VerbsKeyEntry, max_verbs_keys> keys{};
  PaddedWord withdrawn{};

  [[nodiscard]] VerbsQueuesView view() {
    return {sends.data(),
            receives.data(),
            &doorbells,
            &posted,
            completions.data(),
            &words,
            &polled,
            1,
            depth,
            1,
            completion_depth,
            1,
            nullptr};
  }
  [[nodiscard]] VerbsEnd end(std::uint32_t number, std::uint32_t rank) {
    posted.number = number;
    return {number,    rank, receives.data(), &doorbells, keys.data(), {completions.data(), &words, completion_depth},
            &withdrawn};
  }
  VerbsKey add_key(std::uint32_t rank, std::uint32_t entry, std::uint64_t offset, std::uint64_t length) {
    withdraw_key(entry);
    keys[entry] = {detail::verbs_key(rank, entry, 1), 0, offset, length};
    return VerbsKey::of(keys[entry].key);
  }
  void withdraw_key(std::uint32_t entry) {
    keys[entry].key = 0;
    ++withdrawn.value;
  }
};

/// A queue pair of rank 0 that is connected to rank 1; the memory of both is the buffer of LoneClient. The engine
/// serves requests only when a test calls `serve`.
class VerbsRings : public LoneClient {
 protected:
  VerbsRings() {
    client_.ranks = 2;
    here_ = own_->add_key(0, 3, 8 * source, 8 * words);
    there_ = peer_->add_key(1, 5, 8 * target, 8 * words);
    for (std::size_t i = 0; i < words; ++i) memory_[source + i] = 1000 + i, memory_[target + i] = 0;
  }

  [[nodiscard]] VerbsSegment from(std::size_t word, std::uint32_t length) const {
    return {8 * (source + word), length, here_};
  }
  [[nodiscard]] VerbsSegment to(std::size_t word, std::uint32_t length) const {
    return {8 * (target + word), length, there_};
  }
  Status post(const VerbsRequest& request, bool rings = true) {
    return post_send(one, own_->view(), 0, request, rings);
  }
  Status receive(const VerbsRequest& request) { return post_receive(one, peer_->view(), 0, request); }
  void serve() {
    Command command{};
    while (server_->take(command)) {
      const BegunCommand begun = begin_command(client_, mapped_, worker_, command, 0);
      if (begun.refused != nullptr)
        server_->refused(command);
      else if (command.answers)
        server_->answer(command, worker_.result(0));
      server_->complete(command.sequence);
    }
  }
  /// The next completion of an end; `none` stands for a missing one.
  static constexpr std::uint32_t none = 12345;
  template <VerbsSteps steps = VerbsSteps{}>
  static VerbsCompletion polled(End& end) {
    VerbsCompletion completion{.index = none};
    static_cast<void>(poll_completion<steps>(one, end.view(), 0, completion));
    return completion;
  }
  ///   index  of the request; in this rank's ring counted from the last reset
  void expect(End& end, std::uint32_t index, VerbsStatus status, std::uint64_t value = 0) {
    const VerbsCompletion completion = polled(end);
    EXPECT_EQ(index + (&end == own_.get() ? first_ : 0), completion.index);
    EXPECT_EQ(status, completion.status);
    EXPECT_EQ(value, completion.value);
  }
  /// Does what `VerbsQueues::reset` does; the ring then continues at entry 0, in a lap whose owner bit is 1.
  void reset() {
    constexpr std::uint32_t two_laps = 2 * End::depth;
    own_->sends = {};
    first_ += (static_cast<std::uint32_t>(own_->posted.sends) - first_ + two_laps - 1) / two_laps * two_laps;
    own_->posted.sends = own_->posted.sends_done = first_;
    own_->doorbells.send.value = detail::big_endian(std::uint64_t{first_});
    go_on_behind(first_);
    while (polled(*own_).index != none) {
    }
  }
  void go_on_behind(std::uint64_t sends) {
    server_->save();
    ring_.served = ring_.served.behind(sends);
    server_.emplace(ring_);
  }
  /// Posts a request, changes its bytes, and expects an error and a working queue pair after a reset.
  void expect_error(VerbsStatus status, const VerbsRequest& request,
                    const std::function<void(VerbsRequestEntry&)>& change) {
    for (const int before : {0, 3}) {  // the first entry, and one after others
      for (int i = 0; i < before; ++i) ASSERT_EQ(Status::ok, post(write_request(to(0, 8), from(0, 8))));
      ASSERT_EQ(Status::ok, post(request, false));
      change(own_->sends[static_cast<std::size_t>(before)]);
      ASSERT_EQ(Status::ok, ring_doorbell(one, own_->view(), 0));
      ASSERT_EQ(Status::ok, post(write_request(to(9, 8), from(1, 8))));
      serve();
      for (int i = 0; i < before; ++i) expect(*own_, static_cast<std::uint32_t>(i), VerbsStatus::ok);
      expect(*own_, static_cast<std::uint32_t>(before), status);
      expect(*own_, static_cast<std::uint32_t>(before) + 1, VerbsStatus::flushed);
      EXPECT_EQ(none, polled(*own_).index);
      EXPECT_EQ(0u, memory_[target + 9]);
      reset();
      ASSERT_EQ(Status::ok, post(write_request(to(1, 8), from(2, 8))));
      serve();
      expect(*own_, 0, VerbsStatus::ok);
      reset();
    }
  }

  static constexpr std::size_t source = 1024, target = 4096, words = 64;
  std::uint32_t first_ = 0;  ///< number of the next request at the last reset
  std::unique_ptr<End> own_ = std::make_unique<End>(), peer_ = std::make_unique<End>();
  std::array<VerbsPending, End::depth> pending_{};
  VerbsRing ring_{
      {own_->end(7, 0), peer_->end(8, 1), own_->sends.data(), context_.range, End::depth}, {}, {}, pending_.data()};
  std::optional<VerbsServer> server_{std::in_place, ring_};
  MappedMemory mapped_{client_};
  CommandWorker worker_;
  VerbsKey here_, there_;
};

template <std::size_t... rows>
void for_all_steps(auto body, std::index_sequence<rows...>) {
  (body.template operator()<verbs_steps[rows]>(), ...);
}
void for_all_steps(auto body) { for_all_steps(body, std::make_index_sequence<std::size(verbs_steps)>()); }

TEST_F(VerbsRings, HoldTheBytesThatAreDocumented) {
  for_all_steps([&]<VerbsSteps steps>() {
    *own_ = {};
    VerbsRequest request = write_request({0x0102030405060708, 24, VerbsKey::of(0x11121314)},
                                         {0x2122232425262728, 16, VerbsKey::of(0x31323334)}, 0x41424344);
    request.segments = 2;
    request.local[1] = {0x5152535455565758, 8, VerbsKey::of(0x61626364)};
    for (int i = 0; i < 2; ++i) ASSERT_EQ(Status::ok, post_send<steps>(one, own_->view(), 0, request));
    constexpr std::array<unsigned char, 64> expected = {
        0x80, 0, 0, 2,  1,    2,    0,    0,    0,    0,    0,    1,    0x41, 0x42, 0x43, 0x44,
        1,    2, 3, 4,  5,    6,    7,    8,    0x11, 0x12, 0x13, 0x14, 0,    0,    0,    24,
        0,    0, 0, 16, 0x31, 0x32, 0x33, 0x34, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
        0,    0, 0, 8,  0x61, 0x62, 0x63, 0x64, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58};
    EXPECT_EQ(0, std::memcmp(expected.data(), &own_->sends[1], sizeof expected));
    const unsigned char stamp = steps.stamps ? 0xff : 0;
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(stamp, reinterpret_cast<unsigned char*>(&own_->sends[2])[i]);
    constexpr std::array<unsigned char, 8> doorbell = {0, 0, 0, 0, 0, 0, 0, 2};
    EXPECT_EQ(0, std::memcmp(doorbell.data(), &own_->doorbells.send, sizeof doorbell));
  });
}

TEST_F(VerbsRings, HoldTheCompletionsThatAreDocumented) {
  memory_[target] = 0x0102030405060708;
  ASSERT_EQ(Status::ok, post(fetch_add_request(to(0, 8), 1)));
  ASSERT_EQ(Status::ok, post(fetch_add_request(to(0, 8), 1)));
  serve();
  constexpr std::array<unsigned char, 32> expected = {0, 0, 0, 7, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 9,
                                                      0, 0, 0, 0, 0, 0, 0, 8, 5, 0, 0, 0, 0, 0, 0, 1};
  EXPECT_EQ(0, std::memcmp(expected.data(), &own_->completions[1], sizeof expected));
}

TEST_F(VerbsRings, CarryOutEveryOpcode) {
  for_all_steps([&]<VerbsSteps steps>() {
    const auto post = [&](const VerbsRequest& request) {
      ASSERT_EQ(Status::ok, post_send<steps>(one, own_->view(), 0, request));
      serve();
    };
    const auto expect = [&](End& end, VerbsOpcode opcode, std::uint32_t length, std::uint64_t value = 0) {
      const VerbsCompletion completion = polled<steps>(end);
      EXPECT_EQ(VerbsStatus::ok, completion.status);
      EXPECT_EQ(opcode, completion.opcode);
      EXPECT_EQ(value, completion.value);
      EXPECT_EQ(opcode == VerbsOpcode::receive, completion.is_receive);
      const bool is_whole =
          steps.checks || (opcode != VerbsOpcode::write && opcode != VerbsOpcode::read && opcode != VerbsOpcode::send);
      EXPECT_EQ(is_whole ? length : 0, completion.bytes);
      EXPECT_EQ(!is_whole ? 0u : &end == own_.get() ? 7u : 8u, completion.pair);
      return completion.immediate;
    };
    std::fill_n(memory_.begin() + target, words, 0);
    VerbsRequest request = write_request(to(0, 24), from(3, 16));
    request.segments = 2, request.local[1] = from(9, 8);
    post(request);
    expect(*own_, VerbsOpcode::write, 24);
    EXPECT_EQ((std::vector<std::uint64_t>{1003, 1004, 1009, 0}),
              std::vector(memory_.begin() + target, memory_.begin() + target + 4));

    const std::uint64_t payload[] = {5, 6, 7, 8};
    post(inline_write_request(to(4, 32), payload));
    expect(*own_, VerbsOpcode::write, 32);
    EXPECT_EQ(0, std::memcmp(&memory_[target + 4], payload, sizeof payload));

    ASSERT_EQ(Status::ok, post_receive<steps>(one, peer_->view(), 0, VerbsRequest{.opcode = VerbsOpcode::receive}));
    post(write_request(to(10, 8), from(20, 8), 77));
    expect(*own_, VerbsOpcode::write_with_immediate, 8);
    EXPECT_EQ(77u, expect(*peer_, VerbsOpcode::receive, 8));
    EXPECT_EQ(1020u, memory_[target + 10]);

    // Two sources of 16 bytes each, two destinations of 8 and 40 bytes: three commands.
    request = receive_request(to(20, 8));
    request.segments = 2, request.local[1] = to(30, 40);
    ASSERT_EQ(Status::ok, post_receive<steps>(one, peer_->view(), 0, request));
    request = send_request(from(0, 16), 99);
    request.segments = 2, request.local[1] = from(40, 16);
    post(request);
    expect(*own_, VerbsOpcode::send, 32);
    EXPECT_EQ(99u, expect(*peer_, VerbsOpcode::receive, 32));
    EXPECT_EQ((std::vector<std::uint64_t>{1000, 0}), std::vector(&memory_[target + 20], &memory_[target + 22]));
    EXPECT_EQ((std::vector<std::uint64_t>{1001, 1040, 1041, 0}),
              std::vector(&memory_[target + 30], &memory_[target + 34]));

    post(read_request(to(4, 32), from(50, 32)));
    expect(*own_, VerbsOpcode::read, 32);
    EXPECT_EQ(0, std::memcmp(&memory_[source + 50], payload, sizeof payload));

    post(fetch_add_request(to(10, 8), 5));
    expect(*own_, VerbsOpcode::fetch_add, 8, 1020);
    post(compare_swap_request(to(10, 8), 1025, 3));
    expect(*own_, VerbsOpcode::compare_swap, 8, 1025);
    post(compare_swap_request(to(10, 8), 1025, 4));
    expect(*own_, VerbsOpcode::compare_swap, 8, 3);
    EXPECT_EQ(3u, memory_[target + 10]);
    post(write_request(to(0, 0), from(0, 0)));
    expect(*own_, VerbsOpcode::write, 0);
    // Polls of step 4 do not free entries, but posters of the other steps count free entries.
    own_->posted.sends_done = own_->posted.sends, peer_->posted.receives_done = peer_->posted.receives;
  });
}

TEST_F(VerbsRings, TurnBadRequestsIntoErrors) {
  const VerbsRequest write = write_request(to(2, 8), from(3, 8));
  const auto nothing = [](VerbsRequestEntry&) {};
  const auto swap_all = [](VerbsRequestEntry& entry) {
    auto* const words32 = reinterpret_cast<std::uint32_t*>(&entry);
    for (int i = 0; i < 16; ++i) words32[i] = detail::big_endian(words32[i]);
  };
  const auto set = [](std::uint32_t VerbsRequestEntry::*field, std::uint32_t value) {
    return [=](VerbsRequestEntry& entry) { entry.*field = detail::big_endian(value); };
  };
  expect_error(VerbsStatus::bad_opcode, write, set(&VerbsRequestEntry::owner_opcode, verbs_owner_bit | 99));
  expect_error(VerbsStatus::bad_opcode, write, set(&VerbsRequestEntry::owner_opcode, verbs_owner_bit | 0x101));
  expect_error(VerbsStatus::bad_opcode, write, set(&VerbsRequestEntry::owner_opcode, verbs_owner_bit));
  expect_error(VerbsStatus::bad_opcode, write, set(&VerbsRequestEntry::owner_opcode, verbs_owner_bit | 7));  // receive
  expect_error(VerbsStatus::wrong_byte_order, write, swap_all);
  expect_error(VerbsStatus::no_request, write, set(&VerbsRequestEntry::owner_opcode, verbs_stamp));
  expect_error(VerbsStatus::no_request, write, set(&VerbsRequestEntry::owner_opcode, 1));
  expect_error(VerbsStatus::no_request, write, [](VerbsRequestEntry& entry) { entry = {}; });
  expect_error(VerbsStatus::bad_index, write, set(&VerbsRequestEntry::index, 0x10001));
  expect_error(VerbsStatus::bad_length, write, set(&VerbsRequestEntry::bytes, 9));
  expect_error(VerbsStatus::bad_length, write, [](VerbsRequestEntry& entry) { entry.segments = 3; });
  expect_error(VerbsStatus::bad_length, write, [](VerbsRequestEntry& entry) { entry.flags |= verbs_inline; });
  expect_error(VerbsStatus::bad_length, inline_write_request(to(0, 8), "1234567"),
               [](VerbsRequestEntry& entry) { entry.bytes = detail::big_endian(std::uint32_t{40}); });
  expect_error(VerbsStatus::bad_length, fetch_add_request({8 * target + 4, 8, there_}, 1), nothing);
  expect_error(VerbsStatus::bad_remote_key, write, set(&VerbsRequestEntry::remote_key, 0));
  own_->withdrawn.value = peer_->withdrawn.value = 0;  // as at first, when neither end knows of the other
  expect_error(VerbsStatus::bad_remote_key, write_request({}, from(0, 0)), nothing);
  expect_error(VerbsStatus::bad_local_key, write_request(to(0, 0), {}), nothing);
  expect_error(VerbsStatus::bad_remote_key, write, set(&VerbsRequestEntry::remote_key, there_.value + 1));
  expect_error(VerbsStatus::bad_remote_key, write, set(&VerbsRequestEntry::remote_key, here_.value));
  expect_error(VerbsStatus::bad_remote_key, write_request(to(words - 1, 16), from(0, 16)), nothing);
  expect_error(VerbsStatus::bad_remote_key, write_request({~std::uint64_t{7}, 8, there_}, from(0, 8)), nothing);
  expect_error(VerbsStatus::bad_remote_key, fetch_add_request(to(words, 8), 1), nothing);
  expect_error(VerbsStatus::bad_local_key, write_request(to(0, 8), to(0, 8)), nothing);
  expect_error(VerbsStatus::bad_local_key, write_request(to(0, 16), from(words - 1, 16)), nothing);
  expect_error(VerbsStatus::bad_local_key, write_request(to(0, 8), {8 * source - 1, 8, here_}), nothing);
  expect_error(VerbsStatus::no_receive, send_request(from(0, 8)), nothing);
  expect_error(VerbsStatus::no_receive, write_request(to(0, 8), from(0, 8), 1), nothing);
}

TEST_F(VerbsRings, RefuseBadArgumentsBeforeTheyAreWritten) {
  const auto refused = [&](VerbsRequest request) { return post(request) == Status::invalid_argument; };
  VerbsRequest request = write_request(to(0, 8), from(0, 8));
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused(receive_request(from(0, 8))));
  EXPECT_EQ(Status::invalid_argument, receive(request));
  request.segments = 3;
  EXPECT_TRUE(refused(request));
  for (const std::uint32_t bytes : {33, 256, 264}) EXPECT_TRUE(refused(inline_write_request(to(0, bytes), "x")));
  EXPECT_TRUE(refused(write_request(to(0, 8), from(0, 16))));
  EXPECT_TRUE(refused(read_request(to(0, 16), from(0, 8))));
  EXPECT_TRUE(refused(fetch_add_request(to(0, 4), 1)));
  request = read_request(to(0, 8), from(0, 8));
  request.payload = "x", request.segments = 0, request.payload_bytes = 1;
  EXPECT_TRUE(refused(request));
  const VerbsQueuesView queues = own_->view();
  VerbsCompletion completion;
  EXPECT_EQ(Status::invalid_argument, post_send(one, queues, 1, write_request(to(0, 8), from(0, 8))));
  EXPECT_EQ(Status::invalid_argument, post_receive(one, queues, ~0u, receive_request(from(0, 8))));
  EXPECT_EQ(Status::invalid_argument, ring_doorbell(one, queues, 1));
  EXPECT_EQ(Status::invalid_argument, poll_completion(one, queues, 1, completion));
  EXPECT_EQ(Status::invalid_argument, wait_completion(one, context_, queues, 1, completion));
  EXPECT_EQ(0u, own_->posted.sends);
  for (std::uint32_t i = 0; i < End::depth - 1; ++i) ASSERT_EQ(Status::ok, post(write_request(to(0, 8), from(0, 8))));
  EXPECT_EQ(Status::no_resource, post(write_request(to(0, 8), from(0, 8))));
  serve();
  expect(*own_, 0, VerbsStatus::ok);
  EXPECT_EQ(Status::ok, post(write_request(to(0, 8), from(0, 8))));
}

TEST_F(VerbsRings, ReportBadReceivesToBothEnds) {
  const auto expect_both = [&](std::uint32_t index, VerbsStatus there, VerbsStatus here) {
    ASSERT_EQ(Status::ok, post(send_request(from(0, 16))));
    serve();
    expect(*own_, 0, here);
    expect(*peer_, index, there);
    reset();
  };
  ASSERT_EQ(Status::ok, receive(receive_request(to(0, 8))));
  expect_both(0, VerbsStatus::short_receive, VerbsStatus::short_receive);
  ASSERT_EQ(Status::ok, receive(receive_request(from(0, 16))));
  expect_both(1, VerbsStatus::bad_local_key, VerbsStatus::bad_receive);
  ASSERT_EQ(Status::ok, receive(receive_request(to(0, 16))));
  peer_->receives[2].owner_opcode = detail::big_endian(verbs_owner_bit | 1);
  expect_both(2, VerbsStatus::bad_opcode, VerbsStatus::bad_receive);
  // A doorbell that exceeds the ring's entries makes no receive available.
  peer_->doorbells.receive.value = detail::big_endian(std::uint64_t{100});
  ASSERT_EQ(Status::ok, post(send_request(from(0, 16))));
  serve();
  expect(*own_, 0, VerbsStatus::bad_receive);
  EXPECT_EQ(none, polled(*peer_).index);
  reset();
  ASSERT_EQ(Status::ok, receive(receive_request(to(5, 16))));
  expect_both(3, VerbsStatus::ok, VerbsStatus::ok);
  EXPECT_EQ(1001u, memory_[target + 6]);
}

TEST_F(VerbsRings, ReportADoorbellThatIsRungTooFar) {
  for (const std::uint64_t rung :
       {std::uint64_t{End::depth + 3}, ~std::uint64_t{0}, detail::big_endian(std::uint64_t{2})}) {
    for (int i = 0; i < 2; ++i) ASSERT_EQ(Status::ok, post(write_request(to(0, 8), from(0, 8))));
    serve();
    own_->doorbells.send.value = detail::big_endian(rung + first_);
    serve();
    expect(*own_, 0, VerbsStatus::ok);
    expect(*own_, 1, VerbsStatus::ok);
    expect(*own_, 2, VerbsStatus::doorbell_too_far);
    EXPECT_FALSE(server_->has_next());
    EXPECT_EQ(none, polled(*own_).index);
    reset();
  }
  // The doorbell is too far, but within the ring: it counts entries that hold no request.
  ASSERT_EQ(Status::ok, post(write_request(to(0, 8), from(0, 8))));
  own_->doorbells.send.value = detail::big_endian(std::uint64_t{first_ + 3});
  serve();
  expect(*own_, 0, VerbsStatus::ok);
  expect(*own_, 1, VerbsStatus::no_request);
  expect(*own_, 2, VerbsStatus::flushed);
}

TEST_F(VerbsRings, ReportWhatTheEngineRefuses) {
  ASSERT_EQ(Status::ok, post(write_request(to(0, 8), from(0, 8))));
  VerbsRequest overlaps = write_request(to(8, 24), from(0, 16));
  overlaps.segments = 2, overlaps.local[1] = from(2, 8);
  here_ = own_->add_key(0, 3, 8 * source, bytes);
  overlaps.local[1].address = 8 * (target + 10) + 4;
  ASSERT_EQ(Status::ok, post(overlaps));
  ASSERT_EQ(Status::ok, post(fetch_add_request(to(0, 8), 1)));
  serve();
  expect(*own_, 0, VerbsStatus::ok);
  expect(*own_, 1, VerbsStatus::refused);
  expect(*own_, 2, VerbsStatus::flushed);
  reset();
  // An atomic, which waits for an answer, on registered memory that is no longer mapped.
  there_ = peer_->add_key(1, 5, 8 * target, 2 * bytes);
  ASSERT_EQ(Status::ok, post(fetch_add_request({bytes, 8, there_}, 1)));
  serve();
  expect(*own_, 0, VerbsStatus::refused);
}

TEST_F(VerbsRings, KnowKeysUntilTheyAreWithdrawn) {
  const auto expect_after = [&](End& end, std::uint32_t entry, VerbsStatus status) {
    for (int i = 0; i < 2; ++i) ASSERT_EQ(Status::ok, post(write_request(to(0, 8), from(0, 8))));
    serve();
    for (std::uint32_t i = 0; i < 2; ++i) expect(*own_, i, VerbsStatus::ok);
    end.withdraw_key(entry);
    ASSERT_EQ(Status::ok, post(write_request(to(0, 8), from(0, 8))));
    serve();
    expect(*own_, 2, status);
    reset();
  };
  expect_after(*own_, 3, VerbsStatus::bad_local_key);
  here_ = own_->add_key(0, 3, 8 * source, 8 * words);
  expect_after(*peer_, 5, VerbsStatus::bad_remote_key);
}

TEST_F(VerbsRings, ReportCompletionsThatHaveNoRoom) {
  for (int round = 0; round < 2; ++round) {
    std::uint32_t posted = 0;
    // Step 4: only the poster's own count limits it.
    for (; posted < End::completion_depth + 2; ++posted) {
      ASSERT_EQ(Status::ok, (post_send<verbs_steps[4]>(one, own_->view(), 0, write_request(to(0, 8), from(0, 8)))));
      serve();
    }
    for (std::uint32_t i = 0; i < End::completion_depth - 1; ++i) expect(*own_, i, VerbsStatus::ok);
    expect(*own_, End::completion_depth - 1, VerbsStatus::completions_full);
    EXPECT_EQ(none, polled(*own_).index);
    reset();
  }
}

TEST_F(VerbsRings, CompleteUnsignaledRequestsWithLaterOnes) {
  for (std::uint32_t i = 0; i < 100; ++i) {
    VerbsRequest request = write_request(to(i % words, 8), from(i % words, 8));
    request.signaled = i % 5 == 4;
    ASSERT_EQ(Status::ok, post(request));
    serve();
    if (request.signaled) expect(*own_, i, VerbsStatus::ok);
    EXPECT_EQ(none, polled(*own_).index);
  }
}

/// Completions from before a reset, polled after it, are not taken for those of later requests.
TEST_F(VerbsRings, GoOnBehindCompletionsThatWereNotPolled) {
  VerbsRequest bad = write_request(to(0, 8), from(0, 8));
  bad.opcode = static_cast<VerbsOpcode>(200);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Status::ok, (post_send<verbs_steps[4]>(one, own_->view(), 0, bad)));
  serve();
  own_->posted.sends_done = own_->posted.sends;
  go_on_behind(own_->posted.sends);
  for (std::uint32_t i = 0; i < End::depth - 1; ++i) ASSERT_EQ(Status::ok, post(write_request(to(0, 8), from(0, 8))));
  expect(*own_, 0, VerbsStatus::bad_opcode);
  for (std::uint32_t i = 1; i < 3; ++i) expect(*own_, i, VerbsStatus::flushed);
  EXPECT_EQ(Status::no_resource, post(write_request(to(0, 8), from(0, 8))));
  serve();
  for (std::uint32_t i = 0; i < End::depth - 1; ++i) expect(*own_, 3 + i, VerbsStatus::ok);
  EXPECT_EQ(Status::ok, post(write_request(to(0, 8), from(0, 8))));
}

void flip(Random& random, void* memory, std::size_t size) {
  static_cast<std::byte*>(memory)[random.below(size)] ^= std::byte{1} << random.below(8);
}

/// With any bytes in the ring, nothing outside of registered memory changes, every request has one completion, and the
/// queue pair works after a reset.
TEST_F(VerbsRings, EndureRandomBytes) {
  Random random("verbs");
  std::vector<std::uint64_t> outside = memory_;
  std::set<VerbsStatus> statuses;
  for (int round = 0; round < 20000; ++round) {
    for (std::size_t i = random.below(std::size_t{3}); i > 0; --i) {
      VerbsRequest receive = receive_request(to(random.below(words), static_cast<std::uint32_t>(random.below(64))));
      static_cast<void>(this->receive(receive));
      if (random.below(4) == 0) flip(random, &peer_->receives, sizeof peer_->receives);
    }
    const auto count = static_cast<std::uint32_t>(random.below(std::size_t{End::depth - 1}));
    for (std::uint32_t i = 0; i < count; ++i) {
      VerbsRequest request = write_request(to(i, 16), from(i, 16), 4);
      request.opcode = static_cast<VerbsOpcode>(1 + random.below(6));
      ASSERT_EQ(Status::ok, (post_send<verbs_steps[4]>(one, own_->view(), 0, request, false)));
    }
    for (std::size_t i = random.below(std::size_t{6}); i > 0; --i) flip(random, &own_->sends, sizeof own_->sends);
    ASSERT_EQ(Status::ok, ring_doorbell(one, own_->view(), 0));
    serve();
    std::uint32_t seen = 0;
    for (VerbsCompletion completion = polled(*own_); completion.index != none; completion = polled(*own_), ++seen) {
      ASSERT_LE(first_ + seen, completion.index);
      statuses.insert(completion.status);
    }
    ASSERT_LE(seen, count);
    while (polled(*peer_).index != none) {
    }
    reset();
  }
  std::copy_n(memory_.begin() + source, words, outside.begin() + source);
  std::copy_n(memory_.begin() + target, words, outside.begin() + target);
  EXPECT_TRUE(outside == memory_);
  EXPECT_GE(statuses.size(), 9u);
}

/// The same rings, served by an engine's thread that sleeps between requests.
TEST_F(VerbsRings, AreServedByAHostEngine) {
  HostEngine engine(client_, {.threads = 1});
  AdapterSource<VerbsServer> rings(ring_);
  engine.add(rings);
  VerbsCompletion completion;
  for (std::uint32_t i = 0; i < 20; ++i) {
    if (i % 10 == 9) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(Status::ok, post(fetch_add_request(to(0, 8), 2)));
    ASSERT_EQ(Status::ok, wait_completion(one, context_, own_->view(), 0, completion));
    EXPECT_EQ(2 * i, completion.value);
  }
  there_ = peer_->add_key(1, 5, 8 * target, 2 * bytes);
  ASSERT_EQ(Status::ok, post(write_request({bytes, 8, there_}, from(0, 8))));
  ASSERT_EQ(Status::ok, post(write_request(to(0, 8), from(0, 8))));
  for (const VerbsStatus status : {VerbsStatus::refused, VerbsStatus::flushed}) {
    ASSERT_EQ(Status::ok, wait_completion(one, context_, own_->view(), 0, completion));
    EXPECT_EQ(status, completion.status);
  }
  EXPECT_STREQ("no memory of its peer is there (any more)", rings.refusal());
  EXPECT_FALSE(has_failed_);
  EXPECT_TRUE(last_refusal_.empty());
  EXPECT_EQ(1u, engine.statistics().refused);
  EXPECT_EQ(Status::timeout, wait_completion(one, context_, own_->view(), 0, completion, Timeout{1'000'000}));
  context_.deadline_ns = 20'000'000;
  EXPECT_EQ(Status::deadline, wait_completion(one, context_, own_->view(), 0, completion));
  EXPECT_EQ(static_cast<std::uint32_t>(Status::deadline), records_[0].status);
  engine.remove(rings);
}

}  // namespace

}  // namespace beeline
