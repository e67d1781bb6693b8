// SPDX-License-Identifier: Apache-2.0
// GASPI in kernels (gaspi/device.hpp), over tables of segments that the cases make: writes, notifications, waits,
// resets, bad arguments; between kernels, and between kernels and the host.
#include <algorithm>
#include <vector>

#include "beeline/gaspi/device.hpp"
#include "beeline/gaspi/world_endpoint.hpp"
#include "tests/conformance/foreign_memory.hpp"
#include "tests/conformance/group_kind.hpp"

namespace beeline_test::gaspi_cases {

namespace {

using namespace beeline;
using gaspi::Endpoint;
using gaspi::Notification;
using gaspi::PartAccess;
using gaspi::SegmentOffset;

constexpr std::uint32_t notifications = 70'000, queues = 5;
/// Segments of a table: `data` has parts of unlike sizes, `small` the same size everywhere. Ids between and behind them
/// do not exist.
constexpr std::uint32_t data = 2, small = 0, segments = 4;
constexpr std::size_t small_bytes = 64;

/// Bytes of a rank's part of the segment `data`.
std::size_t data_bytes(int rank) { return 300'000 + 1'000 * static_cast<std::size_t>(rank); }

/// The segments, their flags in one of the heaps, and the endpoint of this rank.
class Table {
 public:
  /// Collective. The parts are in memory that kernels of every rank reach.
  Table(RankTest& test, Heap flags)
      : test_(test), endpoint_(test.world(), {segments, notifications, queues}, flags),
        segment_(test.world().create_segment(kind(), data_bytes(test.rank()))),
        small_(test.world().create_segment(kind(), small_bytes)) {
    endpoint_.set(data, segment_);
    endpoint_.set(small, small_);
    endpoint_.publish();
  }
  ~Table() {
    test_.world().destroy_segment(segment_.id);
    test_.world().destroy_segment(small_.id);
  }

  [[nodiscard]] gaspi::WorldEndpoint& host() { return endpoint_; }
  [[nodiscard]] const Endpoint* endpoint() const { return endpoint_.on_device(); }
  /// This rank's part of the segment `data`.
  [[nodiscard]] std::byte* own() const { return segment_.parts[static_cast<std::size_t>(test_.rank())].address; }

 private:
  [[nodiscard]] MemoryKind kind() const { return test_.world().mixed() ? MemoryKind::pinned : MemoryKind::device; }

  RankTest& test_;
  gaspi::WorldEndpoint endpoint_;
  const Segment &segment_, &small_;
};

/// Resets a notification: its old value. On GPUs whose flags lie in host memory this is refused, and the kernel stores
/// a 0 instead, since no other thread resets it.
template <class Group>
BEELINE_HOST_DEVICE std::uint32_t take(const Group& group, const Endpoint& endpoint, DeviceReport* report,
                                       std::uint32_t segment, std::uint32_t id, bool host_flags) {
  std::uint32_t value = 0;
  const Status status = gaspi::notify_reset(group, endpoint, segment, id, value);
  if (beeline::detail::executor == DeviceKind::host || !host_flags) {
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
    return value;
  }
  BEELINE_DEVICE_CHECK_EQ(report, Status::unreachable, status);
  std::uint64_t* const flag =
      endpoint.table.entries[segment * endpoint.context.size + endpoint.context.rank].flags + id;
  value = static_cast<std::uint32_t>(load_value(flag));
  group.sync();
  static_cast<void>(signal(group, endpoint.context, flag, 0, endpoint.context.rank, Order::relaxed));
  group.sync();
  return value;
}

struct RingArguments {
  const Endpoint* endpoint;
  std::uint32_t ahead, behind;
  SegmentOffset source, destination;
  std::uint64_t bytes;
  std::uint32_t round;
  bool host_flags, notifies_alone;
};

/// Each rank writes to the rank ahead, waits for the rank behind, and answers it by a notification.
template <GroupKind kind>
struct RingKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, DeviceReport* report, RingArguments a) const {
    if (place_of<kind>(grid).index != 0) return;
    const auto group = group_of<kind>(grid);
    const std::uint32_t queue = a.round % queues, id = notifications - 1 - a.round, answer = a.round;
    if (a.notifies_alone) {
      const std::uint64_t half = a.bytes / 2;
      const SegmentOffset rest{a.source.segment, a.source.bytes + half};
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              gpu_write(group, *a.endpoint, a.source, a.ahead, a.destination, half, queue));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              gpu_write(group, *a.endpoint, rest, a.ahead,
                                        {a.destination.segment, a.destination.bytes + half}, a.bytes - half, queue));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              notify(group, *a.endpoint, a.ahead, data, {id, 0xf0000000u + a.round}, queue));
    } else {
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              gpu_write_notify(group, *a.endpoint, a.source, a.ahead, a.destination, a.bytes,
                                               {id, 0xf0000000u + a.round}, queue));
    }
    std::uint32_t found = 0;
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                            notify_waitsome(group, *a.endpoint, data, notifications - 100, 100, found));
    BEELINE_DEVICE_CHECK_EQ(report, id, found);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_for_notification(group, *a.endpoint, data, id, Timeout::test()));
    BEELINE_DEVICE_CHECK_EQ(report, 0xf0000000u + a.round, take(group, *a.endpoint, report, data, id, a.host_flags));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, notify(group, *a.endpoint, a.behind, small, {answer, 1}, queue));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_for_notification(group, *a.endpoint, small, answer));
    BEELINE_DEVICE_CHECK_EQ(report, 1, take(group, *a.endpoint, report, small, answer, a.host_flags));
    BEELINE_DEVICE_CHECK_EQ(report, 0, take(group, *a.endpoint, report, small, answer, a.host_flags));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, gaspi::wait(group, *a.endpoint, queue));
  }
};

