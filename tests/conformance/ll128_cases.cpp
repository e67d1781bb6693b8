// SPDX-License-Identifier: Apache-2.0
// Packets of 128 bytes: any size and alignment, sequences that wrap, credits and time-outs, and many messages of
// changing data; host ranks and worlds with torn lines refuse them.
#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/packet_plan.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::ll128_cases {

namespace {

using namespace beeline;

/// Skips the case if a team of this world cannot use packets of 128 bytes; rings are then refused with the reason.
/// Between GPUs of one node lines are whole over NVLink, so that a torn line fails the case.
void need_ll128(RankTest& test, Team& team) {
  const std::string reason = no_ll128_reason(team);
  if (!reason.empty()) check_error(Status::unavailable, {reason, "PacketRings"}, [&] { LL128Rings(team, 64); });
  BEELINE_CHECK_EQ(std::string::npos, reason.find("torn"));
  test.skip_if_any(reason);
}

/// Every rank sends each message ahead and receives it from behind. Rank 0 receives first, so that messages beyond the
/// credits cannot block the whole ring. Every call first times out where it would wait; its repetition continues.
struct PlanKernel {
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, DeviceReport* report,
                                      PlanArguments<LL128> a) const {
    with_ports(group, ctx, a, [&](auto& out, auto& in) {
      const bool receive_first = ctx.rank == 0 && ctx.size > 1;
      for (std::uint32_t i = 0; i < 2 * a.count; ++i) {
        const Message message = a.messages[i / 2];
        Status status = Status::timeout;
        for (int attempt = 0; attempt < 2 && status == Status::timeout; ++attempt) {
          const Timeout timeout = attempt == 0 ? Timeout::test() : Timeout::none();
          status = (i % 2 == 0) == receive_first
                       ? in.receive(a.destination + message.destination_offset, message.bytes, timeout)
                       : out.send(a.source + message.source_offset, message.bytes, timeout);
        }
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
        if (status != Status::ok) return;
      }
    });
  }
};

struct ChannelShape {
  std::size_t slot_bytes;
  std::uint32_t depth, first_sequence;
};

template <GroupKind kind>
void run_plan(RankTest& test, const ChannelShape& shape, std::size_t count) {
  const LL128Rings rings(test.world(), shape.slot_bytes, shape.depth, Heap::symmetric, shape.first_sequence);
  // A rank that sends to itself cannot receive meanwhile: it may only use the credits that it has at the start.
  const std::size_t slot = rings.channel().slot_bytes();
  const std::size_t most = slot * (test.size() == 1 ? shape.depth / 2 : shape.depth * 5 / 2);
  const std::size_t edges[] = {0, 1, 112, 113, 119, 120, 121, 240, slot - 1, slot, slot + 1, most};
  check_plan(test, rings.channel(), make_plan(test.random(), count, edges, most), {Heap::symmetric, Heap::symmetric},
             FirstGroup<kind, PlanKernel>{},
             join(name(kind), " lines, slots of ", slot, " bytes, depth ", shape.depth, ", first sequence ",
                  shape.first_sequence));
}

template <class Body>
void for_each_line_group(Body body) {
  body.template operator()<GroupKind::warp>();
  body.template operator()<GroupKind::block>();
}

BEELINE_CASE(packet, ll128_of_any_size, 1) {
  need_ll128(test, test.world());
  constexpr std::uint32_t sweep = detail::packet_sweep_period;
  for_each_line_group([&]<GroupKind kind>() {
    run_plan<kind>(test, {1, 2, 0}, 60);
    run_plan<kind>(test, {4096, 4, 0}, 60);
    run_plan<kind>(test, {1 + test.random().below(std::size_t{2000}), 8, 0}, 60);
    for (const std::uint32_t first : {0xffffffffu, 0xffffffefu, sweep - 5}) run_plan<kind>(test, {500, 4, first}, 40);
  });
}

struct StreamArguments {
  LL128Channel channel;
  std::uint64_t *source, *destination;  ///< [words]
  std::uint32_t words, messages, to, from;
};

BEELINE_HOST_DEVICE inline std::uint64_t stream_word(std::uint32_t rank, std::uint32_t message, std::uint32_t index) {
  return (std::uint64_t{message} << 32 | index) * 0x9e3779b97f4a7c15u + rank;
}

/// Sends messages that differ in every word from the previous one: none may arrive torn.
struct StreamKernel {
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, DeviceReport* report,
                                      StreamArguments a) const {
    with_ports(group, ctx, a, [&](auto& out, auto& in) {
      for (std::uint32_t message = 0; message < a.messages; ++message) {
        for (std::uint32_t i = group.thread_rank(); i < a.words; i += group.size())
          a.source[i] = stream_word(ctx.rank, message, i);
        group.sync();
        const Status sent = out.send(a.source, a.words * sizeof a.source[0]);
        const Status received = in.receive(a.destination, a.words * sizeof a.source[0]);
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, sent);
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, received);
        if (sent != Status::ok || received != Status::ok) return;
        for (std::uint32_t i = group.thread_rank(); i < a.words; i += group.size())
          BEELINE_DEVICE_CHECK_EQ(report, stream_word(a.from, message, i), a.destination[i]);
        group.sync();
      }
    });
  }
};

template <GroupKind kind>
void run_stream(RankTest& test, Team& team, std::uint32_t words, std::uint32_t messages) {
  const LL128Rings rings(team, words * sizeof(std::uint64_t), 8);
  const SymmetricArray<std::uint64_t> source(team, words), destination(team, words);
  const std::uint32_t rank = team.context().rank, size = team.context().size;
  test.run(team, test.shape(1, true), FirstGroup<kind, StreamKernel>{},
           StreamArguments{rings.channel(), source.data(), destination.data(), words, messages, (rank + 1) % size,
                           (rank + size - 1) % size},
           join(messages, " messages of ", words, " words by ", name(kind), "s"));
}

BEELINE_CASE(packet, ll128_stay_whole, 1) {
  need_ll128(test, test.world());
  for_each_line_group([&]<GroupKind kind>() {
    run_stream<kind>(test, test.world(), 15, 20000);
    run_stream<kind>(test, test.world(), 1000, 5000);
  });
}

/// The members test pairs of their own, of which the world knows nothing if this case runs first.
BEELINE_CASE(packet, ll128_in_two_teams, 2) {
  const std::vector<int> members = test.alternate_ranks();
  const std::unique_ptr<Team> team = test.world().make_team(members);
  need_ll128(test, *team);
  for (int round = 0; round < 1 + test.rank() % 2; ++round) run_stream<GroupKind::block>(test, *team, 100, 100);
}

}  // namespace

}  // namespace beeline_test::ll128_cases
