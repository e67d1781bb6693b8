// SPDX-License-Identifier: Apache-2.0
// wait_any over signals in pinned host memory: kernels reset the signals by stores, CPU threads by an exchange. Some
// rank's kernel sets each signal once.
#include "tests/conformance/rank_test.hpp"

namespace beeline_test::wait_any_cases {

namespace {

using namespace beeline;

constexpr std::uint32_t per_rank = 40;

BEELINE_HOST_DEVICE std::uint64_t announced(std::uint32_t index) { return 1000 + index; }

struct PinnedArguments {
  std::uint64_t* signals;  ///< [count], in pinned memory
  std::uint32_t count;
};

/// Sets this rank's signals on all ranks, in reverse order.
BEELINE_HOST_DEVICE void announce(const Context& ctx, const PinnedArguments& a) {
  for (std::uint32_t peer = 0; peer < ctx.size; ++peer)
    for (std::uint32_t i = per_rank; i-- > 0;) {
      const std::uint32_t index = i * ctx.size + ctx.rank;
      signal(Thread{}, ctx, &a.signals[index], announced(index), peer);
    }
}

/// Takes all signals in the order in which they are found. `reset(index)` clears a signal and returns its old value.
template <class Reset>
BEELINE_HOST_DEVICE Status take_all(const Context& ctx, const PinnedArguments& a, std::uint64_t& sum, Reset reset) {
  for (std::uint32_t taken = 0; taken < a.count; ++taken) {
    std::uint32_t index = a.count;
    const Status status = wait_any(ctx, a.signals, a.count, index);
    if (status != Status::ok) return status;
    const std::uint64_t value = reset(index);
    if (value != announced(index)) return Status::internal;
    sum += value;
  }
  return Status::ok;
}

std::uint64_t sum_of_all(std::uint32_t count) {
  std::uint64_t sum = 0;
  for (std::uint32_t index = 0; index < count; ++index) sum += announced(index);
  return sum;
}

struct TakeKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, PinnedArguments a) const {
    if (grid.thread_rank() != 0) return;
    announce(ctx, a);
    std::uint64_t sum = 0, expected = 0;
    const auto reset = [&](std::uint32_t index) {
      const std::uint64_t value = load_value(&a.signals[index]);
      signal(Thread{}, ctx, &a.signals[index], 0, ctx.rank, Order::relaxed);
      return value;
    };
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, take_all(ctx, a, sum, reset));
    for (std::uint32_t index = 0; index < a.count; ++index) expected += announced(index);
    BEELINE_DEVICE_CHECK_EQ(report, expected, sum);
  }
};

BEELINE_CASE(wait_any, kernels_wait_for_any_in_pinned_memory, 1) {
  const std::uint32_t count = per_rank * static_cast<std::uint32_t>(test.size());
  const SymmetricArray<std::uint64_t> signals(test.world(), count, Heap::pinned);
  test.run(test.shape(1, true), TakeKernel{}, PinnedArguments{signals.data(), count}, "wait_any in pinned memory");
  test.world().barrier();
}

struct AnnounceKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, PinnedArguments a) const {
    if (grid.thread_rank() == 0) announce(ctx, a);
  }
};

BEELINE_CASE(wait_any, cpu_threads_wait_for_any_in_pinned_memory, 1) {
  World& world = test.world();
  const std::uint32_t count = per_rank * static_cast<std::uint32_t>(test.size());
  const SymmetricArray<std::uint64_t> signals(world, count, Heap::pinned);
  const PinnedArguments arguments{signals.data(), count};
  launch(world, {}, AnnounceKernel{}, arguments);
  std::uint64_t sum = 0;
  const Context& ctx = world.host_context();
  const Status status = take_all(ctx, arguments, sum, [&](std::uint32_t index) {
    std::uint64_t value = 0;
    return exchange(ctx, &arguments.signals[index], 0, value) == Status::ok ? value : 0;
  });
  world.check();
  BEELINE_CHECK_EQ(std::string("ok"), name(status));
  BEELINE_CHECK_EQ(sum_of_all(count), sum);
  std::uint32_t index = count;
  BEELINE_CHECK_EQ(std::string("timeout"),
                   name(wait_any(world.host_context(), signals.data(), count, index, Timeout::test())));
  world.synchronize();
  world.barrier();
}

}  // namespace

}  // namespace beeline_test::wait_any_cases