/// One round trip with data at unlike offsets of parts of unlike sizes.
template <GroupKind kind>
void go_round(RankTest& test, Table& table, std::uint32_t round, std::uint64_t bytes, bool host_flags) {
  const int ahead = test.ahead(1), behind = test.behind(1);
  const auto begin = [&](int rank) { return round % 2 == 0 ? 16 * round : data_bytes(rank) - bytes; };
  const std::size_t room = data_bytes(test.rank());
  const std::uint64_t key = 1000 * round;
  // The source is in the middle, or behind it; the destination at an end.
  const SegmentOffset source{data, room / 2 + round % 3 * 8 - (round % 2 == 0 ? 0 : 150'000)};
  test.write(table.own() + source.bytes, pattern(key + static_cast<std::uint64_t>(test.rank()), bytes));
  test.world().barrier();
  test.run(test.shape(2, true), RingKernel<kind>{},
           RingArguments{table.endpoint(),
                         static_cast<std::uint32_t>(ahead),
                         static_cast<std::uint32_t>(behind),
                         source,
                         {data, begin(ahead)},
                         bytes,
                         round,
                         host_flags,
                         round % 4 >= 2},
           join(name(kind), " groups, ", bytes, " B"));
  check_bytes(pattern(key + static_cast<std::uint64_t>(behind), bytes),
              test.read(table.own() + begin(test.rank()), bytes), "written by the rank behind");
  test.world().barrier();
}

BEELINE_CASE(signal, gaspi_writes_with_notifications, 1) {
  for (const Heap heap : {Heap::symmetric, Heap::pinned}) {
    Table table(test, heap);
    const bool host_flags = heap == Heap::pinned || test.world().mixed();
    for_each_group_kind(test.world(), [&]<GroupKind kind>() {
      std::uint32_t round = 0;
      for (const std::uint64_t bytes : {1, 8, 40, 4096, 99'999})
        go_round<kind>(test, table, round++, bytes, host_flags);
    });
  }
}

struct CrowdArguments {
  const Endpoint* endpoint;
  std::uint64_t *sum, *taken;
  std::uint32_t target, of_each;
};

/// Every block of every rank sends notifications to one rank, whose blocks share them.
struct CrowdKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, CrowdArguments a) const {
    const auto& block = grid.block();
    const std::uint32_t senders = ctx.size * grid.blocks(), me = ctx.rank * grid.blocks() + grid.block_rank();
    for (std::uint32_t i = 0; i < a.of_each; ++i) {
      const std::uint32_t id = (i * senders + me) * 37 % (a.of_each * senders);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                              notify(block, *a.endpoint, a.target, data, {100 + id, 1 + id}, i % queues));
    }
    if (ctx.rank != a.target) return;
    beeline::detail::DeviceAtomic<std::uint64_t> taken(*a.taken), sum(*a.sum);
    const std::uint64_t all = std::uint64_t{a.of_each} * senders;
    for (;;) {
      std::uint32_t id = 0, value = 0;
      const Status status = notify_waitsome(block, *a.endpoint, data, 100, a.of_each * senders, id, Timeout{200'000});
      if (status == Status::timeout) {
        // The threads of a block leave together.
        if (block.any(taken.load(std::memory_order_relaxed) == all)) return;
        continue;
      }
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
      if (status != Status::ok) return;
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, gaspi::notify_reset(block, *a.endpoint, data, id, value));
      if (value == 0 || block.thread_rank() != 0) continue;  // another block has taken it
      BEELINE_DEVICE_CHECK_EQ(report, id - 100 + 1, value);
      sum.fetch_add(value, std::memory_order_relaxed);
      taken.fetch_add(1, std::memory_order_relaxed);
    }
  }
};

BEELINE_CASE(signal, gaspi_blocks_share_notifications, 1) {
  if (test.world().mixed()) test.skip_if(true, "flags in host memory are not reset by kernels");
  Table table(test, Heap::symmetric);
  const SymmetricArray<std::uint64_t> counts(test.world(), 2);
  constexpr std::uint32_t blocks = 2, of_each = 30;
  const auto target = static_cast<std::uint32_t>(test.random().below(test.size()));
  test.run(test.shape(blocks, true), CrowdKernel{},
           CrowdArguments{table.endpoint(), counts.data(), counts.data() + 1, target, of_each}, "notifications");
  test.world().barrier();
  const std::uint64_t all = std::uint64_t{of_each} * blocks * static_cast<std::uint64_t>(test.size());
  const bool is_target = test.rank() == static_cast<int>(target);
  BEELINE_CHECK_EQ(is_target ? all : 0, test.read_value(counts.data() + 1));
  BEELINE_CHECK_EQ(is_target ? all * (all + 1) / 2 : 0, test.read_value(counts.data()));
}

struct RefusalArguments {
  const Endpoint* endpoint;
  std::uint32_t peer;
  std::uint64_t own_bytes, peer_bytes;
};

/// Bad arguments are refused, and nothing else happens.
struct RefusalKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, DeviceReport* report, RefusalArguments a) const {
    if (grid.block_rank() != 0) return;
    const auto& block = grid.block();
    const Endpoint& e = *a.endpoint;
    const auto writes = [&](SegmentOffset from, std::uint32_t rank, SegmentOffset to, std::uint64_t bytes,
                            Notification notification, std::uint32_t queue) {
      return gpu_write_notify(block, e, from, rank, to, bytes, notification, queue);
    };
    constexpr Status bad = Status::invalid_argument;
    constexpr std::uint64_t far = ~std::uint64_t{0};
    BEELINE_DEVICE_CHECK_EQ(report, bad, writes({1, 0}, a.peer, {data, 0}, 8, {0, 1}, 0));
    BEELINE_DEVICE_CHECK_EQ(report, bad, writes({data, 0}, a.peer, {segments, 0}, 8, {0, 1}, 0));
    BEELINE_DEVICE_CHECK_EQ(report, bad, writes({data, 0}, e.context.size, {data, 0}, 8, {0, 1}, 0));
    BEELINE_DEVICE_CHECK_EQ(report, bad, writes({data, a.own_bytes - 7}, a.peer, {data, 0}, 8, {0, 1}, 0));
    BEELINE_DEVICE_CHECK_EQ(report, bad, writes({data, 0}, a.peer, {data, a.peer_bytes - 7}, 8, {0, 1}, 0));
    BEELINE_DEVICE_CHECK_EQ(report, bad, writes({data, far}, a.peer, {data, 0}, 8, {0, 1}, 0));
    BEELINE_DEVICE_CHECK_EQ(report, bad, writes({data, 8}, a.peer, {data, 0}, far - 4, {0, 1}, 0));
    BEELINE_DEVICE_CHECK_EQ(report, bad, writes({data, 0}, a.peer, {data, 8}, 8, {notifications, 1}, 0));
    BEELINE_DEVICE_CHECK_EQ(report, bad, writes({data, 0}, a.peer, {data, 8}, 8, {0, 0}, 0));
    BEELINE_DEVICE_CHECK_EQ(report, bad, writes({data, 0}, a.peer, {data, 8}, 8, {0, 1}, queues));
    BEELINE_DEVICE_CHECK_EQ(report, bad, gpu_write(block, e, {data, 0}, a.peer, {data, 8}, 8, queues));
    BEELINE_DEVICE_CHECK_EQ(report, bad, notify(block, e, a.peer, 1, {0, 1}, 0));
    BEELINE_DEVICE_CHECK_EQ(report, bad, notify(block, e, a.peer, data, {0, 0}, 0));
    BEELINE_DEVICE_CHECK_EQ(report, bad, notify(block, e, a.peer, data, {0, 1}, queues));
    refuse_waits(block, e, report);
  }

  template <class BlockGroup>
  BEELINE_HOST_DEVICE static void refuse_waits(const BlockGroup& block, const Endpoint& e, DeviceReport* report) {
    constexpr Status bad = Status::invalid_argument;
    std::uint32_t id = 77;
    BEELINE_DEVICE_CHECK_EQ(report, bad, gaspi::wait(block, e, queues));
    BEELINE_DEVICE_CHECK_EQ(report, bad, wait_for_notification(block, e, data, notifications));
    BEELINE_DEVICE_CHECK_EQ(report, bad, wait_for_notification(block, e, 3, 0));
    BEELINE_DEVICE_CHECK_EQ(report, bad, notify_waitsome(block, e, data, 0, 0, id));
    BEELINE_DEVICE_CHECK_EQ(report, bad, notify_waitsome(block, e, data, 1, notifications, id));
    BEELINE_DEVICE_CHECK_EQ(report, bad, notify_waitsome(block, e, segments, 0, 1, id));
    BEELINE_DEVICE_CHECK_EQ(report, bad, gaspi::notify_reset(block, e, data, notifications, id));
    BEELINE_DEVICE_CHECK_EQ(report, Status::timeout,
                            notify_waitsome(block, e, data, 0, notifications, id, Timeout::test()));
    BEELINE_DEVICE_CHECK_EQ(report, Status::timeout, notify_waitsome(block, e, data, 5, 9, id, Timeout{300'000}));
    BEELINE_DEVICE_CHECK_EQ(report, Status::timeout, wait_for_notification(block, e, data, 5, Timeout{300'000}));
    BEELINE_DEVICE_CHECK_EQ(report, 77, id);
  }
};

BEELINE_CASE(signal, gaspi_bad_arguments, 1) {
  Table table(test, Heap::symmetric);
  const int peer = test.ahead(1);
  test.world().barrier();
  test.run(
      test.shape(1, true), RefusalKernel{},
      RefusalArguments{table.endpoint(), static_cast<std::uint32_t>(peer), data_bytes(test.rank()), data_bytes(peer)},
      "refusals");
  test.world().barrier();
  check_bytes(std::vector<std::byte>(data_bytes(test.rank())), test.read(table.own(), data_bytes(test.rank())),
              "nothing is written");
  std::vector<std::uint64_t> flags(notifications);
  test.world().copy(flags.data(), table.host().flag(data, 0), flags.size() * sizeof flags[0]);
  BEELINE_CHECK(std::ranges::all_of(flags, [](std::uint64_t flag) { return flag == 0; }));
  test.world().check();
}

struct WakeArguments {
  const Endpoint *endpoint, *own;  ///< with flags that CPU threads poll, and that kernels poll
  std::uint32_t ahead;
};

/// Wakes the CPU of the rank ahead, then waits for its answer.
struct WakeKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, DeviceReport* report, WakeArguments a) const {
    if (grid.block_rank() != 0) return;
    const auto& block = grid.block();
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, notify(block, *a.endpoint, a.ahead, small, {11, 5}, 1));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait_for_notification(block, *a.own, data, 12));
  }
};

/// A kernel's notification wakes a CPU thread that waits for it in host memory; a CPU's notification, sent by a stream,
/// wakes a kernel.
BEELINE_CASE(signal, gaspi_kernels_and_hosts_notify_each_other, 1) {
  Table table(test, Heap::pinned), other(test, Heap::symmetric);
  const auto stream = test.world().make_stream();
  const auto peer = static_cast<std::uint32_t>(test.ahead(1));
  test.world().barrier();
  const SymmetricArray<DeviceReport> report(test.world(), 1);
  launch(test.world(), {.waits = true}, WakeKernel{}, report.data(),
         WakeArguments{table.endpoint(), other.endpoint(), peer});
  const Context& ctx = test.world().host_context();
  const Status status = wait(Thread{}, ctx, table.host().flag(small, 11), Compare::not_equal, 0);
  std::uint64_t value = 0;
  BEELINE_CHECK(status == Status::ok && exchange(ctx, table.host().flag(small, 11), 0, value) == Status::ok);
  BEELINE_CHECK_EQ(5u, value);
  signal_on_stream(test.world(), static_cast<int>(peer),
                   {.signal = other.host().flag(data, 12), .value = 1, .stream = stream.get()});
  test.world().synchronize();
  test.world().synchronize(*stream);
  BEELINE_CHECK_EQ(0u, test.read_value(report.data()).failures);
  test.world().barrier();
}

struct PlaceArguments {
  const Endpoint* endpoint;
  std::uint32_t peer;
  std::uint64_t bytes;
  Status expected;
};

struct PlaceKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, DeviceReport* report, PlaceArguments a) const {
    if (grid.block_rank() != 0) return;
    BEELINE_DEVICE_CHECK_EQ(
        report, a.expected,
        gpu_write_notify(grid.block(), *a.endpoint, {data, 3}, a.peer, {small, 1}, a.bytes, {7, 9}, 0));
  }
};

