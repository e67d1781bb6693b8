// SPDX-License-Identifier: Apache-2.0
// The tables of memory keys, which work without UCX.
#include "transports/memory_keys.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "memory/memory_users.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

/// A key of 100 bytes; `handle` counts its copies.
PeerKey key_at(std::uint64_t first, std::uint64_t id, const std::shared_ptr<int>& handle) {
  return {{id, first, 100, 0x1000 + first}, handle};
}

TEST(PeerKeys, AreFoundByTheirPieces) {
  const auto handle = std::make_shared<int>();
  PeerKeys keys;
  EXPECT_EQ(nullptr, keys.find(0)) << "there are none";
  EXPECT_TRUE(keys.add(key_at(1000, 1, handle)));
  EXPECT_TRUE(keys.add(key_at(1100, 2, handle)));
  EXPECT_FALSE(keys.add(key_at(1100, 3, handle))) << "the same piece";
  EXPECT_EQ(nullptr, keys.find(999));
  ASSERT_NE(nullptr, keys.find(1000));
  EXPECT_EQ(1u, keys.find(1000)->offer.id);
  EXPECT_EQ(1u, keys.find(1099)->offer.id);
  EXPECT_EQ(2u, keys.find(1100)->offer.id);
  EXPECT_EQ(1u, keys.find(1001)->offer.id) << "not the last one found";
  EXPECT_EQ(nullptr, keys.find(1200));
}

