// SPDX-License-Identifier: Apache-2.0
// The order of a queue's commands and their destination, whatever carries the commands out: an engine's thread that
// stores into GPU memory itself, the engine's streams, or a service block; also when these take turns.
#include <string>
#include <vector>

#include "beeline/runtime/gpu_place.hpp"
#include "tests/conformance/queue_cases.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test {

namespace {

using namespace beeline;

/// Whether the threads of this rank's engine store into GPU memory themselves. Skips the case, with the reason, if they
/// should but the machine does not map that memory for CPUs.
bool expect_cpu_stores(RankTest& test) {
  const World& world = test.world();
  if (!test.on_gpu() || !world.config().cpu_stores) return false;
  test.skip_if_any(no_cpu_stores_reason(world.device().index));
  return true;
}

constexpr std::uint32_t payload_place = 64;  ///< bytes

struct PayloadArguments {
  std::byte* payloads;     ///< [2][payload_place] from this rank itself, from the rank behind
  std::uint64_t *arrived,  ///< [2] set by the same senders
      *consumed;           ///< [1] rounds whose payload the rank ahead has checked
  std::uint32_t ahead, behind, skew;
  CommandQueuesView channel;
};

[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint8_t payload_byte(std::uint64_t round, std::uint32_t rank,
                                                                      std::size_t index) {
  return static_cast<std::uint8_t>(7 * round + 31 * rank + index + 1);
}

/// Puts payloads of each size that a command can hold, with a signal in the next or in the same command, to the rank
/// itself and to the next rank. A receiver of the signal sees the whole payload, and no byte beyond it is written.
struct PayloadKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, PayloadArguments a) const {
    if (grid.thread_rank() != 0) return;
    std::uint64_t round = 0;
    for (std::uint32_t size = 1; size <= max_inline_bytes; ++size)
      for (const bool by_one_command : {false, true})
        for (const bool to_own : {true, false})
          if (!by_one_command || size <= max_inline_bytes_with_signal)
            pass(ctx, report, a, {++round, size, by_one_command, to_own});
  }

  /// Of each rank.
  [[nodiscard]] static constexpr std::uint64_t words_of_cpu() {
    return 2 * 2 * (max_inline_bytes + max_inline_bytes_with_signal);
  }

 private:
  struct Round {
    std::uint64_t number;
    std::uint32_t size;
    bool by_one_command, to_own;
  };
  static BEELINE_HOST_DEVICE void pass(const Context& ctx, DeviceReport* report, const PayloadArguments& a,
                                       Round round) {
    const Thread one{};
    const CommandQueue queue = a.channel.queue(0);
    const std::uint32_t way = round.to_own ? 0 : 1, from = round.to_own ? ctx.rank : a.behind;
    std::byte* const place = a.payloads + way * payload_place + a.skew;
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post(ctx, a, round, place));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(one, ctx, a.arrived + way, Compare::equal, round.number, from));
    for (std::uint32_t i = 0; i < round.size; ++i)
      BEELINE_DEVICE_CHECK_EQ(report, payload_byte(round.number, from, i), load_value(place + i));
    BEELINE_DEVICE_CHECK_EQ(report, 0, load_value(place + round.size));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(one, ctx, queue));
    if (round.to_own) return;
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, signal(one, ctx, a.consumed, round.number, a.behind));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(one, ctx, a.consumed, Compare::equal, round.number, a.ahead));
  }
  static BEELINE_HOST_DEVICE Status post(const Context& ctx, const PayloadArguments& a, Round round, std::byte* place) {
    const Thread one{};
    const CommandQueue queue = a.channel.queue(0);
    const std::uint32_t way = round.to_own ? 0 : 1, to = round.to_own ? ctx.rank : a.ahead;
    std::byte mine[max_inline_bytes];
    for (std::uint32_t i = 0; i < round.size; ++i) mine[i] = std::byte{payload_byte(round.number, ctx.rank, i)};
    if (round.by_one_command)
      return post_put_signal(one, ctx, place, mine, round.size, a.arrived + way, round.number, to, queue);
    const Status status = post_put(one, ctx, place, mine, round.size, to, queue);
    return status == Status::ok ? post_signal(one, ctx, a.arrived + way, round.number, to, queue) : status;
  }
};

