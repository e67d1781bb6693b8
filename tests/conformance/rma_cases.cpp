// SPDX-License-Identifier: Apache-2.0
// Requests to an RMA-style adapter: the data that arrive and the ranks that are notified, for every command with every
// set of notifications, for sizes of one and two pieces.
#include <vector>

#include "beeline/host/rma_ports.hpp"
#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/queue_cases.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::rma_cases {

namespace {

using namespace beeline;

struct MoveArguments {
  std::byte *destination, *source;
  std::size_t bytes;
  RmaCommand command;
  std::uint32_t ahead, behind, notifications;
  RmaPort port;
};

/// Puts to the rank ahead, or gets from it. The rank behind does the same with this rank, which it may notify.
struct MoveBody {
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, DeviceReport* report,
                                      MoveArguments a) const {
    const RmaTo to{a.ahead, a.notifications};
    const Status posted = a.command == RmaCommand::put
                              ? rma_put(group, ctx, a.port, a.destination, a.source, a.bytes, to)
                              : rma_get(group, ctx, a.port, a.destination, a.source, a.bytes, to);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, posted);
    if (group.thread_rank() != 0) return;
    std::uint32_t awaited = a.notifications;
    while (awaited != 0) {
      RmaNotification notification{};
      const Status status = rma_wait(ctx, a.port, notification);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
      if (status != Status::ok) return;
      check(report, a, notification);
      BEELINE_DEVICE_CHECK_EQ(report, notification.kind(), awaited & notification.kind());
      awaited &= ~static_cast<std::uint32_t>(notification.kind());
      rma_free(a.port);
    }
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, rma_quiet(ctx, a.port));
  }

 private:
  static BEELINE_HOST_DEVICE void check(DeviceReport* report, const MoveArguments& a,
                                        const RmaNotification& notification) {
    const std::size_t last = (a.bytes - 1) % max_rma_bytes + 1;  // bytes of the last piece
    const bool is_mine = notification.kind() == local_unit(a.command);
    BEELINE_DEVICE_CHECK_EQ(report, RmaError::none, notification.error());
    BEELINE_DEVICE_CHECK_EQ(report, a.command, notification.command());
    BEELINE_DEVICE_CHECK_EQ(report, last, notification.bytes());
    BEELINE_DEVICE_CHECK_EQ(report, is_mine ? a.ahead : a.behind, notification.node());
    BEELINE_DEVICE_CHECK_EQ(report, 0, notification.vpid());
  }
};

/// The request of a case.
struct Moved {
  RmaCommand command;
  std::uint32_t notifications;
  std::size_t bytes, skew;
};
template <class By>
void move_by(RankTest& test, const RmaPorts& ports, const Moved& moved, By by) {
  World& world = test.world();
  const std::size_t bytes = moved.bytes;
  const SymmetricArray<std::byte> memory(world, 2 * (bytes + 16));
  std::byte *const destination = memory.data() + moved.skew, *const source = memory.data() + bytes + 16;
  const std::uint64_t key = 1000 * bytes + moved.skew + moved.notifications;
  test.write(source, pattern(key + static_cast<std::uint64_t>(test.rank()), bytes));
  world.barrier();
  const int ahead = test.ahead(1), behind = test.behind(1);
  by(MoveArguments{destination, source, bytes, moved.command, static_cast<std::uint32_t>(ahead),
                   static_cast<std::uint32_t>(behind), moved.notifications, ports.view().port(0)});
  world.barrier();
  const int from = moved.command == RmaCommand::put ? behind : ahead;
  check_bytes(pattern(key + static_cast<std::uint64_t>(from), bytes), test.read(destination, bytes), "moved");
  world.barrier();
}
template <GroupKind kind>
void move(RankTest& test, const RmaPorts& ports, const Moved& moved) {
  move_by(test, ports, moved, [&](const MoveArguments& arguments) {
    test.run(test.shape(1, true), FirstGroup<kind, MoveBody>{}, arguments, "an RMA request");
  });
}

void move_with_each_set(RankTest& test, const RmaPorts& ports, std::size_t bytes, std::size_t skew) {
  for (const RmaCommand command : {RmaCommand::put, RmaCommand::get}) {
    const std::uint32_t local = local_unit(command), sets[] = {rma_none, local, local | remote_unit(command)};
    for (const std::uint32_t set : sets)
      for_each_group_kind(test.world(), [&]<GroupKind kind>() {
        move<kind>(test, ports, {command, set, bytes, skew});
      });
  }
}

