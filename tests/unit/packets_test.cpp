// SPDX-License-Identifier: Apache-2.0
// How packets read and write payload that is no multiple of a word: any remainder, and no byte beyond it.
#include "beeline/device/packets.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace beeline {

namespace {

TEST(PacketPayload, GathersAndScattersExactlyItsBytes) {
  std::array<std::byte, 32> source{}, target{};
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i + 1);
  for (std::size_t from = 0; from < 8; ++from)
    for (std::size_t to = 8; to < 16; ++to)
      for (std::size_t bytes = 0; bytes <= 8; ++bytes) {
        target.fill(std::byte{0xcc});
        const std::uint64_t word = detail::gather_bytes(source.data() + from, bytes);
        for (std::size_t i = bytes; i < 8; ++i) EXPECT_EQ(0u, (word >> (8 * i)) & 0xffu);
        detail::scatter_bytes(target.data() + to, word, bytes);
        for (std::size_t i = 0; i < target.size(); ++i)
          EXPECT_EQ(i >= to && i < to + bytes ? source[from + i - to] : std::byte{0xcc}, target[i]);
      }
}

TEST(PacketPayload, MoreThanEightBytesAreTheFirstEight) {
  std::array<std::byte, 16> source{};
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i + 1);
  for (std::size_t from = 0; from < 2; ++from)
    EXPECT_EQ(0x0807060504030201u + from * 0x0101010101010101u, detail::gather_bytes(source.data() + from, 15));
}

TEST(PacketState, CreditsHaveALineOfTheirOwn) {
  EXPECT_EQ(0u, sizeof(PacketState) % 128);
  EXPECT_EQ(0u, offsetof(PacketState, consumed) % 64);
}

}  // namespace

}  // namespace beeline
