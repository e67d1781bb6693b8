// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The placements of a software adapter (docs/adapters.md), and loops that are timed in each of them. A format gives
/// its `Actions`, which kernels and CPU threads call with their context, and which have one or both of these:
///
///   bool send(ctx, sequence), receive(ctx, sequence)   one message of a ping-pong
///   bool put(ctx, sequence)                            a one-sided operation, and the wait for its end

#include <cstdint>
#include <type_traits>

#include "beeline/core/error.hpp"
#include "beeline/host/command_queues.hpp"
#include "cases/bare_answers.hpp"
#include "harness/group_choice.hpp"
#include "harness/timed_host.hpp"
#include "harness/timed_kernel.hpp"

namespace beeline::bench {

enum class Placement {
  resident,  ///< kernels post to rings in the memory of their device, which a resident block serves
  proxy,     ///< kernels post to rings in host memory, which threads of the host serve
  host,      ///< CPU threads post to rings in host memory; no kernel runs
  assisted   ///< as `host`, whenever a kernel asks for it by a flag
};

[[nodiscard]] constexpr const char* name_of(Placement placement) {
  constexpr const char* names[] = {"resident", "proxy", "host", "assisted"};
  return names[static_cast<int>(placement)];
}
[[nodiscard]] constexpr bool kernels_post(Placement placement) {
  return placement == Placement::resident || placement == Placement::proxy;
}
[[nodiscard]] constexpr EngineKind engine_of(Placement placement) {
  return placement == Placement::resident ? EngineKind::device : EngineKind::host;
}
/// The heap of words that posters poll.
[[nodiscard]] constexpr Heap heap_of(Placement placement) {
  return kernels_post(placement) ? Heap::symmetric : Heap::pinned;
}

/// Throws unavailable where a host rank's engine would have to reach memory of a GPU, and on GPU ranks that share a
/// GPU: blocks of adapters book multiprocessors.
inline Bench& with_room(Bench& bench, Placement placement) {
  const World& world = bench.world();
  bench.require_reach_of_engines(false);
  require(placement != Placement::resident || !world.device().is_gpu() || world.ranks_on_device() == 1,
          Status::unavailable, "the resident blocks of ranks that share a GPU leave their kernels no multiprocessors");
  return bench;
}

/// Calls by a kernel.
struct ByKernel {
  template <class Actions>
  BEELINE_HOST_DEVICE bool send(const Context& ctx, const Actions& actions, std::uint64_t sequence) const {
    return actions.send(ctx, sequence);
  }
  template <class Actions>
  BEELINE_HOST_DEVICE bool receive(const Context& ctx, const Actions& actions, std::uint64_t sequence) const {
    return actions.receive(ctx, sequence);
  }
  template <class Actions>
  BEELINE_HOST_DEVICE bool put(const Context& ctx, const Actions& actions, std::uint64_t sequence) const {
    return actions.put(ctx, sequence);
  }
};

/// A kernel that asks a CPU thread for each call: it stores a number that grows, and polls for the same number.
struct Asking {
  static constexpr std::uint64_t put_call = 0, send_call = 1, receive_call = 2, calls = 4;
  std::uint64_t *asked, *answered;  ///< in host memory
  bool leads;                       ///< sends first

  template <class Actions>
  BEELINE_HOST_DEVICE bool send(const Context& ctx, const Actions&, std::uint64_t sequence) const {
    return ask(ctx, 2 * sequence + (leads ? 0 : 1), send_call);
  }
  template <class Actions>
  BEELINE_HOST_DEVICE bool receive(const Context& ctx, const Actions&, std::uint64_t sequence) const {
    return ask(ctx, 2 * sequence + (leads ? 1 : 0), receive_call);
  }
  template <class Actions>
  BEELINE_HOST_DEVICE bool put(const Context& ctx, const Actions&, std::uint64_t sequence) const {
    return ask(ctx, 2 * sequence, put_call);
  }
  /// Makes the call that a kernel has asked for. If the call fails, the kernel's wait ends after its limit of polls.
  template <class Actions>
  void answer(const Context& ctx, const Actions& actions, std::uint64_t question) const {
    const std::uint64_t sequence = question / calls / 2, call = question % calls;
    bool is_done = false;
    if constexpr (requires { actions.send(ctx, sequence); }) {
      if (call == send_call) is_done = actions.send(ctx, sequence);
      if (call == receive_call) is_done = actions.receive(ctx, sequence);
    }
    if constexpr (requires { actions.put(ctx, sequence); })
      if (call == put_call) is_done = actions.put(ctx, sequence);
    if (is_done) BareWord(*answered).store(question, std::memory_order_release);
  }

