// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Plans of messages that travel around a ring of ranks by packet channels, LL or LL128.

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "beeline/host/packets.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test {

/// One message of a plan that all ranks share: its size, and offsets in the source and in the destination.
struct Message {
  std::size_t bytes, source_offset, destination_offset;
};

template <class Protocol>
struct PlanArguments {
  beeline::ProtocolChannel<Protocol> channel;
  const Message* messages;
  std::uint32_t count;
  const std::byte* source;
  std::byte* destination;
  std::uint32_t to, from;
};

/// Opens the ports to both neighbours of a ring; a single port if both are the same rank.
template <class Group, class Arguments, class Use>
BEELINE_HOST_DEVICE void with_ports(const Group& group, const beeline::Context& ctx, const Arguments& a, Use use) {
  if (a.to == a.from) {
    beeline::PacketPort port(group, ctx, a.channel, a.to);
    use(port, port);
  } else {
    beeline::PacketPort out(group, ctx, a.channel, a.to), in(group, ctx, a.channel, a.from);
    use(out, in);
  }
}

struct Plan {
  std::vector<Message> messages;
  std::size_t source_bytes = 0, destination_bytes = 0;
};

/// A plan of `count` messages. The first have the sizes in `edges`; the sizes of the others are random, up to `most`.
inline Plan make_plan(Random& random, std::size_t count, std::span<const std::size_t> edges, std::size_t most) {
  Plan plan;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bytes = i < edges.size() ? std::min(edges[i], most) : random.message_bytes(most);
    plan.messages.push_back(
        {bytes, plan.source_bytes + random.offset() % 24, plan.destination_bytes + 8 + random.offset() % 24});
    plan.source_bytes = plan.messages.back().source_offset + bytes;
    plan.destination_bytes = plan.messages.back().destination_offset + bytes + 8;
  }
  return plan;
}

/// The expected contents of the receiver's memory: the messages of `sender`, with guards between them.
inline std::vector<std::byte> expected_image(const Plan& plan, const std::vector<std::byte>& sent, std::byte guard) {
  std::vector<std::byte> image(plan.destination_bytes, guard);
  for (const Message& message : plan.messages)
    std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(message.source_offset), message.bytes,
                image.begin() + static_cast<std::ptrdiff_t>(message.destination_offset));
  return image;
}

/// Collective. Runs the plan by `kernel`: each rank sends every message ahead, and must receive those from behind.
template <class Protocol, class Kernel>
void check_plan(RankTest& test, const beeline::ProtocolChannel<Protocol>& channel, const Plan& plan,
                const std::pair<beeline::Heap, beeline::Heap>& heaps, Kernel kernel, const std::string& what) {
  beeline::World& world = test.world();
  constexpr std::byte guard{0x5a};
  const beeline::SymmetricArray<Message> messages(world, plan.messages.size());
  const beeline::SymmetricArray<std::byte> source(world, plan.source_bytes, heaps.first);
  const beeline::SymmetricArray<std::byte> destination(world, plan.destination_bytes, heaps.second);
  world.copy(messages.data(), plan.messages.data(), messages.bytes());
  const std::uint64_t key = test.random().next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), plan.source_bytes); };
  test.write(source.data(), data_of(test.rank()));
  test.write(destination.data(), std::vector<std::byte>(plan.destination_bytes, guard));
  test.run(test.shape(1, true), kernel,
           PlanArguments<Protocol>{channel, messages.data(), static_cast<std::uint32_t>(plan.messages.size()),
                                   source.data(), destination.data(), static_cast<std::uint32_t>(test.ahead(1)),
                                   static_cast<std::uint32_t>(test.behind(1))},
           what);
  check_bytes(expected_image(plan, data_of(test.behind(1)), guard),
              test.read(destination.data(), plan.destination_bytes), what);
}

}  // namespace beeline_test
