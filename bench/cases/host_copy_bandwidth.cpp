// SPDX-License-Identifier: Apache-2.0
/// @file
/// host/copy_engine/signal: the CPU starts several copies, awaits the last one's end, and signals the peer's CPU.

#include "beeline/device/group.hpp"
#include "beeline/device/signal.hpp"
#include "cases/cases.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"
#include "peers/bare_copy.hpp"

namespace beeline::bench {

namespace {

class HostCopies {
 public:
  HostCopies(Bench& bench, std::shared_ptr<MessageBuffers> buffers)
      : bench_(bench), buffers_(std::move(buffers)), signals_(bench.world(), 1, Heap::pinned),
        copied_(bench.world().stream().make_event()) {}

  std::vector<double> time_library(Rounds rounds) {
    World& world = bench_.world();
    return time_on_host(
        bench_, rounds,
        [&] {
          if (bench_.leads()) world.stream().copy(there(), buffers_->source(), buffers_->bytes());
        },
        [&] { finish_library(); });
  }

  std::vector<double> time_bare(Rounds rounds) {
    World& world = bench_.world();
    return time_on_host(
        bench_, rounds,
        [&] {
          if (bench_.leads()) bare_copy(world.stream(), there(), buffers_->source(), buffers_->bytes());
        },
        [&] {
          if (bench_.leads()) await_copies();
        });
  }

 private:
  [[nodiscard]] std::byte* there() const { return bench_.world().at(buffers_->destination(), 1); }

  void await_copies() {
    bench_.world().stream().record(*copied_);
    bench_.world().synchronize(*copied_);
  }

  void finish_library() {
    ++sequence_;
    World& world = bench_.world();
    std::uint64_t* arrived = &signals_.data()->value;
    if (bench_.leads()) {
      await_copies();
      signal(Thread{}, world.host_context(), arrived, sequence_, 1);
    } else {
      bench_.require_ok(wait(Thread{}, world.host_context(), arrived, Compare::greater_equal, sequence_, 0),
                        "waiting for the copies' end");
    }
  }

  Bench& bench_;
  std::shared_ptr<MessageBuffers> buffers_;
  SymmetricArray<PaddedWord> signals_;
  std::unique_ptr<Event> copied_;
  std::uint64_t sequence_ = 0;
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  auto buffers = std::make_shared<MessageBuffers>(bench, bytes);
  auto copies = std::make_shared<HostCopies>(bench, buffers);
  const auto measurement_of = [&](std::string method, std::function<std::vector<double>(Rounds)> time) {
    Measurement measurement{.operation = "put", .method = std::move(method), .bytes = bytes};
    measurement.unit = Unit::gigabytes_per_second;
    measurement.most_iterations = 500;  // copies that a CUDA stream takes without blocking inside the driver
    measurement.verify = verify_messages(bench, buffers, time, Receivers::second);
    measurement.time = std::move(time);
    return measurement;
  };
  std::vector<Measurement> all;
  all.push_back(measurement_of("bare/copy", [=](Rounds rounds) { return copies->time_bare(rounds); }));
  all.back().peer_of = "host/copy_engine/signal";
  all.push_back(measurement_of("host/copy_engine/signal", [=](Rounds rounds) { return copies->time_library(rounds); }));
  all.back().baseline = 0;
  return all;
}

}  // namespace

Case host_copy_bandwidth() { return {"put", "host/copy_engine/signal", true, prepare}; }

}  // namespace beeline::bench
