// SPDX-License-Identifier: Apache-2.0
/// @file
/// host/staged/sequential and host/staged/pipelined, message after message one way; the receiver answers the last.

#include "cases/cases.hpp"
#include "cases/staged_channel.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"

namespace beeline::bench {

namespace {

class StagedFlood {
 public:
  StagedFlood(Bench& bench, std::shared_ptr<MessageBuffers> buffers, const StagedShape& shape)
      : bench_(bench), buffers_(std::move(buffers)), channel_(bench.world(), shape.chunk_bytes, shape.slots) {}

  std::vector<double> time(Rounds rounds) {
    return time_on_host(
        bench_, rounds, [this] { message(); }, [this] { answer(); });
  }

 private:
  void message() {
    if (bench_.leads())
      channel_.send(buffers_->source(), buffers_->bytes(), 1);
    else
      channel_.receive(buffers_->destination(), buffers_->bytes(), 0);
  }

  void answer() {
    if (bench_.leads())
      channel_.receive(&answer_, sizeof answer_, 1);
    else
      channel_.send(&answer_, sizeof answer_, 0);
  }

  Bench& bench_;
  std::shared_ptr<MessageBuffers> buffers_;
  StagedChannel channel_;
  std::uint64_t answer_ = 0;
};

std::vector<Measurement> prepare(Bench& bench, const std::string& method, std::uint64_t bytes, bool pipelined) {
  const StagedShape shape(bench.world(), bytes, pipelined);
  auto buffers = std::make_shared<MessageBuffers>(bench, bytes);
  auto flood = std::make_shared<StagedFlood>(bench, buffers, shape);
  Measurement measurement{.operation = "put", .method = method, .bytes = bytes};
  measurement.unit = Unit::gigabytes_per_second;
  measurement.settings = shape.settings();
  measurement.time = [=](Rounds rounds) { return flood->time(rounds); };
  measurement.verify = verify_messages(bench, buffers, measurement.time, Receivers::second);
  return {measurement};
}

}  // namespace

Case staged_bandwidth(bool pipelined) {
  const std::string method = pipelined ? "host/staged/pipelined" : "host/staged/sequential";
  return {"put", method, true,
          [=](Bench& bench, std::uint64_t bytes) { return prepare(bench, method, bytes, pipelined); }};
}

}  // namespace beeline::bench
