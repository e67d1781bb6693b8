// SPDX-License-Identifier: Apache-2.0
/// @file
/// NVSHMEM's device functions in the same loops and in the same run: the alternative for Beeline's users.

#include "peers/nvshmem/nvshmem.hpp"

#include <algorithm>
#include <memory>

#include "cases/cases.hpp"
#include "harness/message_buffers.hpp"
#include "harness/random.hpp"

namespace beeline::bench::nvshmem_cases {

namespace {

using nvshmem::BlockOperation;

std::uint64_t* words_of(const nvshmem::Memory& memory) { return reinterpret_cast<std::uint64_t*>(memory.data()); }

/// Data that the measurements of one message size share.
struct Messages {
  Messages(Bench& bench_in, std::uint64_t bytes_in)
      : bench((nvshmem::start(bench_in), bench_in)), bytes(bytes_in), source(bytes), destination(bytes),
        word(sizeof(PaddedWord)), timed(bench) {}

  std::vector<double> time(BlockOperation operation, const GroupChoice& choice, Rounds rounds) {
    return timed.run(operation, {choice, destination.data(), source.data(), bytes, words_of(word)}, rounds);
  }

  /// Fills this rank's source with fresh data, and the peer's destination with its complement.
  void refresh(std::uint64_t seed) {
    if (!bench.paired()) return;
    const std::vector<std::byte> mine = random_message(seed, bench.world().rank(), bytes);
    source.write(mine.data(), bytes);
    std::vector<std::byte> other = random_message(seed, static_cast<int>(bench.peer()), bytes);
    for (std::byte& byte : other) byte = ~byte;
    destination.write(other.data(), bytes);
  }
  [[nodiscard]] bool arrived(std::uint64_t seed) const {
    std::vector<std::byte> found(bytes);
    destination.read(found.data(), bytes);
    return found == random_message(seed, static_cast<int>(bench.peer()), bytes);
  }
  [[nodiscard]] std::uint64_t value() const {
    std::uint64_t value = 0;
    word.read(&value, sizeof value);
    return value;
  }

  Bench& bench;
  std::uint64_t bytes;
  nvshmem::Memory source, destination, word;
  nvshmem::TimedBlock timed;
};

Measurement measurement_of(const char* operation, const char* method, std::uint64_t bytes, Settings settings) {
  Measurement measurement{.operation = operation, .method = method, .bytes = bytes};
  measurement.peer_of = "device/peer/signal";
  measurement.settings = std::move(settings);
  return measurement;
}

std::vector<Measurement> put_signal(Bench& bench, std::uint64_t bytes) {
  constexpr unsigned store_bytes = 16, most_threads = 1024;
  auto messages = std::make_shared<Messages>(bench, bytes);
  std::vector<Measurement> all;
  for (const GroupChoice& choice : candidate_groups(bench, bytes, store_bytes, most_threads)) {
    all.push_back(measurement_of("message", "nvshmem/put_signal", bytes, choice.settings()));
    all.back().operations_per_iteration = 2;
    all.back().time = [=](Rounds rounds) { return messages->time(BlockOperation::put_signal, choice, rounds); };
    all.back().verify = [=](std::uint64_t seed) {
      messages->refresh(seed);
      static_cast<void>(messages->time(BlockOperation::put_signal, choice, {}));
      messages->bench.world().barrier();
      return !messages->bench.paired() || messages->arrived(seed);
    };
  }
  return all;
}

std::vector<Measurement> signal(Bench& bench, std::uint64_t) {
  auto messages = std::make_shared<Messages>(bench, sizeof(std::uint64_t));
  const GroupChoice choice = single_thread(bench);
  Measurement measurement = measurement_of("flag", "nvshmem/signal", messages->bytes, choice.settings());
  measurement.operations_per_iteration = 2;
  measurement.time = [=](Rounds rounds) { return messages->time(BlockOperation::signal, choice, rounds); };
  measurement.verify = [=](std::uint64_t) {
    static_cast<void>(messages->time(BlockOperation::signal, choice, {}));
    messages->bench.world().barrier();
    return !messages->bench.paired() || messages->value() == messages->timed.last();
  };
  return {measurement};
}

/// NVSHMEM's barrier is only timed here: the verification of Beeline's barrier would show a rank that is blocked or
/// passes early.
std::vector<Measurement> barrier(Bench& bench, std::uint64_t) {
  auto messages = std::make_shared<Messages>(bench, sizeof(std::uint64_t));
  std::vector<Measurement> all;
  for (unsigned threads : {32u, 256u})
    for (BlockOperation operation : {BlockOperation::sync, BlockOperation::barrier}) {
      const GroupChoice choice{GroupKind::block, threads};
      all.push_back(measurement_of("barrier", "nvshmem/barrier", 0, choice.settings()));
      all.back().settings.emplace_back("order", operation == BlockOperation::sync ? "relaxed" : "memory");
      all.back().time = [=](Rounds rounds) { return messages->time(operation, choice, rounds); };
    }
  return all;
}

std::vector<Measurement> fetch_add(Bench& bench, std::uint64_t) {
  auto messages = std::make_shared<Messages>(bench, sizeof(std::uint64_t));
  const GroupChoice choice = single_thread(bench);
  Measurement measurement = measurement_of("fetch_add", "nvshmem/atomic", messages->bytes, choice.settings());
  measurement.most_iterations = 1'000'000;
  measurement.time = [=](Rounds rounds) { return messages->time(BlockOperation::fetch_add, choice, rounds); };
  measurement.verify = [=](std::uint64_t) {
    static_cast<void>(messages->time(BlockOperation::fetch_add, choice, {}));
    messages->bench.world().barrier();
    return messages->bench.world().rank() != 1 || messages->value() == messages->timed.last();
  };
  return {measurement};
}

constexpr unsigned block_counts[] = {1, 16, 132};

Settings grid_settings(unsigned blocks) {
  return {{"group", "block"}, {"threads_per_block", std::uint64_t{512}}, {"blocks", std::uint64_t{blocks}}};
}

std::vector<Measurement> put(Bench& bench, std::uint64_t bytes) {
  auto messages = std::make_shared<Messages>(bench, bytes);
  auto timed = std::make_shared<nvshmem::TimedBlocks>(
      bench, *std::max_element(std::begin(block_counts), std::end(block_counts)));
  std::vector<Measurement> all;
  for (unsigned blocks : block_counts) {
    const auto transfer = [=](std::uint32_t count) {
      return timed->put(blocks, messages->destination.data(), messages->source.data(), bytes, count);
    };
    all.push_back(measurement_of("put", "nvshmem/put", bytes, grid_settings(blocks)));
    all.back().unit = Unit::gigabytes_per_second;
    all.back().time = [=](Rounds rounds) { return time_batches(rounds, [&] { return transfer(rounds.iterations); }); };
    all.back().verify = [=](std::uint64_t seed) {
      messages->refresh(seed);
      static_cast<void>(transfer(1));
      messages->bench.world().barrier();
      return messages->bench.world().rank() != 1 || messages->arrived(seed);
    };
  }
  return all;
}

/// The random additions of one grid to all ranks' tables.
struct Updates {
  Updates(Bench& bench_in, unsigned blocks_in)
      : bench((nvshmem::start(bench_in), bench_in)), blocks(blocks_in), table(table_bytes(bench.options(), true)),
        words(table_bytes(bench.options(), true) / sizeof(std::uint64_t)), timed(bench, blocks) {}

