// SPDX-License-Identifier: Apache-2.0
#include "harness/message_buffers.hpp"

#include <cstring>

#include "harness/random.hpp"

namespace beeline::bench {

std::vector<std::byte> random_message(std::uint64_t seed, int rank, std::uint64_t count) {
  std::vector<std::byte> bytes(count);
  const std::uint64_t stream = random_word(seed, static_cast<std::uint64_t>(rank));
  for (std::uint64_t at = 0; at < count; at += 8) {
    const std::uint64_t word = random_word(stream, at);
    std::memcpy(bytes.data() + at, &word, count - at < 8 ? count - at : 8);
  }
  return bytes;
}

namespace {

std::shared_ptr<std::byte> in_symmetric_heap(Bench& bench, std::uint64_t bytes) {
  const auto array = std::make_shared<SymmetricArray<std::byte>>(bench.world(), bytes);
  bench.keep(array);
  return {array, array->data()};
}

}  // namespace

MessageBuffers::MessageBuffers(Bench& bench, std::uint64_t bytes)
    : bench_(bench), bytes_(bytes), source_(in_symmetric_heap(bench, bytes)),
      destination_(in_symmetric_heap(bench, bytes)) {}

MessageBuffers::MessageBuffers(Bench& bench, std::uint64_t bytes, std::shared_ptr<std::byte> source,
                               std::shared_ptr<std::byte> destination)
    : bench_(bench), bytes_(bytes), source_(std::move(source)), destination_(std::move(destination)) {}

void MessageBuffers::refresh(std::uint64_t seed) {
  if (!bench_.paired()) return;
  World& world = bench_.world();
  const std::vector<std::byte> mine = random_message(seed, world.rank(), bytes());
  world.copy(source(), mine.data(), bytes());
  std::vector<std::byte> other = random_message(seed, static_cast<int>(bench_.peer()), bytes());
  for (std::byte& byte : other) byte = ~byte;
  world.copy(destination(), other.data(), bytes());
}

bool MessageBuffers::arrived(std::uint64_t seed) {
  std::vector<std::byte> found(bytes());
  bench_.world().copy(found.data(), destination(), bytes());
  return found == random_message(seed, static_cast<int>(bench_.peer()), bytes());
}

std::function<bool(std::uint64_t)> verify_messages(Bench& bench, std::shared_ptr<MessageBuffers> buffers,
                                                   std::function<std::vector<double>(Rounds)> transfer,
                                                   Receivers receivers) {
  return [&bench, buffers = std::move(buffers), transfer = std::move(transfer), receivers](std::uint64_t seed) {
    buffers->refresh(seed);
    bench.world().barrier();
    static_cast<void>(transfer({}));
    bench.world().barrier();
    const int rank = bench.world().rank();
    const bool receives = rank == 0 ? receivers != Receivers::second : rank == 1 && receivers != Receivers::first;
    return !receives || buffers->arrived(seed);
  };
}

Measurement message_measurement(Bench& bench, const std::shared_ptr<MessageBuffers>& buffers, Receivers receivers,
                                std::string method, std::function<std::vector<double>(Rounds)> time) {
  const char* operation = receivers == Receivers::both ? "message" : receivers == Receivers::second ? "put" : "get";
  Measurement measurement{.operation = operation, .method = std::move(method), .bytes = buffers->bytes()};
  if (receivers == Receivers::both)
    measurement.operations_per_iteration = 2;
  else
    measurement.unit = Unit::gigabytes_per_second;
  measurement.verify = verify_messages(bench, buffers, time, receivers);
  measurement.time = std::move(time);
  return measurement;
}

}  // namespace beeline::bench