/// On GPUs the statistics count payloads that the engine's threads have stored for ranks of this node: all payloads, or
/// none if BEELINE_CPU_STORES=0.
POST_CASE(payloads_of_each_size, 1) {
  World& world = test.world();
  need_reach(test, world);
  const bool by_cpu = engine == EngineKind::host && expect_cpu_stores(test);
  CommandQueues queues(world, 1, {.engine = engine});
  for (const std::uint32_t skew : {0u, 3u}) {
    const SymmetricArray<std::byte> payloads(world, 2 * payload_place);
    const Signals signals(world, 3);
    const std::uint64_t before = queues.statistics().cpu_stores;
    test.run(
        test.shape(1, true), PayloadKernel{},
        PayloadArguments{payloads.data(), signals.data(), signals.data() + 2, static_cast<std::uint32_t>(test.ahead(1)),
                         static_cast<std::uint32_t>(test.behind(1)), skew, queues.channel()},
        "payloads");
    const std::uint64_t stored = queues.statistics().cpu_stores - before;
    const std::uint64_t on_this_node = PayloadKernel::words_of_cpu() / (test.on_several_nodes() ? 2 : 1);
    BEELINE_CHECK_EQ(by_cpu ? on_this_node : 0, stored);
    world.barrier();
  }
}

struct TurnArguments {
  std::uint64_t *source, *landed;  ///< [count]
  std::uint64_t *own, *words,      ///< [1], [2]
      *seen;                       ///< [1] a copy of another rank's `own`
  std::uint64_t *arrived, *consumed;
  std::size_t count;
  std::uint32_t rounds, ahead, behind;
  bool checks_own;
  CommandQueuesView channel;
};

/// Each round puts a word to the rank's own memory, then to the next rank a word, every second time an array, a word
/// and the signal. A receiver of the signal sees all of these; on the sender's node the sender's word, too.
struct TurnKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, TurnArguments a) const {
    if (grid.thread_rank() != 0) return;
    const Thread one{};
    for (std::uint64_t round = 1; round <= a.rounds; ++round) {
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, send(ctx, a, round));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(one, ctx, a.arrived, Compare::equal, round, a.behind));
      for (const std::uint64_t* const word : {a.words, a.words + 1})
        BEELINE_DEVICE_CHECK_EQ(report, round, load_value(word));
      for (const std::size_t i : {std::size_t{0}, a.count / 2, a.count - 1})
        BEELINE_DEVICE_CHECK_EQ(report, last_array(round) + i, load_value(a.landed + i));
      if (a.checks_own) {
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, get(one, ctx, a.seen, a.own, 1, a.behind));
        BEELINE_DEVICE_CHECK_EQ(report, round, load_value(a.seen));
      }
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, flush(one, ctx, a.channel.queue(0)));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, signal(one, ctx, a.consumed, round, a.behind));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(one, ctx, a.consumed, Compare::equal, round, a.ahead));
    }
  }

 private:
  /// First element of the array that was sent last by this round; round 1 sends the first array.
  [[nodiscard]] static BEELINE_HOST_DEVICE constexpr std::uint64_t last_array(std::uint64_t round) {
    return 1000 * (round % 2 == 1 ? round : round - 1);
  }
  static BEELINE_HOST_DEVICE Status send(const Context& ctx, const TurnArguments& a, std::uint64_t round) {
    const Thread one{};
    const CommandQueue queue = a.channel.queue(0);
    const auto put = [&](std::uint64_t* to, const std::uint64_t* from, std::size_t count, std::uint32_t peer) {
      return post_put(one, ctx, to, from, count, peer, queue);
    };
    Status status = put(a.own, &round, 1, ctx.rank);
    if (status == Status::ok) status = put(a.words, &round, 1, a.ahead);
    if (status == Status::ok && round % 2 == 1) {
      for (std::size_t i = 0; i < a.count; ++i) a.source[i] = 1000 * round + i;
      status = put(a.landed, a.source, a.count, a.ahead);
    }
    if (status == Status::ok) status = put(a.words + 1, &round, 1, a.ahead);
    return status == Status::ok ? post_signal(one, ctx, a.arrived, round, a.ahead, queue) : status;
  }
};

POST_CASE(words_and_copies_in_turn, 1) {
  World& world = test.world();
  need_reach(test, world);
  CommandQueues queues(world, 1, {.engine = engine});
  for (const std::size_t count : {std::size_t{6}, std::size_t{2000}}) {
    const SymmetricArray<std::uint64_t> source(world, count), landed(world, count), words(world, 4);
    const Signals signals(world, 2);
    world.barrier();
    test.run(test.shape(1, true), TurnKernel{},
             TurnArguments{source.data(), landed.data(), words.data(), words.data() + 1, words.data() + 3,
                           signals.data(), signals.data() + 1, count, under_thread_sanitizer ? 10u : 40u,
                           static_cast<std::uint32_t>(test.ahead(1)), static_cast<std::uint32_t>(test.behind(1)),
                           !test.on_several_nodes(), queues.channel()},
             "words and copies");
    world.barrier();
  }
}

