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

MessageBuffers::MessageBuffers(Bench& bench, std::uint64_t bytes)
    : bench_(bench), source_(bench.world(), bytes), destination_(bench.world(), bytes) {}

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

}  // namespace beeline::bench
