// SPDX-License-Identifier: Apache-2.0
// The RMA-style adapter at the level of bytes: refused descriptors, contents of notifications, and notification queues
// that are not freed. Descriptors are stored into the page directly, without the calls that check them.
#include "control/adapters/rma_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "beeline/control/rma.hpp"
#include "beeline/host/rma_ports.hpp"
#include "control/adapters/adapter_source.hpp"
#include "control/host_engine.hpp"
#include "tests/support/random.hpp"
#include "tests/unit/lone_client.hpp"

namespace beeline {

namespace {

/// Two ports of one rank, which is its own peer.
class RmaServers : public LoneClient {
 protected:
  static constexpr std::uint32_t ports = 2, depth = 4, locks = 3;
  static constexpr std::uint64_t locks_offset = 4096;

  RmaServers() {
    for (std::uint32_t vpid = 0; vpid < ports; ++vpid) engine_.add(sources_[vpid]);
  }
  /// The client; its memory is mapped while `is_mapped_`.
  const EngineClient& client() {
    client_.piece_at = [this](const void*) {
      return is_mapped_ ? std::span<const std::byte>(context_.range, bytes) : std::span<const std::byte>();
    };
    return client_;
  }
  [[nodiscard]] RmaServed served(std::uint32_t vpid) {
    RmaServed served{};
    served.memory = &memory_of_ports_[vpid], served.queue = &queues_[std::size_t{vpid} * depth];
    served.members = &self_, served.nodes = 1, served.vpid = vpid;
    served.ports = ports, served.depth = depth, served.locks = locks;
    served.slot_shift = min_slot_shift, served.locks_offset = locks_offset, served.range = context_.range;
    return served;
  }
  ~RmaServers() override {
    for (const auto& source : sources_) engine_.remove(source);
  }

  [[nodiscard]] RmaPort port(std::uint32_t vpid = 0) {
    return RmaPortsView{memory_of_ports_.data(), queues_.data(), ports, depth, locks, nullptr}.port(vpid);
  }
  [[nodiscard]] std::uint64_t address(std::uint64_t offset) const {
    return reinterpret_cast<std::uintptr_t>(context_.range) + offset;
  }
  /// A put of eight bytes from offset 64 to offset 128, which notifies the requester.
  [[nodiscard]] static RmaRequest good() { return {RmaCommand::put, rma_requester, 0, 1, 8, 64, 128}; }

  /// Stores a descriptor, and waits until its request is complete.
  void post(const RmaDescriptor& descriptor, bool is_logical = true) {
    RmaPage& page = port().memory->page;
    detail::store_descriptor<detail::DirectAccess>(port(), is_logical ? page.logical : page.physical, descriptor);
    ASSERT_EQ(Status::ok, rma_quiet(context_, port()));
  }
  void post(const RmaRequest& request, bool is_logical = true) { post(request.descriptor(), is_logical); }
  /// The next notification of a port; word 0 if there is none.
  [[nodiscard]] RmaNotification next(std::uint32_t vpid = 0) {
    RmaNotification notification{};
    return rma_wait(context_, port(vpid), notification, Timeout::test()) == Status::ok ? notification
                                                                                       : RmaNotification{};
  }
  /// Checks that a good request is carried out, and that its notification arrives.
  void expect_usable() {
    memory_[8] = ++value_;
    post(good());
    const RmaNotification notification = next();
    EXPECT_EQ(rma_requester, notification.kind());
    EXPECT_EQ(RmaError::none, notification.error()) << describe(notification.error());
    EXPECT_EQ(value_, memory_[16]);
    rma_free(port());
  }

