// SPDX-License-Identifier: Apache-2.0
/// @file
/// stream/copy_engine/signal: copies and their signals enqueued on a stream; the receiver's stream answers the last.

#include "cases/cases.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"

namespace beeline::bench {

namespace {

class StreamCopies {
 public:
  StreamCopies(Bench& bench, std::shared_ptr<MessageBuffers> buffers)
      : bench_(bench), buffers_(std::move(buffers)), signals_(bench.world(), 1) {}

  std::vector<double> time(Rounds rounds) {
    return time_on_host(
        bench_, rounds, [this] { enqueue(); }, [this] { finish(); });
  }

 private:
  void enqueue() {
    ++sequence_;
    if (!bench_.leads()) return;
    World& world = bench_.world();
    world.stream().copy(world.at(buffers_->destination(), 1), buffers_->source(), buffers_->bytes());
    world.stream().write_signal(world.at(signal(), 1), sequence_);
  }

  void finish() {
    World& world = bench_.world();
    world.stream().wait_signal(signal(), sequence_);
    if (!bench_.leads()) world.stream().write_signal(world.at(signal(), 0), sequence_);
    world.synchronize();
  }

  [[nodiscard]] std::uint64_t* signal() const { return &signals_.data()->value; }

  Bench& bench_;
  std::shared_ptr<MessageBuffers> buffers_;
  SymmetricArray<PaddedWord> signals_;
  std::uint64_t sequence_ = 0;
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  auto buffers = std::make_shared<MessageBuffers>(bench, bytes);
  auto copies = std::make_shared<StreamCopies>(bench, buffers);
  Measurement measurement{.operation = "put", .method = "stream/copy_engine/signal", .bytes = bytes};
  measurement.unit = Unit::gigabytes_per_second;
  measurement.most_iterations = 250;  // as many, with their signals, as a CUDA stream takes without blocking
  measurement.time = [=](Rounds rounds) { return copies->time(rounds); };
  measurement.verify = verify_messages(bench, buffers, measurement.time, Receivers::second);
  return {measurement};
}

}  // namespace

Case stream_copy_bandwidth() { return {"put", "stream/copy_engine/signal", true, prepare}; }

}  // namespace beeline::bench