 private:
  BEELINE_HOST_DEVICE bool ask(const Context& ctx, std::uint64_t number, std::uint64_t call) const {
    const std::uint64_t question = number * calls + call;
    BareWord(*asked).store(question, std::memory_order_release);
    return bare_poll<std::memory_order_acquire>(Thread{}, ctx, answered, question);
  }
};

struct AdapterPingPong {
  static constexpr bool has_sound_copies = true;  ///< it takes references
  template <class Grid, class By, class Actions>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, const By& by,
                                      const Actions& actions) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads, [&] { return by.send(ctx, actions, sequence); },
          [&] { return by.receive(ctx, actions, sequence); });
    });
  }
};

struct AdapterFlood {
  static constexpr bool has_sound_copies = true;  ///< it takes references
  template <class Grid, class By, class Actions>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, const By& by,
                                      const Actions& actions) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) { return by.put(ctx, actions, sequence); });
  }
};

/// Collective. A CPU thread of rank 0 calls `round()`, which returns the nanoseconds of its timed part.
template <class Round>
std::vector<double> time_parts_on_host(Bench& bench, Rounds rounds, Round round) {
  bench.world().barrier();
  if (!bench.leads()) return {};
  for (std::uint32_t i = 0; i < rounds.warm_up; ++i) round();
  return time_batches(rounds, [&] {
    double ns = 0;
    for (std::uint32_t i = 0; i < rounds.iterations; ++i) ns += round();
    return ns;
  });
}

/// Runs loops in a placement.
class Placed {
 public:
  /// Collective.
  Placed(Bench& bench, Placement placement)
      : bench_(bench), placement_(placement), words_(bench.world(), 2, Heap::pinned), timed_(bench) {}

  [[nodiscard]] TimedKernel& timed() { return timed_; }
  /// Collective. Round trips of `send` and `receive`.
  template <class Actions>
  std::vector<double> ping_pong(Rounds rounds, const Actions& actions) {
    if (placement_ == Placement::host)
      return time_on_host(bench_, rounds, [&] {
        ++sequence_;
        require_done(!bench_.leads() || actions.send(context(), sequence_));
        require_done(actions.receive(context(), sequence_));
        require_done(bench_.leads() || actions.send(context(), sequence_));
      });
    return run(rounds, bench_.paired(), AdapterPingPong{}, actions);
  }
  /// Collective. Calls of `put` by rank 0.
  template <class Actions>
  std::vector<double> flood(Rounds rounds, const Actions& actions) {
    if (placement_ == Placement::host)
      return time_on_host(bench_, rounds, [&] {
        ++sequence_;
        require_done(!bench_.leads() || actions.put(context(), sequence_));
      });
    return run(rounds, bench_.leads(), AdapterFlood{}, actions);
  }

 private:
  [[nodiscard]] const Context& context() const { return bench_.world().host_context(); }
  static void require_done(bool is_done) { require(is_done, Status::internal, "a request to an adapter failed"); }
  template <class Kernel, class Actions>
  std::vector<double> run(Rounds rounds, bool takes_part, Kernel kernel, const Actions& actions) {
    const unsigned threads = single_thread(bench_).threads;
    if (placement_ != Placement::assisted) return timed_.run(threads, takes_part, rounds, kernel, ByKernel{}, actions);
    const Asking asking{&words_.data()[0].value, &words_.data()[1].value, bench_.leads()};
    const BareAnswers answers(bench_.world(), asking.asked, *asking.asked,
                              [=, this](std::uint64_t question) { asking.answer(context(), actions, question); });
    return timed_.run(threads, takes_part, rounds, kernel, asking, actions);
  }

  Bench& bench_;
  const Placement placement_;
  SymmetricArray<PaddedWord> words_;  ///< of `Asking`
  TimedKernel timed_;
  std::uint64_t sequence_ = 0;
};

}  // namespace beeline::bench
