// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/packets128.hpp"

#include <fmt/format.h>

#include "host/line_test.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

namespace {

std::string host_rank_obstacle(const World& world) {
  for (int rank = 0; rank < world.size(); ++rank)
    if (!world.device(rank).is_gpu()) return fmt::format("only GPUs store whole lines, and rank {} has none", rank);
  return {};
}

/// The torn lines that this rank saw, in words.
std::string torn_lines(World& world) {
  const std::vector<detail::LinesSeen> seen = detail::watch_lines(world);
  for (std::size_t sender = 0; sender < seen.size(); ++sender) {
    const auto [looks, torn] = seen[sender];
    if (torn != 0)
      return fmt::format("rank {} saw {} torn parts in {} looks at lines that rank {} stored", world.rank(), torn,
                         looks, sender);
  }
  return {};
}

std::string find_obstacle(World& world) {
  if (const std::string host_rank = host_rank_obstacle(world); !host_rank.empty()) return host_rank;
  const std::string mine = torn_lines(world);
  for (const auto& text : world.implementation().exchange("packets128_obstacle", std::as_bytes(std::span(mine))))
    if (!text.empty()) return {reinterpret_cast<const char*>(text.data()), text.size()};
  return {};
}

}  // namespace

std::string packets128_obstacle(World& world) {
  std::optional<std::string>& known = world.implementation().packets128_obstacle;
  if (!known) known = find_obstacle(world);
  return *known;
}

Packets128Channel packets128_channel(World& world, std::size_t slot_bytes, std::uint32_t depth,
                                     std::uint32_t first_sequence) {
  constexpr std::size_t most_slot_bytes = std::size_t{1} << 29;
  require(slot_bytes > 0 && slot_bytes <= most_slot_bytes, Status::invalid_argument,
          fmt::format("slots of {} bytes for packets of 128: 1 to 2^29", slot_bytes));
  const std::string obstacle = packets128_obstacle(world);
  require(obstacle.empty(), Status::unavailable,
          fmt::format("no packets of 128 bytes in this world: {}; packets (World::packet_channel) serve instead",
                      obstacle));
  const std::size_t lines = (slot_bytes + line_payload_bytes - 1) / line_payload_bytes;
  const std::size_t bytes_of_packets = lines * line_threads * 8;  // the same memory, as slots of packets
  return {world.packet_channel(bytes_of_packets, depth, Heap::symmetric, first_sequence)};
}

}  // namespace beeline
