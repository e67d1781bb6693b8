// SPDX-License-Identifier: Apache-2.0
#include "peers/bare_ping_pong.hpp"

#include "harness/group_choice.hpp"
#include "harness/timed_flag.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench {

namespace {

template <BareOrder order>
struct BareFlagPingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::uint64_t* here,
                                      std::uint64_t* there) const {
    const auto& block = grid.block();
    if (block.thread_rank() != 0) return;
    constexpr auto release = order == BareOrder::memory ? std::memory_order_release : std::memory_order_relaxed;
    constexpr auto acquire = order == BareOrder::relaxed ? std::memory_order_relaxed : std::memory_order_acquire;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads, [&] { BareWord(*there).store(sequence, release); },
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

struct Words {
  const std::uint64_t* source;
  std::uint64_t *destination_there, *flag_there, *flag_here;
};

struct BarePutSignalPingPong {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Words words) const {
    const auto& block = grid.block();
    if (block.thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads, [&] { bare_post(words.destination_there, words.source, words.flag_there, sequence); },
          [&] { return bare_poll<std::memory_order_acquire>(block, ctx, words.flag_here, sequence); });
    });
  }
};

}  // namespace

Measurement bare_flag(Bench& bench, BareOrder order, std::string operation, std::string peer_of) {
  Measurement measurement = order == BareOrder::relaxed   ? make<BareOrder::relaxed>(bench, "relaxed", operation)
                            : order == BareOrder::acquire ? make<BareOrder::acquire>(bench, "acquire", operation)
                                                          : make<BareOrder::memory>(bench, "memory", operation);
  measurement.peer_of = std::move(peer_of);
  measurement.stores_to_peer = true;
  return measurement;
}

Measurement bare_put_signal(Bench& bench, std::shared_ptr<MessageBuffers> buffers) {
  auto flag = std::make_shared<TimedFlag>(bench);
  const GroupChoice choice = single_thread(bench);
  Words words{reinterpret_cast<const std::uint64_t*>(buffers->source()), nullptr, nullptr, flag->word()};
  if (bench.paired()) {
    const int peer = static_cast<int>(bench.peer());
    words.destination_there = bench.world().at(reinterpret_cast<std::uint64_t*>(buffers->destination()), peer);
    words.flag_there = bench.world().at(flag->word(), peer);
  }
  Measurement measurement = message_measurement(bench, buffers, Receivers::both, "bare/put_signal", [=](Rounds rounds) {
    return flag->run(choice.threads, rounds, BarePutSignalPingPong{}, words);
  });
  measurement.settings = choice.settings();
  measurement.peer_of = "device/peer/signal";
  measurement.stores_to_peer = true;
  return measurement;
}

}  // namespace beeline::bench