  [[nodiscard]] std::uint64_t seed_of(std::uint64_t seed) const {
    return random_word(seed, static_cast<std::uint64_t>(bench.world().rank()));
  }

  std::vector<double> time(Rounds rounds) {
    return time_batches(rounds, [&] {
      return timed.update(blocks, words_of(table), words, seed_of(++launches), per_iteration * rounds.iterations);
    });
  }

  /// Whether the sum of all words has grown by the sum of the additions.
  bool verify(std::uint64_t seed) {
    const std::uint64_t before = timed.sum(words_of(table), words);
    static_cast<void>(timed.update(blocks, words_of(table), words, seed_of(seed), per_iteration));
    bench.world().barrier();
    const std::uint64_t grown = timed.sum(words_of(table), words) - before;
    std::uint64_t missing = 0;
    for (std::uint64_t each : bench.from_all(timed.sum_of_updates(blocks, words, seed_of(seed), per_iteration) - grown))
      missing += each;
    return missing == 0;
  }

  static constexpr std::uint64_t per_iteration = 16;  ///< additions of a thread
  Bench& bench;
  unsigned blocks;
  nvshmem::Memory table;
  std::uint64_t words;
  nvshmem::TimedBlocks timed;
  std::uint64_t launches = 0;
};

std::vector<Measurement> random_updates(Bench& bench, std::uint64_t) {
  constexpr unsigned blocks = 264;
  auto updates = std::make_shared<Updates>(bench, blocks);
  Measurement measurement =
      measurement_of("random_update", "nvshmem/atomic", sizeof(std::uint64_t), grid_settings(blocks));
  measurement.unit = Unit::giga_updates_per_second;
  measurement.operations_per_iteration =
      static_cast<double>(Updates::per_iteration) * blocks * 512 * bench.world().size();
  measurement.settings.emplace_back("table_bytes", updates->words * sizeof(std::uint64_t));
  measurement.time = [=](Rounds rounds) { return updates->time(rounds); };
  measurement.verify = [=](std::uint64_t seed) { return updates->verify(seed); };
  return {measurement};
}

const ListedCases latency_cases(Command::latency, {{"message", "nvshmem/put_signal", true, put_signal},
                                                   {"flag", "nvshmem/signal", false, signal},
                                                   {"barrier", "nvshmem/barrier", false, barrier}});
const ListedCases bandwidth_cases(Command::bandwidth, {{"put", "nvshmem/put", true, put}});
const ListedCases rate_cases(Command::rate, {{"fetch_add", "nvshmem/atomic", false, fetch_add},
                                             {"random_update", "nvshmem/atomic", false, random_updates}});

}  // namespace

}  // namespace beeline::bench::nvshmem_cases
