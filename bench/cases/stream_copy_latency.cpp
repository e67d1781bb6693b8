// SPDX-License-Identifier: Apache-2.0
/// @file
/// stream/copy_engine/signal: copies and signals enqueued on streams, ping-pong without a CPU or a kernel in between.

#include "cases/cases.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"

namespace beeline::bench {

namespace {

class StreamPingPong {
 public:
  StreamPingPong(Bench& bench, std::shared_ptr<MessageBuffers> buffers)
      : bench_(bench), buffers_(std::move(buffers)), signals_(bench.world(), 1) {}

  std::vector<double> time(Rounds rounds) {
    return time_on_host(
        bench_, rounds, [this] { enqueue_round(); }, [this] { bench_.world().synchronize(); });
  }

 private:
  void enqueue_round() {
    ++sequence_;
    if (bench_.leads()) send();
    bench_.world().stream().wait_signal(signal(), sequence_);
    if (!bench_.leads()) send();
  }

  void send() {
    World& world = bench_.world();
    const int peer = static_cast<int>(bench_.peer());
    world.stream().copy(world.at(buffers_->destination(), peer), buffers_->source(), buffers_->bytes());
    world.stream().write_signal(world.at(signal(), peer), sequence_);
  }

  [[nodiscard]] std::uint64_t* signal() const { return &signals_.data()->value; }

  Bench& bench_;
  std::shared_ptr<MessageBuffers> buffers_;
  SymmetricArray<PaddedWord> signals_;
  std::uint64_t sequence_ = 0;
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  auto buffers = std::make_shared<MessageBuffers>(bench, bytes);
  auto ping_pong = std::make_shared<StreamPingPong>(bench, buffers);
  const auto time = [=](Rounds rounds) { return ping_pong->time(rounds); };
  Measurement measurement{.operation = "message", .method = "stream/copy_engine/signal", .bytes = bytes};
  measurement.operations_per_iteration = 2;
  // Three operations a round: a CUDA stream takes about a thousand before enqueuing blocks inside the driver.
  measurement.most_iterations = 200;
  measurement.time = time;
  measurement.verify = verify_messages(bench, buffers, time, Receivers::both);
  return {measurement};
}

}  // namespace

Case stream_copy_latency() { return {"message", "stream/copy_engine/signal", true, prepare}; }

}  // namespace beeline::bench