ADAPTER_CASE(rma, moves, 1) {
  const RmaPorts ports(test.world(), {.engine = engine, .depth = 2});
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{4097}})
    for (const std::size_t skew : {0, 3}) move_with_each_set(test, ports, bytes, skew);
}

/// Transfers of exactly the largest piece, and of one byte more, which takes two pieces.
ADAPTER_CASE(rma, moves_of_two_pieces, 2) {
  test.skip_if(test.size() > 2 || under_thread_sanitizer, "many bytes");
  const RmaPorts ports(test.world(), {.engine = engine});
  constexpr std::uint32_t both = rma_requester | rma_completer;
  move<GroupKind::thread>(test, ports, {RmaCommand::put, both, max_rma_bytes, 0});
  move<GroupKind::thread>(test, ports, {RmaCommand::put, both, max_rma_bytes + 1, 1});
  move<GroupKind::thread>(test, ports, {RmaCommand::get, rma_completer, max_rma_bytes + 1, 0});
}

/// CPU threads post to ports in host memory, also those of GPU ranks.
BEELINE_CASE(post, rma_moves_by_cpu_threads, 1) {
  need_one_node(test);
  const RmaPorts ports(test.world());
  for (const RmaCommand command : {RmaCommand::put, RmaCommand::get})
    move_by(test, ports, {command, std::uint32_t{local_unit(command)} | remote_unit(command), 777, 5},
            [&](const MoveArguments& arguments) {
              DeviceReport report{};
              MoveBody{}(Thread{}, test.world().host_context(), &report, arguments);
              BEELINE_CHECK_EQ(0u, report.failures);
            });
}

BEELINE_CASE(post, rma_ports_refuse_options, 1) {
  if (test.on_several_nodes())
    return check_error(Status::unavailable, {"an RMA port needs memory that all members share"},
                       [&] { const RmaPorts ports(test.world()); });
  const auto refused = [&](const RmaPortOptions& options, const char* what) {
    check_error(Status::invalid_argument, {"RMA ports with", what, "valid:"},
                [&] { const RmaPorts ports(test.world(), options); });
  };
  refused({.ports = 0}, "0 ports for each rank");
  refused({.ports = max_rma_ports + 1}, "257 ports for each rank");
  refused({.depth = 1}, "1 entries");
  refused({.locks = 0}, "0 locks");
  if (test.size() > 1)
    check_error(Status::invalid_argument, {"ranks 0 and 1 give different options for RMA ports"},
                [&] { const RmaPorts ports(test.world(), {.ports = test.rank() == 1 ? 0u : 1u}); });
  const RmaPorts ports(test.world());
  check_error(Status::invalid_argument, {"RMA port 1 of 1"}, [&] { static_cast<void>(ports.refusal(1)); });
}

/// A segment is freed while an engine writes to it: each request is complete, or refused with a notification.
BEELINE_CASE(post, rma_memory_that_is_freed_in_flight, 1) {
  World& world = test.world();
  need_one_node(test);
  test.skip_if(test.on_gpu(), "the segments are in host memory");
  constexpr std::uint32_t puts = 8;
  constexpr std::size_t bytes = 1 << 20;
  const RmaPorts ports(world, {.ports = puts});
  const SymmetricArray<std::byte> source(world, bytes);
  const Segment& segment = world.create_segment(MemoryKind::host, bytes);
  std::byte* const part = segment.parts[static_cast<std::size_t>(test.rank())].address;
  world.barrier();
  const RmaTo to{static_cast<std::uint32_t>(test.ahead(1)), rma_requester};
  for (std::uint32_t i = 0; i < puts; ++i)
    BEELINE_CHECK_EQ(name(Status::ok), name(rma_put(Thread{}, world.host_context(), ports.view().port(i), part,
                                                    static_cast<const std::byte*>(source.data()), bytes, to)));
  world.destroy_segment(segment.id);
  for (std::uint32_t i = 0; i < puts; ++i) {
    RmaNotification over{};
    BEELINE_CHECK_EQ(name(Status::ok), name(rma_wait(world.host_context(), ports.view().port(i), over)));
    rma_free(ports.view().port(i));
    BEELINE_CHECK(over.error() == RmaError::none || over.error() == RmaError::address);
    BEELINE_CHECK_EQ(over.error() == RmaError::none, ports.refusal(i).empty());
  }
  BEELINE_CHECK(!world.failed());
  world.barrier();
}

