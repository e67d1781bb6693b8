// SPDX-License-Identifier: Apache-2.0
/// @file
/// host/staged/sequential and host/staged/pipelined: messages go through host memory, and both CPUs take part.
/// Ping-pong, and message after message one way; the receiver answers the last message.

#include "beeline/host/staged_channel.hpp"
#include "cases/cases.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"

namespace beeline::bench::staged_cases {

namespace {

std::vector<double> ping_pong(Bench& bench, StagedChannel& channel, const MessageBuffers& buffers, Rounds rounds) {
  const int peer = static_cast<int>(bench.peer());
  return time_on_host(bench, rounds, [&] {
    if (bench.leads()) channel.send(buffers.source(), buffers.bytes(), peer);
    channel.receive(buffers.destination(), buffers.bytes(), peer);
    if (!bench.leads()) channel.send(buffers.source(), buffers.bytes(), peer);
  });
}

std::vector<double> flood(Bench& bench, StagedChannel& channel, const MessageBuffers& buffers, Rounds rounds) {
  std::uint64_t answer = 0;
  return time_on_host(
      bench, rounds,
      [&] {
        if (bench.leads())
          channel.send(buffers.source(), buffers.bytes(), 1);
        else
          channel.receive(buffers.destination(), buffers.bytes(), 0);
      },
      [&] {
        if (bench.leads())
          channel.receive(&answer, sizeof answer, 1);
        else
          channel.send(&answer, sizeof answer, 0);
      });
}

/// The chunk sizes below the message's size (the best one depends on the machine); for sequential, also the whole
/// message.
std::vector<std::uint64_t> chunks_of(std::uint64_t bytes, bool pipelined) {
  std::vector<std::uint64_t> chunks;
  for (const std::uint64_t chunk : {256u << 10, 1u << 20, 4u << 20})
    if (chunk < bytes) chunks.push_back(chunk);
  if (!pipelined || chunks.empty()) chunks.push_back(bytes);
  return chunks;
}

/// A case with one slot (sequential) or four; each chunk size has its own line.
Case staged(const char* operation, bool pipelined, Receivers receivers, decltype(flood)* time) {
  const char* method = pipelined ? "host/staged/pipelined" : "host/staged/sequential";
  const auto prepare = [=](Bench& bench, std::uint64_t bytes) {
    const std::uint32_t slots = pipelined ? 4 : 1;
    auto buffers = std::make_shared<MessageBuffers>(bench, bytes);
    std::vector<Measurement> all;
    for (const std::uint64_t chunk_bytes : chunks_of(bytes, pipelined)) {
      auto channel = std::make_shared<StagedChannel>(bench.world(), chunk_bytes, slots);
      all.push_back(message_measurement(bench, buffers, receivers, method, [=, &bench](Rounds rounds) {
        return time(bench, *channel, *buffers, rounds);
      }));
      all.back().settings = {{"chunk_bytes", chunk_bytes}, {"slots", std::uint64_t{slots}}};
    }
    return all;
  };
  return {operation, method, true, prepare};
}

const ListedCases latency_cases(Command::latency, {staged("message", false, Receivers::both, ping_pong),
                                                   staged("message", true, Receivers::both, ping_pong)});
const ListedCases bandwidth_cases(Command::bandwidth, {staged("put", false, Receivers::second, flood),
                                                       staged("put", true, Receivers::second, flood)});

}  // namespace

}  // namespace beeline::bench::staged_cases
