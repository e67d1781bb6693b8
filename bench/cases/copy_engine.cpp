// SPDX-License-Identifier: Apache-2.0
/// @file
/// host/copy_engine/signal: the CPU starts copies, waits for their end, and signals the peer's CPU.
/// stream/copy_engine/signal: copies and signals are enqueued on streams; neither CPU nor kernel acts in between.
/// Ping-pong, and message after message one way. In the one-way case, the receiver's CPU waits for the last message
/// (host) or its stream answers it (stream).

#include "beeline/device/group.hpp"
#include "beeline/device/signal.hpp"
#include "beeline/host/stream_operations.hpp"
#include "cases/cases.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"
#include "peers/bare_copy.hpp"

namespace beeline::bench::copy_engine_cases {

namespace {

/// Copies of messages and their signals, identified by number.
class Copies {
 public:
  /// Collective.
  Copies(Bench& bench, std::uint64_t bytes, Heap signals)
      : bench_(bench), buffers_(std::make_shared<MessageBuffers>(bench, bytes)), signals_(bench.world(), 1, signals) {}

  [[nodiscard]] const std::shared_ptr<MessageBuffers>& buffers() const { return buffers_; }

 protected:
  [[nodiscard]] Bench& bench() const { return bench_; }
  [[nodiscard]] World& world() const { return bench_.world(); }
  [[nodiscard]] int peer() const { return static_cast<int>(bench_.peer()); }
  [[nodiscard]] std::byte* there() const { return world().at(buffers_->destination(), peer()); }
  [[nodiscard]] std::uint64_t* signal() const { return &signals_.data()->value; }
  void copy() { world().stream().copy(there(), buffers_->source(), buffers_->bytes()); }

  std::uint64_t sequence_ = 0;

 private:
  Bench& bench_;
  std::shared_ptr<MessageBuffers> buffers_;
  SymmetricArray<PaddedWord> signals_;
};

class HostCopies : public Copies {
 public:
  HostCopies(Bench& bench, std::uint64_t bytes)
      : Copies(bench, bytes, Heap::pinned), copied_(bench.world().stream().make_event()) {}

  std::vector<double> ping_pong(Rounds rounds) {
    return time_on_host(bench(), rounds, [this] {
      ++sequence_;
      if (bench().leads()) copy(), await_copies(), tell();
      hear("waiting for the peer's message");
      if (!bench().leads()) copy(), await_copies(), tell();
    });
  }

  std::vector<double> flood(Rounds rounds) {
    return time_on_host(
        bench(), rounds,
        [this] {
          if (bench().leads()) copy();
        },
        [this] {
          ++sequence_;
          if (bench().leads())
            await_copies(), tell();
          else
            hear("waiting for the copies' end");
        });
  }

  std::vector<double> bare_flood(Rounds rounds) {
    return time_on_host(
        bench(), rounds,
        [this] {
          if (bench().leads()) bare_copy(world().stream(), there(), buffers()->source(), buffers()->bytes());
        },
        [this] {
          if (bench().leads()) await_copies();
        });
  }

 private:
  void await_copies() {
    world().stream().record(*copied_);
    world().synchronize(*copied_);
  }
  void tell() { beeline::signal(Thread{}, world().host_context(), signal(), sequence_, bench().peer()); }
  void hear(const char* what) {
    bench().require_ok(
        wait(Thread{}, world().host_context(), signal(), Compare::greater_equal, sequence_, bench().peer()), what);
  }

  std::unique_ptr<Event> copied_;
};

class StreamCopies : public Copies {
 public:
  StreamCopies(Bench& bench, std::uint64_t bytes) : Copies(bench, bytes, Heap::symmetric) {}

  std::vector<double> ping_pong(Rounds rounds) {
    return time_on_host(
        bench(), rounds,
        [this] {
          ++sequence_;
          if (bench().leads()) copy(), tell();
          hear();
          if (!bench().leads()) copy(), tell();
        },
        [this] { world().synchronize(); });
  }

  std::vector<double> flood(Rounds rounds) {
    return time_on_host(
        bench(), rounds,
        [this] {
          ++sequence_;
          if (bench().leads()) copy(), tell();
        },
        [this] {
          hear();
          if (!bench().leads()) tell();
          world().synchronize();
        });
  }

 private:
  void tell() { signal_on_stream(world(), peer(), {.signal = signal(), .value = sequence_}); }
  void hear() { wait_on_stream(world(), {.signal = signal(), .value = sequence_, .peer = bench().peer()}); }
};

template <class Kind>
constexpr const char* method_of =
    std::is_same_v<Kind, HostCopies> ? "host/copy_engine/signal" : "stream/copy_engine/signal";

template <class Kind>
using Time = std::vector<double> (Kind::*)(Rounds);

/// A case that `time` measures, compared with `bare`.
///   most_iterations  as many operations, about a thousand, as a CUDA stream takes without blocking inside the driver
template <class Kind>
Case case_of(Receivers receivers, Time<Kind> time, std::uint32_t most_iterations, Time<Kind> bare = nullptr) {
  const auto prepare = [=](Bench& bench, std::uint64_t bytes) {
    const auto copies = std::make_shared<Kind>(bench, bytes);
    std::vector<Measurement> all;
    for (const Time<Kind> each : {bare, time}) {
      if (each == nullptr) continue;
      all.push_back(message_measurement(bench, copies->buffers(), receivers, method_of<Kind>,
                                        [=](Rounds rounds) { return (*copies.*each)(rounds); }));
      all.back().most_iterations = most_iterations;
    }
    if (bare == nullptr) return all;
    all[0].method = "bare/copy";
    all[0].peer_of = method_of<Kind>;
    all[0].stores_to_peer = true;
    all[1].baseline = 0;
    return all;
  };
  return {receivers == Receivers::both ? "message" : "put", method_of<Kind>, true, prepare};
}

const ListedCases latency_cases(Command::latency,
                                {case_of(Receivers::both, &StreamCopies::ping_pong, 200),
                                 case_of(Receivers::both, &HostCopies::ping_pong, Measurement{}.most_iterations)});
const ListedCases bandwidth_cases(Command::bandwidth,
                                  {case_of(Receivers::second, &StreamCopies::flood, 250),
                                   case_of(Receivers::second, &HostCopies::flood, 500, &HostCopies::bare_flood)});

}  // namespace

}  // namespace beeline::bench::copy_engine_cases