struct LockArguments {
  std::uint32_t* counter;  ///< of rank 0; changed only by the holder of the lock
  std::uint32_t* scratch;
  std::uint32_t rounds;
  RmaPortsView view;
};

/// Every block has a port, takes the lock of rank 0, and increments the counter.
struct LockKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, LockArguments a) const {
    if (grid.block().thread_rank() != 0) return;
    const RmaPort port = a.view.port(grid.block_rank());
    std::uint32_t& mine = a.scratch[grid.block_rank()];
    for (std::uint32_t round = 0; round < a.rounds; ++round) {
      if (!takes_lock(ctx, report, port)) return;
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, rma_get(Thread{}, ctx, port, &mine, a.counter, 1, RmaTo{0}));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, rma_quiet(ctx, port));
      ++mine;
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, rma_put(Thread{}, ctx, port, a.counter, &mine, 1, RmaTo{0}));
      BEELINE_DEVICE_CHECK_EQ(report, 1, old_value(ctx, report, port, 1, ~std::uint32_t{0}));
    }
  }

 private:
  /// Tries until the deadline: a lock that two blocks hold, or none releases, is a failed check.
  static BEELINE_HOST_DEVICE bool takes_lock(const Context& ctx, DeviceReport* report, const RmaPort& port) {
    const std::uint64_t start = machine::clock_ns();
    std::uint32_t held = 1;
    while (held != 0 && machine::clock_ns() - start < ctx.deadline_ns) held = old_value(ctx, report, port, 0, 1);
    BEELINE_DEVICE_CHECK_EQ(report, 0, held);
    return held == 0;
  }
  static BEELINE_HOST_DEVICE std::uint32_t old_value(const Context& ctx, DeviceReport* report, const RmaPort& port,
                                                     std::uint32_t compare, std::uint32_t add) {
    RmaNotification notification{};
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, rma_lock(ctx, port, 5, compare, add, {0, rma_completer}));
    const Status status = rma_wait(ctx, port, notification);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
    rma_free(port);
    return status == Status::ok ? notification.lock_value() : 0;
  }
};

ADAPTER_CASE(rma, locks, 1) {
  constexpr std::uint32_t blocks = 2, rounds = 20;
  const RmaPorts ports(test.world(), {.engine = engine, .ports = blocks, .locks = 6});
  const SymmetricArray<std::uint32_t> counter(test.world(), 1), scratch(test.world(), blocks);
  test.run(test.shape(blocks, true), LockKernel{}, LockArguments{counter.data(), scratch.data(), rounds, ports.view()},
           "RMA locks");
  test.world().barrier();
  if (test.rank() == 0)
    BEELINE_CHECK_EQ(blocks * rounds * static_cast<std::uint32_t>(test.size()), test.read_value(counter.data()));
  BEELINE_CHECK_EQ(0u, test.read_value(&ports.locks()[5]));
}

struct NotifyArguments {
  std::uint32_t peer, rounds;
  RmaPortsView view;
};

/// Sends notifications without data, from port 0 to port 1 of the peer, more than the peer's queue holds.
struct NotifyKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, NotifyArguments a) const {
    if (grid.block().thread_rank() != 0) return;
    const RmaPort out = a.view.port(0), in = a.view.port(1);
    RmaNotification notification{};
    for (std::uint64_t value = 1; value <= a.rounds; ++value) {
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              rma_notify(ctx, out, value, {a.peer, rma_requester | rma_completer, 1}));
      for (const RmaPort& port : {out, in}) {
        const Status status = rma_wait(ctx, port, notification);
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
        if (status != Status::ok) return;
        BEELINE_DEVICE_CHECK_EQ(report, value, notification.address);
        rma_free(port);
      }
    }
  }
};

ADAPTER_CASE(rma, notifications_without_data, 1) {
  const RmaPorts ports(test.world(), {.engine = engine, .ports = 2, .depth = 4});
  test.run(test.shape(1, true), NotifyKernel{},
           NotifyArguments{static_cast<std::uint32_t>(test.ahead(1)), 20, ports.view()}, "RMA notifications");
  test.world().barrier();
}

}  // namespace

}  // namespace beeline_test::rma_cases
