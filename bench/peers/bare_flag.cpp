// SPDX-License-Identifier: Apache-2.0
#include "peers/bare_flag.hpp"

#include <cuda/atomic>

#include "harness/group_choice.hpp"
#include "harness/timed_flag.hpp"
#include "peers/bare_poll.hpp"

namespace beeline::bench {

namespace {

template <BareOrder order>
struct BareFlagPingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::uint64_t* here,
                                      std::uint64_t* there) const {
    const auto& block = grid.block();
    if (block.thread_rank() != 0) return;
    using Word = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;
    constexpr auto release = order == BareOrder::memory ? cuda::memory_order_release : cuda::memory_order_relaxed;
    constexpr auto acquire = order == BareOrder::relaxed ? cuda::memory_order_relaxed : cuda::memory_order_acquire;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads,
          [&] {
            Word(*there).store(sequence, release);
            return true;
          },
          [&] { return bare_poll<acquire>(block, ctx, here, sequence); });
    });
  }
};

template <BareOrder order>
Measurement make(Bench& bench, const char* name, std::string operation) {
  auto flag = std::make_shared<TimedFlag>(bench);
  const GroupChoice choice = single_thread(bench);
  std::uint64_t* there = bench.paired() ? bench.world().at(flag->word(), static_cast<int>(bench.peer())) : nullptr;
  return flag_measurement(bench, flag, std::move(operation), "bare/flag", name, [=](Rounds rounds) {
    return flag->run(choice.threads, rounds, BareFlagPingPong<order>{}, flag->word(), there);
  });
}

}  // namespace

Measurement bare_flag(Bench& bench, BareOrder order, std::string operation, std::string peer_of) {
  Measurement measurement = order == BareOrder::relaxed   ? make<BareOrder::relaxed>(bench, "relaxed", operation)
                            : order == BareOrder::acquire ? make<BareOrder::acquire>(bench, "acquire", operation)
                                                          : make<BareOrder::memory>(bench, "memory", operation);
  measurement.peer_of = std::move(peer_of);
  return measurement;
}

}  // namespace beeline::bench
