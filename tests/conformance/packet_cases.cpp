// SPDX-License-Identifier: Apache-2.0
// The packet channel: any size and alignment, exhausted credits, messages that a time-out interrupts, sequences that
// wrap.
#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/packet_plan.hpp"
#include "tests/conformance/reachable_array.hpp"

namespace beeline_test::packet_cases {

namespace {

using namespace beeline;

/// Messages travel around a ring: every rank sends to the rank ahead and receives from the rank behind. Rank 0 receives
/// first, so that messages beyond the credits cannot block the whole ring.
struct PlanKernel {
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, DeviceReport* report,
                                      PlanArguments<LL> a) const {
    with_ports(group, ctx, a, [&](auto& out, auto& in) {
      const bool receive_first = ctx.rank == 0 && ctx.size > 1;
      for (std::uint32_t i = 0; i < 2 * a.count; ++i) {
        const Message message = a.messages[i / 2];
        if ((i % 2 == 0) == receive_first)
          BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                                  in.receive(a.destination + message.destination_offset, message.bytes));
        else
          BEELINE_DEVICE_CHECK_EQ(report, Status::ok, out.send(a.source + message.source_offset, message.bytes));
      }
    });
  }
};

struct ChannelShape {
  std::size_t slot_bytes;
  std::uint32_t depth;
  Heap heap;
  std::uint32_t first_sequence;
};

template <GroupKind kind>
void run_plan(RankTest& test, const ChannelShape& shape, std::size_t count) {
  // A rank that sends to itself cannot receive meanwhile: it may only use the credits that it has at the start.
  const std::size_t slot = shape.slot_bytes, most = slot * (test.size() == 1 ? shape.depth / 2 : shape.depth * 5 / 2);
  const std::size_t edges[] = {0, slot, slot + 1, slot - 1, most};
  const Plan plan = make_plan(test.random(), count, edges, most);
  const PacketRings rings(test.world(), slot, shape.depth, shape.heap, shape.first_sequence);
  const Heap source = test.any_heap(), destination = test.any_heap();
  check_plan(test, rings.channel(), plan, {source, destination}, FirstGroup<kind, PlanKernel>{},
             join(name(kind), " packets, slots of ", slot, " bytes, depth ", shape.depth, ", first sequence ",
                  shape.first_sequence));
}

BEELINE_CASE(packet, packets_of_any_size, 1) {
  const std::size_t count = under_thread_sanitizer ? 20 : 60;
  for_each_group_kind(test.world(), [&]<GroupKind kind>() {
    run_plan<kind>(test, {1, 2, Heap::symmetric, 0}, count);
    run_plan<kind>(test, {8, 16, Heap::symmetric, 0}, count);
    run_plan<kind>(test, {4096, 4, test.any_heap(), 0}, count);
    run_plan<kind>(test,
                   {1 + test.random().below(std::size_t{500}), 8, test.any_heap(),
                    static_cast<std::uint32_t>(test.random().next())},
                   count);
  });
}

/// Starts just below the wrap of the flag's 32 bits, and just below sequences at which the sender rewrites whole slots.
BEELINE_CASE(packet, packet_sequences_wrap, 1) {
  constexpr std::uint32_t sweep = detail::packet_sweep_period;
  const std::size_t count = under_thread_sanitizer ? 15 : 40;
  for_each_group_kind(test.world(), [&]<GroupKind kind>() {
    for (const std::uint32_t first : {0xffffffffu, 0xfffffffeu, 0xffffffefu, sweep - 5, 3 * sweep - 1})
      run_plan<kind>(test, {64, 4, Heap::symmetric, first}, count);
  });
}

/// When the sequence passes a multiple of the sweep period, no older flag remains anywhere in the ring, even if
/// messages are short.
BEELINE_CASE(packet, packet_slots_are_swept, 1) {
  test.skip_if(test.on_several_nodes(), "messages to other nodes have no flags");
  World& world = test.world();
  constexpr std::uint32_t depth = 4, sweep = detail::packet_sweep_period;
  const PacketRings rings(world, 64, depth, Heap::symmetric, sweep - 3);
  const PacketChannel& channel = rings.channel();
  const std::vector<Message> plan(3 + 2 * depth, Message{1, 0, 0});
  const SymmetricArray<Message> messages(world, plan.size());
  const SymmetricArray<std::byte> source(world, 1), destination(world, 1);
  world.copy(messages.data(), plan.data(), messages.bytes());
  test.run(test.shape(1, true), FirstGroup<GroupKind::thread, PlanKernel>{},
           PlanArguments<LL>{channel, messages.data(), static_cast<std::uint32_t>(plan.size()), source.data(),
                             destination.data(), static_cast<std::uint32_t>(test.ahead(1)),
                             static_cast<std::uint32_t>(test.behind(1))},
           "packets over a sweep");
  world.barrier();  // a message is received before the sender has swept the rest of its slot
  const std::size_t pairs = std::size_t{depth} * channel.slot_units;
  const auto ring = static_cast<std::size_t>(test.behind(1)) * pairs;
  for (std::size_t i = 0; i < pairs; ++i) {
    const machine::PacketPair pair = test.read_value(channel.rings + ring + i);
    BEELINE_CHECK((pair.low >> 32) >= sweep && (pair.high >> 32) >= sweep);
  }
}

