// SPDX-License-Identifier: Apache-2.0
// Packets, whose words contain their own flags, and barriers and meetings of collectives, which publish all earlier
// accesses.
#include "beeline/collectives/impl/handshake.hpp"
#include "beeline/host/collectives.hpp"
#include "tests/litmus/rounds.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

/// One block whose threads share the words of each message.
Shape shape_of_one_block(const World& world) { return {1, world.device().is_gpu() ? 256u : 1u, 1, 1, 512}; }

/// A word whose halves both differ from message to message: each half travels with a flag of its own.
BEELINE_HOST_DEVICE constexpr std::uint64_t message_word(std::uint64_t message, std::uint32_t word) {
  return (message + word) * 0x9e3779b97f4a7c15u;
}

struct PacketArguments {
  PacketChannel channel;
  std::uint64_t *source, *data;  ///< [words]
  Outcomes* outcomes;
  std::uint64_t messages;
  std::uint32_t words;
  bool withheld;
};

struct PacketKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, PacketArguments a) const {
    const auto& block = grid.block();
    PacketPort port(block, ctx, a.channel, 1 - ctx.rank);
    Outcomes mine{};
    for (std::uint64_t message = 1; message <= a.messages; ++message) {
      for (std::uint32_t word = block.thread_rank(); word < a.words && !a.withheld; word += block.size())
        a.source[word] = message_word(message, word);
      block.sync();
      if (port.send(a.source, a.words * sizeof *a.source) != Status::ok) break;
      if (port.receive(a.data, a.words * sizeof *a.data) != Status::ok) break;
      for (std::uint32_t i = block.thread_rank(); i < a.words; i += block.size()) {
        const std::uint32_t word = (i + 1) % a.words;  // a word that another thread has unpacked
        ++mine.instances;
        if (a.data[word] != message_word(message, word)) ++mine.forbidden;
      }
      block.sync();
    }
    add_outcomes(a.outcomes, mine);
  }
};

struct MeetingArguments {
  CollectiveChannel channel;  ///< for `Meeting::collective`
  std::uint64_t* source;      ///< [words]
  std::uint64_t* data;        ///< [ranks, 2, words] from each rank, in rounds of either parity; round r puts r
  Outcomes* outcomes;
  std::uint64_t rounds;
  std::uint32_t words;
  Meeting meeting;
};

/// The members meet in the barrier of their team.
template <class Group>
class ByBarrier {
 public:
  BEELINE_HOST_DEVICE ByBarrier(const Group& group, const Context& ctx, const MeetingArguments& a)
      : barrier_(group, ctx), order_(a.meeting == Meeting::relaxed ? Order::relaxed : Order::memory) {}
  [[nodiscard]] BEELINE_HOST_DEVICE Status meet() { return barrier_.sync(order_); }

 private:
  Barrier<Group> barrier_;
  Order order_;
};

/// The members meet as in a collective, by packets between fences.
template <class Group>
class ByPackets {
 public:
  BEELINE_HOST_DEVICE ByPackets(const Group& group, const Context& ctx, const MeetingArguments& a)
      : session_(group, ctx, a.channel, 0) {}
  [[nodiscard]] BEELINE_HOST_DEVICE Status meet() {
    const auto tell = [](std::uint32_t, std::uint32_t) { return std::uint64_t{0}; };
    const auto hear = [](std::uint32_t, std::uint32_t, std::uint64_t) { return Status::ok; };
    return detail::handshake(session_, 1, Timeout::none(), tell, hear);
  }

 private:
  Session<Group> session_;
};

template <template <class> class By>
struct HandshakeKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, MeetingArguments a) const {
    const auto& block = grid.block();
    By<std::decay_t<decltype(block)>> place(block, ctx, a);
    Outcomes mine{};
    for (std::uint64_t round = 1; round <= a.rounds; ++round) {
      for (std::uint32_t word = block.thread_rank(); word < a.words; word += block.size()) a.source[word] = round;
      block.sync();
      for (std::uint32_t peer = 0; peer < ctx.size && a.meeting != Meeting::withheld; ++peer)
        if (peer != ctx.rank) put(block, ctx, data_from(a, ctx.rank, round), a.source, a.words, peer);
      if (place.meet() != Status::ok) break;
      for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
        if (peer != ctx.rank) count(block, data_from(a, peer, round), a.words, round, mine);
    }
    add_outcomes(a.outcomes, mine);
  }

  BEELINE_HOST_DEVICE static std::uint64_t* data_from(const MeetingArguments& a, std::uint32_t rank,
                                                      std::uint64_t round) {
    return a.data + (2 * std::size_t{rank} + (round & 1u)) * a.words;
  }
  template <class Group>
  BEELINE_HOST_DEVICE static void count(const Group& group, const std::uint64_t* data, std::uint32_t words,
                                        std::uint64_t round, Outcomes& mine) {
    for (std::uint32_t word = group.thread_rank(); word < words; word += group.size()) {
      ++mine.instances;
      if (data[word] != round) ++mine.forbidden;
    }
  }
};

}  // namespace

Outcomes move_packets(World& world, bool withheld, std::uint64_t instances) {
  const Shape shape = shape_of_one_block(world);
  const SymmetricArray<std::uint64_t> source(world, shape.words), data(world, shape.words);
  const PacketRings rings(world, shape.words * sizeof(std::uint64_t));
  return launch_and_count(world, shape, PacketKernel{},
                          PacketArguments{rings.channel(), source.data(), data.data(), nullptr, shape.rounds(instances),
                                          shape.words, withheld});
}

Outcomes put_and_meet(World& world, Meeting meeting, std::uint64_t instances) {
  const Shape shape = shape_of_one_block(world);
  const SymmetricArray<std::uint64_t> source(world, shape.words),
      data(world, 2 * static_cast<std::size_t>(world.size()) * shape.words);
  MeetingArguments arguments{{}, source.data(), data.data(), nullptr, shape.rounds(instances), shape.words, meeting};
  if (meeting != Meeting::collective) return launch_and_count(world, shape, HandshakeKernel<ByBarrier>{}, arguments);
  const Collectives collectives(world);
  arguments.channel = collectives.channel();
  return launch_and_count(world, shape, HandshakeKernel<ByPackets>{}, arguments);
}

}  // namespace beeline_test