struct RefusalArguments {
  std::byte *source, *landed, *nowhere;  ///< [bytes]
  std::size_t bytes;
  std::uint64_t* words;       ///< [3]: sent before the refusal, after it, and by the other queue
  std::uint64_t* signals;     ///< [2]: of the refused queue, of the other queue
  std::uint64_t *got, *last;  ///< [1]: the end of `landed` at the peer; the value expected there
  std::uint32_t ahead, behind;
  CommandQueuesView channel;
};

/// Posts a word and an array, then a copy that the engine refuses meanwhile, then words and a signal.
struct RefusalKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, RefusalArguments a) const {
    if (grid.thread_rank() != 0) return;
    const Thread one{};
    const CommandQueue bad = a.channel.queue(0), good = a.channel.queue(1);
    const std::uint64_t value = 1;
    const auto put_word = [&](std::uint64_t* word, std::uint32_t peer, CommandQueue queue) {
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_put(one, ctx, word, &value, 1, peer, queue));
    };
    put_word(a.words, a.ahead, bad);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_put(one, ctx, a.landed, a.source, a.bytes, a.ahead, bad));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_copy(one, ctx, a.source, a.nowhere, 4096, bad));
    for (const std::uint32_t peer : {ctx.rank, a.ahead}) put_word(a.words + 1, peer, bad);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_signal(one, ctx, a.signals, 1, a.ahead, bad));
    for (const std::uint32_t peer : {ctx.rank, a.ahead}) put_word(a.words + 2, peer, good);
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_signal(one, ctx, a.signals + 1, 1, a.ahead, good));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(one, ctx, a.signals + 1, Compare::equal, 1, a.behind));
    BEELINE_DEVICE_CHECK_EQ(report, 1, load_value(a.words + 2));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(one, ctx, good));
    // Commands posted before the refused one have arrived when `quiet` reports the refusal.
    BEELINE_DEVICE_CHECK_EQ(report, Status::invalid_argument, quiet(one, ctx, bad));
    const auto* const end = reinterpret_cast<const std::uint64_t*>(a.landed + a.bytes) - 1;
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, get(one, ctx, a.got, end, 1, a.ahead));
    BEELINE_DEVICE_CHECK_EQ(report, load_value(a.last), load_value(a.got));
    put_word(a.words + 1, a.ahead, bad);  // the engine is idle now
    BEELINE_DEVICE_CHECK_EQ(report, Status::invalid_argument, flush(one, ctx, bad));
  }
};

/// Commands before a refused one take effect, later ones of its queue do not, and other queues continue meanwhile.
POST_CASE(refusal_behind_copies_under_way, 1) {
  World& world = test.world();
  need_reach(test, world);
  constexpr std::size_t bytes = most_bytes / 16 * 16;
  CommandQueues queues(world, 2, {.engine = engine});
  const std::uint64_t refused_before = queues.statistics().refused;  // the engine also serves other queues
  const SymmetricArray<std::byte> source(world, bytes), landed(world, bytes);
  const SymmetricArray<std::uint64_t> words(world, 5);
  const Signals signals(world, 2);
  const std::vector<std::byte> mine = pattern(static_cast<std::uint64_t>(test.rank()), bytes);
  test.write(source.data(), mine);
  test.write(words.data() + 4, {mine.end() - 8, mine.end()});
  world.barrier();
  const RefusalArguments arguments{source.data(),
                                   landed.data(),
                                   reinterpret_cast<std::byte*>(std::uintptr_t{4096}),
                                   bytes,
                                   words.data(),
                                   signals.data(),
                                   words.data() + 3,
                                   words.data() + 4,
                                   static_cast<std::uint32_t>(test.ahead(1)),
                                   static_cast<std::uint32_t>(test.behind(1)),
                                   queues.channel()};
  check_error(Status::invalid_argument, {"rank " + std::to_string(test.rank()) + "'s engine refused command 3"},
              [&] { test.run(test.shape(1, true), RefusalKernel{}, arguments, "a refusal behind copies"); });
  test.check_report("a refusal behind copies");
  world.barrier();
  check_bytes(pattern(static_cast<std::uint64_t>(test.behind(1)), bytes), test.read(landed.data(), bytes), "put");
  BEELINE_CHECK_EQ(std::uint64_t{1}, test.read_value(words.data()));
  BEELINE_CHECK_EQ(std::uint64_t{0}, test.read_value(words.data() + 1));
  BEELINE_CHECK_EQ(std::uint64_t{0}, test.read_value(signals.data()));
  BEELINE_CHECK_EQ(refused_before + 5, queues.statistics().refused);
  BEELINE_CHECK_EQ(std::size_t{1}, queues.refusals().size());
  BEELINE_CHECK(!world.failed());
  world.barrier();
}

}  // namespace

}  // namespace beeline_test
