// SPDX-License-Identifier: Apache-2.0
// The signature of calls: that it differs between calls, how often it collides, and when a round of another call counts
// as reached.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "beeline/collectives/impl/session_wait.hpp"
#include "beeline/collectives/operation.hpp"
#include "tests/support/random.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

/// A call whose fields have random values, each any of its values.
CallDescription random_call(Random& random) {
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random.next() % end); };
  const bool untyped = below(8) == 0;
  return {.operation = static_cast<Operation>(below(operations)),
          .element = {static_cast<ElementType>(below(element_types)), untyped ? below(1 << 23) : 0},
          .reduction = static_cast<Reduction>(below(reductions)),
          .algorithm = static_cast<Algorithm>(below(algorithms)),
          .root = below(max_ranks),
          .slices = 1 + below(1024),
          .count = random.next() >> below(64)};
}

bool same(const CallDescription& a, const CallDescription& b) { return a.packed() == b.packed() && a.count == b.count; }

TEST(CallDescription, IsUnpackedAsItWasPacked) {
  Random random("packed calls");
  for (int i = 0; i < 10'000; ++i) {
    const CallDescription call = random_call(random), again = unpacked_call(call.packed(), call.count);
    ASSERT_TRUE(same(call, again));
    ASSERT_EQ(call.operation, again.operation);
    ASSERT_EQ(call.element.type, again.element.type);
    ASSERT_EQ(call.element.untyped_bytes, again.element.untyped_bytes);
    ASSERT_EQ(call.reduction, again.reduction);
    ASSERT_EQ(call.algorithm, again.algorithm);
    ASSERT_EQ(call.root, again.root);
    ASSERT_EQ(call.slices, again.slices);
  }
}

/// The mistakes that programs make, with calls of many sizes: the signature detects each of them.
TEST(CallDescription, DiffersInItsSignatureWhereOneFieldDiffers) {
  for (std::uint64_t count = 1; count < std::uint64_t{1} << 40; count *= 2) {
    const CallDescription call{.operation = Operation::allreduce, .algorithm = Algorithm::ll_one_shot, .count = count};
    std::vector<CallDescription> others(6, call);
    others[0].operation = Operation::reduce;
    others[1].element = {ElementType::float32};
    others[2].reduction = Reduction::maximum;
    others[3].algorithm = Algorithm::two_shot;
    others[4].root = 1;
    others[5].slices = 2;
    for (const std::uint64_t other : {count - 1, count + 1, 2 * count, count * 4, count * 8, std::uint64_t{0}})
      others.emplace_back(call).count = other;
    for (const CallDescription& other : others) EXPECT_NE(call.signature(), other.signature()) << count;
  }
}

/// Of 2^24 pairs 256 are expected to collide, with a standard deviation of 16.
TEST(CallDescription, CollidesWithAChanceOfTwoToTheMinus16) {
  Random random("pairs of calls");
  int collisions = 0;
  for (int i = 0; i < 1 << 24; ++i) {
    const CallDescription a = random_call(random), b = random_call(random);
    if (!same(a, b) && a.signature() == b.signature()) ++collisions;
  }
  EXPECT_GT(collisions, 256 - 6 * 16);
  EXPECT_LT(collisions, 256 + 6 * 16);
}

/// Counts that are close to each other collide as rarely.
TEST(CallDescription, SpreadsNeighbouringCounts) {
  const CallDescription call{.operation = Operation::broadcast, .root = 0};
  std::set<std::uint32_t> signatures;
  for (std::uint64_t count = 0; count < 1 << 12; ++count) {
    CallDescription other = call;
    other.count = count;
    signatures.insert(other.signature());
  }
  EXPECT_GT(signatures.size(), (1u << 12) - 512);
}

/// Signatures depend on all previous calls: members whose calls differed once keep different signatures.
TEST(CallDescription, KeepsSignaturesApartFromCallToCall) {
  const CallDescription call{.operation = Operation::allreduce, .count = 100};
  std::set<std::uint32_t> signatures;
  constexpr std::uint32_t all = 1u << detail::signature_bits;
  for (std::uint32_t previous = 0; previous < all; ++previous) signatures.insert(call.signature(previous));
  EXPECT_EQ(all, signatures.size());
  EXPECT_LT(*signatures.rbegin(), all);
}

TEST(HasLeft, ComparesTheSignaturesOfTheLastTwoRounds) {
  using detail::has_left;
  using detail::one_round;
  constexpr std::uint64_t last = 7 * one_round + 0x1111;
  constexpr std::uint32_t signatures = 0x1111 | 0x2222u << 16;  // of round 7, and of round 6
  EXPECT_FALSE(has_left(5 * one_round + 0x3333, last, signatures));
  EXPECT_TRUE(has_left(6 * one_round + 0x2222, last, signatures));
  EXPECT_FALSE(has_left(6 * one_round + 0x1111, last, signatures));
  EXPECT_TRUE(has_left(7 * one_round + 0x1111, last, signatures));
  EXPECT_FALSE(has_left(7 * one_round + 0x2222, last, signatures));
  EXPECT_TRUE(has_left(8 * one_round + 0x4444, last, signatures));  // a member ahead has compared this one's
}

TEST(HasReached, TellsRoundsOfOtherCallsApart) {
  using detail::has_reached;
  using detail::one_round;
  const std::uint64_t round = 5 * one_round + 0x1234;
  EXPECT_TRUE(has_reached(round, round));
  EXPECT_FALSE(has_reached(round - one_round, round));
  EXPECT_FALSE(has_reached(0, round));
  for (const std::uint64_t signature : {0x0000u, 0x1233u, 0x1235u, 0xffffu}) {
    EXPECT_FALSE(has_reached(5 * one_round + signature, round));  // the same round of another call
    EXPECT_TRUE(has_reached(6 * one_round + signature, round));   // one round ahead, in any call
    EXPECT_FALSE(has_reached(4 * one_round + signature, round));
  }
}

}  // namespace

}  // namespace beeline_test