/// Memory that its owner had before is a segment, too, for ranks that load and store there; for others it is
/// unreachable.
BEELINE_CASE(registered, gaspi_writes_to_registered_memory, 1) {
  World& world = test.world();
  constexpr std::size_t bytes = 5000;
  const Heap heap = test.any_heap();
  Table table(test, heap);
  const ForeignMemory foreign(test, bytes);
  const RegisteredMemory& memory = world.register_memory(foreign.data(), bytes);
  const int peer = test.ahead(1);
  const RegisteredPart& part = memory.parts[static_cast<std::size_t>(peer)];
  const bool on_other_node = memory.alias != nullptr && world.node(peer) != world.node(test.rank());
  std::byte* const there = on_other_node ? memory.alias : part.address;
  const PartAccess access = on_other_node      ? PartAccess::symmetric
                            : there != nullptr ? PartAccess::in_place
                                               : PartAccess::none;
  table.host().set(small, peer, there, bytes, access);
  table.host().publish();
  test.write(table.own() + 3, pattern(static_cast<std::uint64_t>(test.rank()), bytes - 1));
  world.barrier();
  const Status expected = access == PartAccess::none ? Status::unreachable : Status::ok;
  test.run(test.shape(1, true), PlaceKernel{},
           PlaceArguments{table.endpoint(), static_cast<std::uint32_t>(peer), bytes - 1, expected}, "in place");
  const auto sent = static_cast<std::uint8_t>(expected == Status::ok);
  const auto who = world.allgather(std::as_bytes(std::span(&sent, 1)));
  if (who[static_cast<std::size_t>(test.behind(1))].front() != std::byte{0}) {
    const std::uint64_t* const flag = table.host().flag(small, 7);
    if (world.device().is_gpu()) {
      while (test.read_value(flag) == 0) world.check();
      BEELINE_CHECK_EQ(9u, test.read_value(flag));
    } else {
      const auto from = static_cast<std::uint32_t>(test.behind(1));
      BEELINE_CHECK(wait(Thread{}, world.host_context(), flag, Compare::equal, 9, from) == Status::ok);
    }
    check_bytes(pattern(static_cast<std::uint64_t>(test.behind(1)), bytes - 1),
                test.read(foreign.data() + 1, bytes - 1), "written");
  }
  world.barrier();
  world.deregister_memory(memory.id);
}

}  // namespace

}  // namespace beeline_test::gaspi_cases