  std::uint64_t other_abort_words_[max_teams] = {};
  std::uint64_t value_ = 0;
  std::vector<RmaPortMemory> memory_of_ports_ = std::vector<RmaPortMemory>(ports);
  std::vector<RmaNotification> queues_ = std::vector<RmaNotification>(ports * depth);
  RmaMember self_{memory_of_ports_.data(), queues_.data(), 0};
  std::atomic<bool> is_mapped_{true};
  HostEngine engine_{client(), {}};
  RmaServed served_[ports] = {served(0), served(1)};
  AdapterSource<RmaServer> sources_[ports] = {AdapterSource<RmaServer>(served_[0]),
                                              AdapterSource<RmaServer>(served_[1])};
};

RmaRequest with(RmaRequest request, void (*change)(RmaRequest&)) {
  change(request);
  return request;
}

TEST_F(RmaServers, TheFormatIsTheDocumentedOne) {
  const RmaRequest request{RmaCommand::get, rma_completer | rma_responder, 0xabcd, 0x42, max_rma_bytes, 7, 9};
  const RmaDescriptor descriptor = request.descriptor();
  EXPECT_EQ(0x7fffff06abcd420bu, descriptor.words[0]);
  EXPECT_EQ(7u, descriptor.words[1]);
  EXPECT_EQ(9u, descriptor.words[2]);
  const DecodedRma decoded = decode(descriptor);
  EXPECT_EQ(RmaError::none, decoded.error);
  EXPECT_EQ(descriptor.words[0], decoded.request.descriptor().words[0]);
  EXPECT_EQ(max_rma_bytes, decoded.request.bytes);
  const std::uint64_t word = notification_word(request, rma_responder, RmaError::overflow, 0x1234, 0x56);
  EXPECT_EQ(0x7fffff123456c024u, word);
  const RmaNotification notification{0x0000000300000005, word};
  EXPECT_EQ(rma_responder, notification.kind());
  EXPECT_EQ(RmaCommand::get, notification.command());
  EXPECT_EQ(RmaError::overflow, notification.error());
  EXPECT_EQ(0x1234u, notification.node());
  EXPECT_EQ(0x56u, notification.vpid());
  EXPECT_EQ(max_rma_bytes, notification.bytes());
  EXPECT_EQ(3u, notification.lock());
  EXPECT_EQ(5u, notification.lock_value());
}

/// For every command the server accepts exactly the sets of units in Table 2.2.
TEST_F(RmaServers, TakeTheSetsOfTheTable) {
  const std::uint32_t legal[][4] = {{0, 1, 3, 99}, {0, 2, 6, 99}, {0, 2, 6, 99}, {3, 99, 99, 99}};
  for (const RmaCommand command : {RmaCommand::put, RmaCommand::get, RmaCommand::lock, RmaCommand::notify})
    for (std::uint32_t units = 0; units < 8; ++units) {
      const auto row = static_cast<std::size_t>(command) - 1;
      const bool is_legal = std::find(legal[row], legal[row] + 4, units) != legal[row] + 4;
      RmaRequest request = good();
      request.command = command, request.notifications = units;
      if (command == RmaCommand::lock) request.bytes = 4, request.source = 0, request.destination = rma_operands(0, 0);
      if (command == RmaCommand::notify) request.bytes = 1, request.source = 0;
      post(request);
      const bool locally = !is_legal || (units & local_unit(command)) != 0;
      const bool remotely = is_legal && (units & remote_unit(command)) != 0;
      const RmaNotification mine = next(0), theirs = next(1);
      EXPECT_EQ(locally, mine.word != 0) << describe(mine.error()) << ", set " << units;
      EXPECT_EQ(remotely, theirs.word != 0) << "set " << units;
      if (locally) {
        EXPECT_EQ(is_legal ? RmaError::none : RmaError::notifications, mine.error());
        EXPECT_EQ(local_unit(command), mine.kind());
        EXPECT_EQ(request.bytes, mine.bytes());
        EXPECT_EQ(1u, mine.vpid());
      }
      if (remotely) {
        EXPECT_EQ(remote_unit(command), theirs.kind());
        EXPECT_EQ(command, theirs.command());
        EXPECT_EQ(0u, theirs.vpid());
      }
      EXPECT_EQ(0u, next(0).word + next(1).word) << "nothing more";
      for (const std::uint32_t vpid : {0u, 1u}) rma_free(port(vpid));
    }
}

TEST_F(RmaServers, RefuseBadDescriptorsAndGoOn) {
  const auto flipped = [](unsigned bit) {
    RmaDescriptor descriptor = good().descriptor();
    descriptor.words[0] ^= std::uint64_t{1} << bit;
    return descriptor;
  };
  const auto changed = [](void (*change)(RmaRequest&)) { return with(good(), change).descriptor(); };
  RmaDescriptor swapped = good().descriptor();
  swapped.words[0] = __builtin_bswap64(swapped.words[0]);
  const std::pair<RmaDescriptor, RmaError> bad[] = {
      {flipped(0), RmaError::malformed},
      {flipped(1), RmaError::malformed},
      {flipped(6), RmaError::malformed},
      {flipped(7), RmaError::malformed},
      {flipped(35), RmaError::malformed},
      {flipped(39), RmaError::malformed},
      {flipped(63), RmaError::malformed},
      {swapped, RmaError::malformed},
      {changed([](RmaRequest& r) { r.command = RmaCommand{0}; }), RmaError::command},
      {changed([](RmaRequest& r) { r.command = RmaCommand{5}; }), RmaError::command},
      {changed([](RmaRequest& r) { r.command = RmaCommand{15}; }), RmaError::command},
      {changed([](RmaRequest& r) { r.node = 1; }), RmaError::port},
      {changed([](RmaRequest& r) { r.node = 65'535; }), RmaError::port},
      {changed([](RmaRequest& r) { r.vpid = 2; }), RmaError::port},
      {changed([](RmaRequest& r) { r.vpid = 255; }), RmaError::port},
      {changed([](RmaRequest& r) { r.source = ~std::uint64_t{0}; }), RmaError::address},
      {changed([](RmaRequest& r) { r.source = (std::uint64_t{1} << min_slot_shift) - 4; }), RmaError::address},
      {changed([](RmaRequest& r) { r.destination = bytes - 7; }), RmaError::address},
      {changed([](RmaRequest& r) { r.destination = std::uint64_t{1} << min_slot_shift; }), RmaError::address},
      {changed([](RmaRequest& r) { r.bytes = bytes; }), RmaError::address},
      {changed([](RmaRequest& r) { r.bytes = max_rma_bytes; }), RmaError::address},
      {changed([](RmaRequest& r) { r.source = 124; }), RmaError::address},  // the two overlap
      {changed([](RmaRequest& r) { r.command = RmaCommand::lock, r.notifications = rma_none; }), RmaError::malformed},
      {RmaRequest{RmaCommand::lock, rma_none, 0, 0, 4, locks, 0}.descriptor(), RmaError::address},
      {RmaRequest{RmaCommand::notify, 3, 0, 0, 2, 0, 0}.descriptor(), RmaError::malformed},
      {RmaRequest{RmaCommand::notify, 3, 0, 0, 1, 1, 0}.descriptor(), RmaError::malformed},
  };
  for (std::size_t i = 0; i < std::size(bad); ++i) {
    const std::vector<std::uint64_t> before = memory_;
    post(bad[i].first);
    const RmaNotification notification = next();
    EXPECT_NE(0u, notification.word) << i;
    EXPECT_EQ(bad[i].second, notification.error()) << i << ": " << describe(notification.error());
    EXPECT_EQ(0u, next(1).word) << "nobody else is notified";
    EXPECT_EQ(before, memory_) << i;
    expect_usable();
  }
  post(RmaRequest{RmaCommand::put, rma_requester, 0, 1, 8, 8, address(128)}, false);  // from address 8
  EXPECT_EQ(RmaError::address, next().error());
  EXPECT_FALSE(has_failed_);
  EXPECT_STREQ("memory of its poster is not there", sources_[0].refusal());
}

TEST_F(RmaServers, MemoryThatIsFreedIsNotTouched) {
  expect_usable();
  is_mapped_ = false;
  ++unmaps_;
  memory_[8] = 99;
  post(good());
  EXPECT_EQ(RmaError::address, next().error());
  EXPECT_EQ(value_, memory_[16]);
  EXPECT_STREQ("no memory of its peer is there (any more)", sources_[0].refusal());
  rma_free(port());
  is_mapped_ = true;
  expect_usable();
}

TEST_F(RmaServers, PhysicalAddressesAreOfTheProcess) {
  std::uint64_t word = 77, back = 0;
  const auto here = reinterpret_cast<std::uintptr_t>(&word), there = reinterpret_cast<std::uintptr_t>(&back);
  post(RmaRequest{RmaCommand::put, 3, 0, 1, 8, here, address(256)}, false);
  EXPECT_EQ(77u, memory_[32]);
  EXPECT_EQ(here, next().address);
  EXPECT_EQ(256u, next(1).address) << "a remote notification has an offset";
  post(RmaRequest{RmaCommand::get, 6, 0, 1, 8, address(256), there}, false);
  EXPECT_EQ(77u, back);
  EXPECT_EQ(there, next().address);
  EXPECT_EQ(256u, next(1).address);
}

TEST_F(RmaServers, ALockAddsIfItIsEqual) {
  auto* const lock = reinterpret_cast<std::uint32_t*>(bytes_at(locks_offset / 8)) + 2;
  const RmaTo to{0, rma_completer, 1};
  for (const auto& [compare, add, expected, after] :
       {std::array{0u, 5u, 0u, 5u}, std::array{4u, 1u, 5u, 5u}, std::array{5u, ~0u, 5u, 4u}}) {
    EXPECT_EQ(Status::ok, rma_lock(context_, port(), 2, compare, add, to));
    EXPECT_EQ(Status::ok, rma_quiet(context_, port()));
    const RmaNotification notification = next();
    EXPECT_EQ(2u, notification.lock());
    EXPECT_EQ(expected, notification.lock_value());
    EXPECT_EQ(after, *lock);
    rma_free(port());
  }
}

/// Entries that were read but not freed stay occupied: later notifications are lost, the loss is reported once, and the
/// queue works again after they are freed.
TEST_F(RmaServers, AQueueThatIsNotFreedOverflows) {
  RmaNotification notification{};
  for (std::uint32_t i = 0; i < depth; ++i) {
    post(good());
    EXPECT_NE(0u, next().word);
  }
  for (int i = 0; i < 3; ++i) post(good());
  EXPECT_EQ(Status::no_resource, rma_wait(context_, port(), notification));
  EXPECT_EQ(Status::timeout, rma_wait(context_, port(), notification, Timeout::test()));
  EXPECT_EQ(3u, port().memory->overflowed.value);
  rma_free(port());
  for (int lap = 0; lap < 3; ++lap) expect_usable();
}

/// Unread notifications are kept. The poster is notified that its target's notification was lost.
TEST_F(RmaServers, ATargetThatDoesNotReadOverflows) {
  const RmaRequest put = with(good(), [](RmaRequest& r) { r.notifications = rma_requester | rma_completer; });
  for (std::uint32_t i = 0; i <= depth; ++i) {
    memory_[8] = 100 + i;
    post(put);
    EXPECT_EQ(i < depth ? RmaError::none : RmaError::overflow, next().error());
    EXPECT_EQ(100 + i, memory_[16]) << "the data are there";
    rma_free(port());
  }
  RmaNotification notification{};
  for (std::uint32_t i = 0; i < depth; ++i) EXPECT_EQ(Status::ok, rma_wait(context_, port(1), notification));
  EXPECT_EQ(Status::no_resource, rma_wait(context_, port(1), notification));
  rma_free(port(1));
  post(put);
  EXPECT_EQ(RmaError::none, next().error());
  EXPECT_EQ(Status::ok, rma_wait(context_, port(1), notification));
}

TEST_F(RmaServers, CallsRefuseWhatTheyCanSee) {
  std::uint64_t* const word = memory_.data();
  const auto put = [&](const RmaPort& through, const RmaTo& to) {
    return rma_put(Thread{}, context_, through, word + 16, word + 8, 1, to);
  };
  const auto get = [&](const RmaTo& to) { return rma_get(Thread{}, context_, port(), word + 16, word + 8, 1, to); };
  constexpr Status refused = Status::invalid_argument;
  EXPECT_EQ(refused, put(port(ports), {0})) << "a page that there is not";
  EXPECT_EQ(refused, put(port(), {0, rma_none, ports}));
  for (const std::uint32_t set : {2u, 4u, 5u, 6u, 7u, 8u}) EXPECT_EQ(refused, put(port(), {0, set})) << set;
  for (const std::uint32_t set : {1u, 3u, 4u, 5u, 7u, 8u}) EXPECT_EQ(refused, get({0, set})) << set;
  EXPECT_EQ(refused, rma_lock(context_, port(), locks, 0, 1, {0}));
  EXPECT_EQ(refused, rma_lock(context_, port(), 0, 0, 1, {1}));
  EXPECT_EQ(refused, rma_notify(context_, port(), 1, {0, rma_requester}));
  RmaNotification notification{};
  EXPECT_EQ(refused, rma_wait(context_, port(ports), notification));
  EXPECT_EQ(refused, rma_quiet(context_, port(ports)));
  rma_free(port(ports));
  EXPECT_EQ(Status::ok, rma_put(Thread{}, context_, port(), word + 16, word + 8, 0, RmaTo{0, rma_requester}));
  EXPECT_EQ(0u, next().word) << "nothing was posted";
  EXPECT_EQ(0u, claims_) << "nothing is recorded";
  EXPECT_EQ(refused, put(port(), {1})) << "a peer that there is not";
  EXPECT_EQ(1u, claims_);
}

/// A request in the page is not overwritten before it is complete.
TEST_F(RmaServers, AFullPageTimesOut) {
  engine_.remove(sources_[0]);
  std::uint64_t* const word = memory_.data();
  const auto put = [&](Timeout timeout) {
    return rma_put(Thread{}, context_, port(), word + 16, word + 8, 1, RmaTo{0, rma_requester}, timeout);
  };
  EXPECT_EQ(Status::ok, put(Timeout::test()));
  EXPECT_EQ(Status::timeout, put(Timeout::test()));
  EXPECT_EQ(Status::timeout, rma_quiet(context_, port(), {1'000'000}));
  context_.deadline_ns = 20'000'000;
  EXPECT_EQ(Status::deadline, rma_quiet(context_, port()));
  EXPECT_EQ(1u, claims_);
  engine_.add(sources_[0]);
  context_.deadline_ns = 10'000'000'000;
  context_.abort_words = context_.host_abort_words = other_abort_words_;
  EXPECT_EQ(Status::ok, rma_quiet(context_, port()));
  EXPECT_NE(0u, next().word);
}

/// Every descriptor, even of random bits, is carried out or refused, and the port works afterwards.
TEST_F(RmaServers, AnyDescriptorIsOver) {
  beeline_test::Random random("rma descriptors");
  const auto some_address = [&]() -> std::uint64_t {
    switch (random.below(5)) {
      case 0:
        return random.below(std::size_t{4096});
      case 1:
        return address(random.below(bytes));
      case 2:
        return random.below(2 * bytes);
      case 3:
        return random.next() | std::uint64_t{1} << 63;  // no address of a process
      default:
        return locks;
    }
  };
  for (int i = 0; i < 5'000; ++i) {
    RmaDescriptor descriptor = {{random.next(), some_address(), some_address()}};
    if (random.below(4) != 0) {  // a valid head
      const auto size = random.coin() ? random.below(std::size_t{64}) + 1 : random.below(max_rma_bytes) + 1;
      descriptor.words[0] = RmaRequest{static_cast<RmaCommand>(random.below(6)),
                                       static_cast<std::uint32_t>(random.below(8)),
                                       static_cast<std::uint32_t>(random.below(2)),
                                       static_cast<std::uint32_t>(random.below(3)),
                                       size,
                                       0,
                                       0}
                                .descriptor()
                                .words[0];
    }
    if (descriptor.words[0] == 0) continue;
    const bool is_logical = random.coin();
    if (decode(descriptor).request.command == RmaCommand::get) {  // must not write to other memory of this program
      descriptor.words[0] &= ~RmaDescriptorFields::Size::in(~std::uint64_t{63});
      const std::uint64_t within = random.below(bytes - 64), beyond = std::uint64_t{1} << 62;
      descriptor.words[2] = random.below(8) == 0 ? beyond : is_logical ? within : address(within);
    }
    post(descriptor, is_logical);
    for (const std::uint32_t vpid : {0u, 1u}) {
      for (RmaNotification found = next(vpid); found.word != 0; found = next(vpid)) {
        EXPECT_LE(found.error(), RmaError::overflow);
        EXPECT_TRUE(found.kind() == rma_requester || found.kind() == rma_completer || found.kind() == rma_responder);
      }
      rma_free(port(vpid));
    }
    ASSERT_FALSE(HasFailure());
  }
  expect_usable();
  EXPECT_FALSE(has_failed_) << failure_;
}

}  // namespace

}  // namespace beeline