struct CreditArguments {
  PacketChannel channel;
  std::uint64_t* full;           ///< set at the rank ahead: the sender has no credit left
  const std::uint64_t* is_full;  ///< set on this rank by the rank behind
  std::uint32_t to, from;
};

BEELINE_HOST_DEVICE inline std::uint64_t credit_word(std::uint32_t rank, std::uint32_t message) {
  return (std::uint64_t{rank} << 32) + 7 * message + 1;
}

/// Sends until no credit is left: the next send times out, and completes once the receiver has caught up.
struct CreditKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, CreditArguments a) const {
    if (grid.thread_rank() != 0) return;
    if (a.to == a.from) {
      PacketPort port(Thread{}, ctx, a.channel, a.to);
      use_up(ctx, report, a, port, port);
    } else {
      PacketPort out(Thread{}, ctx, a.channel, a.to), in(Thread{}, ctx, a.channel, a.from);
      use_up(ctx, report, a, out, in);
    }
  }
  template <class Port>
  BEELINE_HOST_DEVICE static void use_up(const Context& ctx, DeviceReport* report, const CreditArguments& a, Port& out,
                                         Port& in) {
    const std::uint32_t depth = a.channel.depth;
    for (std::uint32_t i = 0; i < depth; ++i) {
      const std::uint64_t word = credit_word(ctx.rank, i);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, out.send(&word, sizeof word, Timeout::test()));
    }
    const std::uint64_t extra = credit_word(ctx.rank, depth);
    BEELINE_DEVICE_CHECK_EQ(report, Status::timeout, out.send(&extra, sizeof extra, Timeout::test()));
    BEELINE_DEVICE_CHECK_EQ(report, Status::timeout, out.send(&extra, sizeof extra, Timeout{20'000}));
    signal(Thread{}, ctx, a.full, 1, a.to);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(Thread{}, ctx, a.is_full, Compare::equal, 1, a.from));
    for (std::uint32_t i = 0; i <= depth; ++i) {
      if (i == depth) BEELINE_DEVICE_CHECK_EQ(report, Status::ok, out.send(&extra, sizeof extra));
      std::uint64_t word = 0;
      const Timeout timeout = i == depth ? Timeout::none() : Timeout::test();
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, in.receive(&word, sizeof word, timeout));
      BEELINE_DEVICE_CHECK_EQ(report, credit_word(a.from, i), word);
    }
    std::uint64_t none = 5;
    BEELINE_DEVICE_CHECK_EQ(report, Status::timeout, in.receive(&none, sizeof none, Timeout::test()));
    BEELINE_DEVICE_CHECK_EQ(report, Status::timeout, in.receive(&none, sizeof none, Timeout{20'000}));
  }
};

BEELINE_CASE(packet, packet_credits_run_out, 1) {
  for (const std::uint32_t depth : {2u, 4u, 16u})
    for (const std::uint32_t first : {0u, 0xfffffffdu}) {
      const PacketRings rings(test.world(), 8, depth, Heap::symmetric, first);
      const PacketChannel& channel = rings.channel();
      const ReachableArray<std::uint64_t> full(test, 1);
      const int to = test.ahead(1), from = test.behind(1);
      test.run(test.shape(1, true), CreditKernel{},
               CreditArguments{channel, full.at(to), full.used_by(from), static_cast<std::uint32_t>(to),
                               static_cast<std::uint32_t>(from)},
               join("credits of depth ", depth));
    }
}

struct InterruptArguments {
  PacketChannel channel;
  const std::byte* source;
  std::byte* destination;  ///< [repeats, bytes]
  std::size_t bytes;
  std::uint32_t repeats, to, from;
};

/// One group sends and receives messages of many slots at the same time: each call times out as soon as it would block,
/// and the next call continues there.
struct InterruptKernel {
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, DeviceReport* report,
                                      InterruptArguments a) const {
    with_ports(group, ctx, a, [&](auto& out, auto& in) { alternate(ctx, report, a, out, in); });
  }
  template <class Port>
  BEELINE_HOST_DEVICE static void alternate(const Context& ctx, DeviceReport* report, const InterruptArguments& a,
                                            Port& out, Port& in) {
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t sent = 0, received = 0; sent < a.repeats || received < a.repeats;) {
      Status status = Status::timeout;
      if (sent < a.repeats) status = out.send(a.source, a.bytes, sent % 2 == 0 ? Timeout::test() : Timeout{10'000});
      if (status == Status::ok) ++sent;
      if (received < a.repeats) status = in.receive(a.destination + received * a.bytes, a.bytes, Timeout::test());
      if (received < a.repeats && status == Status::ok) ++received;
      if ((status != Status::ok && status != Status::timeout) || machine::clock_ns() - start > ctx.deadline_ns) {
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
        return;
      }
    }
  }
};

template <GroupKind kind>
void interrupt_by(RankTest& test) {
  World& world = test.world();
  constexpr std::uint32_t repeats = 20;
  const std::size_t slot_bytes = 40, bytes = slot_bytes * 23 + 3;
  const PacketRings rings(world, slot_bytes, 4);
  const PacketChannel& channel = rings.channel();
  const SymmetricArray<std::byte> source(world, bytes), destination(world, repeats * bytes);
  const std::uint64_t key = test.random().next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes); };
  test.write(source.data(), data_of(test.rank()));
  test.run(test.shape(1, true), FirstGroup<kind, InterruptKernel>{},
           InterruptArguments{channel, source.data(), destination.data(), bytes, repeats,
                              static_cast<std::uint32_t>(test.ahead(1)), static_cast<std::uint32_t>(test.behind(1))},
           join("interrupted ", name(kind), " packets"));
  for (std::uint32_t i = 0; i < repeats; ++i)
    check_bytes(data_of(test.behind(1)), test.read(destination.data() + i * bytes, bytes), "interrupted message");
}