TEST(PeerKeys, AmongManyAreFound) {
  const auto handle = std::make_shared<int>();
  PeerKeys keys;
  for (std::uint64_t i = 0; i < 10'000; ++i) EXPECT_TRUE(keys.add(key_at(i * 128, i + 1, handle)));
  for (std::uint64_t i = 0; i < 10'000; i += 7) {
    ASSERT_NE(nullptr, keys.find(i * 128 + 99));
    EXPECT_EQ(i + 1, keys.find(i * 128 + 99)->offer.id);
    EXPECT_EQ(nullptr, keys.find(i * 128 + 100)) << "between two pieces";
  }
}

TEST(PeerKeys, EndWithTheLastPutThatUsesThem) {
  const auto handle = std::make_shared<int>();
  PeerKeys keys;
  EXPECT_TRUE(keys.add(key_at(1000, 1, handle)));
  PeerKey* const used = keys.find(1000);
  used->uses = 2;
  EXPECT_FALSE(keys.end(1)) << "puts are under way";
  EXPECT_EQ(nullptr, keys.find(1000)) << "no further one begins";
  EXPECT_TRUE(keys.knows(1000)) << "and none is asked for";
  EXPECT_FALSE(keys.release(1000));
  EXPECT_EQ(2, handle.use_count());
  EXPECT_EQ(1u, keys.release(1050)) << "of the piece that holds the offset";
  EXPECT_EQ(1, handle.use_count()) << "UCX has been told";
  EXPECT_TRUE(keys.add(key_at(1000, 2, handle))) << "the place has a piece again";
  ++keys.find(1000)->uses;
  EXPECT_FALSE(keys.release(1000)) << "nobody takes it back";
  EXPECT_TRUE(keys.end(2));
  EXPECT_TRUE(keys.end(2)) << "unknown";
  EXPECT_EQ(0u, keys.size());
}

TEST(KeyedPieces, KnowWhoHasTheirKeys) {
  KeyedPieces pieces;
  const std::vector<std::byte> memory(300);
  EXPECT_EQ(nullptr, pieces.at(memory.data()));
  KeyedPiece& first = pieces.add({memory.data(), 100});
  KeyedPiece& second = pieces.add({memory.data() + 100, 200});
  EXPECT_NE(first.id, second.id);
  first.registration = std::make_shared<int>();
  first.holders = {3, 5};
  second.holders = {5};
  EXPECT_EQ((std::pair<std::uint64_t, std::uint64_t>{1, 100}), pieces.registered()) << "UCX has not taken the second";
  const std::uint64_t before = first.id;
  pieces.give_back(before, 5);
  pieces.give_back(before + 100, 5);
  EXPECT_EQ((std::set<int>{3}), first.holders);
  EXPECT_EQ((std::set<int>{5}), second.holders);
  pieces.remove(memory.data());
  EXPECT_EQ(nullptr, pieces.at(memory.data()));
  EXPECT_NE(before, pieces.add({memory.data(), 100}).id) << "late answers concern no other piece";
}

TEST(Footprints, AreThoseOfMessagesThatMayNotBeDone) {
  Footprints prints;
  EXPECT_FALSE(prints.meet(0, 1000));
  prints.add(1, 100, 50);
  prints.add(2, 400, 8);
  prints.add(2, 500, 8);
  EXPECT_FALSE(prints.meet(0, 100));
  EXPECT_TRUE(prints.meet(0, 101));
  EXPECT_TRUE(prints.meet(149, 1));
  EXPECT_FALSE(prints.meet(150, 250));
  EXPECT_TRUE(prints.meet(150, 251));
  prints.end_up_to(1);
  EXPECT_FALSE(prints.meet(100, 50));
  EXPECT_TRUE(prints.meet(507, 1));
  prints.end_up_to(2);
  EXPECT_EQ(0u, prints.size());
}

TEST(KeyOffers, TravelBeforeTheirKeys) {
  const std::vector<std::byte> key = {std::byte{1}, std::byte{2}};
  const std::vector<std::byte> message = message_with({7, 64, 128, 4096}, key);
  const auto found = offer_in(message);
  ASSERT_TRUE(found);
  EXPECT_EQ(7u, found->first.id);
  EXPECT_EQ(64u, found->first.first);
  EXPECT_EQ(128u, found->first.bytes);
  EXPECT_EQ(4096u, found->first.address);
  EXPECT_TRUE(std::equal(key.begin(), key.end(), found->second.begin(), found->second.end()));
  EXPECT_TRUE(offer_in(message_with({}, {}))->second.empty());
  EXPECT_FALSE(offer_in(std::span(message).first(sizeof(KeyOffer) - 1)));
}

class Noting final : public UnmapWatcher {
 public:
  void before_unmap(const std::byte*, std::int64_t deadline_ns) override {
    ++before;
    if (deadline_ns == 0) throw std::runtime_error("it is in use");
  }
  void after_unmap(const std::byte*) noexcept override { ++after; }
  int before = 0, after = 0;
};

TEST(UnmapWatchers, HearOfTheEndToo) {
  MemoryUsers users;
  Noting first, second;
  users.watch(first);
  users.watch(second);
  const std::byte piece{};
  {
    const MemoryUsers::Unmapping unmapping(users, &piece, 1);
    EXPECT_EQ(2, first.before + second.before);
    EXPECT_EQ(0, first.after + second.after);
  }
  EXPECT_EQ(2, first.after + second.after);
  EXPECT_THROW(MemoryUsers::Unmapping(users, &piece, 0), std::runtime_error);
  EXPECT_EQ(2, first.after) << "the piece stays, and it has heard so";
  EXPECT_EQ(1, second.after) << "it was not asked";
  users.unwatch(first);
  EXPECT_THROW(MemoryUsers::Unmapping(users, &piece, 0), std::runtime_error);
  EXPECT_EQ(2, first.before);
  users.unwatch(second);
}

TEST(Transports, WithRemoteAccessAreThoseOfHardware) {
  for (const char* transport : {"rc_verbs", "rc_mlx5", "dc_mlx5"}) EXPECT_TRUE(has_remote_access(transport));
  for (const char* transport : {"tcp", "cma", "posix", "ud_mlx5", "self"}) EXPECT_FALSE(has_remote_access(transport));
}

}  // namespace

}  // namespace beeline_test
