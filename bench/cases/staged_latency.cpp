// SPDX-License-Identifier: Apache-2.0
/// @file
/// host/staged/sequential and host/staged/pipelined: through host memory, both CPUs take part; ping-pong.

#include "cases/cases.hpp"
#include "cases/staged_channel.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"

namespace beeline::bench {

namespace {

std::vector<Measurement> prepare(Bench& bench, const std::string& method, std::uint64_t bytes, bool pipelined) {
  const StagedShape shape(bench.world(), bytes, pipelined);
  auto buffers = std::make_shared<MessageBuffers>(bench, bytes);
  auto channel = std::make_shared<StagedChannel>(bench.world(), shape.chunk_bytes, shape.slots);
  const auto round = [=, &bench] {
    const int peer = static_cast<int>(bench.peer());
    if (bench.leads()) channel->send(buffers->source(), bytes, peer);
    channel->receive(buffers->destination(), bytes, peer);
    if (!bench.leads()) channel->send(buffers->source(), bytes, peer);
  };
  const auto time = [=, &bench](Rounds rounds) { return time_on_host(bench, rounds, round); };
  Measurement measurement{.operation = "message", .method = method, .bytes = bytes};
  measurement.operations_per_iteration = 2;
  measurement.settings = shape.settings();
  measurement.time = time;
  measurement.verify = verify_messages(bench, buffers, time, Receivers::both);
  return {measurement};
}

}  // namespace

Case staged_latency(bool pipelined) {
  const std::string method = pipelined ? "host/staged/pipelined" : "host/staged/sequential";
  return {"message", method, true,
          [=](Bench& bench, std::uint64_t bytes) { return prepare(bench, method, bytes, pipelined); }};
}

}  // namespace beeline::bench