BEELINE_CASE(packet, packet_messages_continue_after_timeouts, 1) {
  for_each_group_kind(test.world(), [&]<GroupKind kind>() { interrupt_by<kind>(test); });
}

struct PairsArguments {
  PacketChannel channel;
  const std::byte* source;
  std::byte* destination;  ///< [ranks, messages, bytes]
  std::size_t bytes;
  std::uint32_t messages;
};

/// Runs one block for each peer, all at the same time; the rank itself is one of the peers.
struct PairsKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, PairsArguments a) const {
    const std::uint32_t peer = (ctx.rank + grid.block_rank()) % ctx.size;
    PacketPort port(grid.block(), ctx, a.channel, peer);
    for (std::uint32_t i = 0; i < 2 * a.messages; ++i) {
      std::byte* place = a.destination + (peer * a.messages + i / 2) * a.bytes;
      const bool sends = (i % 2 == 0) == (ctx.rank <= peer);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              sends ? port.send(a.source + i / 2, a.bytes) : port.receive(place, a.bytes));
    }
  }
};

BEELINE_CASE(packet, packets_between_all_pairs, 1) {
  World& world = test.world();
  constexpr std::uint32_t messages = 12;
  const std::size_t bytes = 1 + test.random().below(std::size_t{3000});
  const PacketRings rings(world, 1024, 8);
  const PacketChannel& channel = rings.channel();
  const SymmetricArray<std::byte> source(world, bytes + messages);
  const SymmetricArray<std::byte> destination(world, static_cast<std::size_t>(test.size()) * messages * bytes);
  const std::uint64_t key = test.random().next();
  const auto data_of = [&](int rank) { return pattern(key + static_cast<std::uint64_t>(rank), bytes + messages); };
  test.write(source.data(), data_of(test.rank()));
  test.run(test.shape(static_cast<unsigned>(test.size()), true), PairsKernel{},
           PairsArguments{channel, source.data(), destination.data(), bytes, messages}, "packets between all pairs");
  for (int peer = 0; peer < test.size(); ++peer)
    for (std::uint32_t i = 0; i < messages; ++i) {
      const auto sent = data_of(peer);
      const std::size_t place = (static_cast<std::size_t>(peer) * messages + i) * bytes;
      check_bytes({sent.begin() + i, sent.begin() + i + static_cast<std::ptrdiff_t>(bytes)},
                  test.read(destination.data() + place, bytes), join("message ", i, " of rank ", peer));
    }
}

BEELINE_CASE(crowded, crowded_packets, 1) {
  run_plan<GroupKind::thread>(test, {64, 2, Heap::symmetric, 0xfffffff0}, 12);
}

BEELINE_CASE(crowded, crowded_barriers, 1) {
  for (int i = 0; i < 5; ++i) test.world().barrier();
}

}  // namespace

}  // namespace beeline_test::packet_cases
