// SPDX-License-Identifier: Apache-2.0
/// @file
/// .../batch: one thread sends many small puts as a batch, and the peer answers with a batch of the same size. Beside
/// it, two baselines: the same puts with a signal each, and bare stores with one flag. A round ends when the whole
/// answer has arrived.

#include "beeline/control/put_batch.hpp"
#include "beeline/host/command_queues.hpp"
#include "cases/cases.hpp"
#include "cases/network_pair.hpp"
#include "harness/call_cost.hpp"
#include "harness/group_choice.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/bare_words.hpp"

namespace beeline::bench::put_batches_cases {

namespace {

/// What carries the puts: loads and stores, the rank's engine, or the network.
enum class Carrier { stores, engine, network };

constexpr const char* batch_method(Carrier carrier) {
  return carrier == Carrier::stores   ? "device/peer/batch"
         : carrier == Carrier::engine ? "proxy/copy_engine/batch"
                                      : "network/batch";
}
constexpr const char* single_method(Carrier carrier) {
  return carrier == Carrier::stores   ? "device/peer/signal"
         : carrier == Carrier::engine ? "proxy/copy_engine/signal"
                                      : "network/put_signal";
}

struct Puts {
  std::byte* destination;
  const std::byte* source;
  std::uint64_t* arrived;  ///< [count]
  BatchEntry* entries;     ///< [most_batch_entries]
  std::uint64_t bytes;
  std::uint32_t count;
  CommandQueue queue;  ///< no ring: puts go by their route
  std::byte* destination_there;
  std::uint64_t* arrived_there;
};

/// Each put has a signal of its own.
struct Singly {
  BEELINE_HOST_DEVICE static bool send(const Context& ctx, const Puts& puts, std::uint64_t sequence,
                                       std::uint32_t peer) {
    Status status = Status::ok;
    for (std::uint32_t i = 0; i < puts.count && status == Status::ok; ++i) {
      std::byte* const to = puts.destination + i * puts.bytes;
      const std::byte* const from = puts.source + i * puts.bytes;
      status = puts.queue.ring != nullptr
                   ? post_put_signal(Thread{}, ctx, to, from, puts.bytes, &puts.arrived[i], sequence, peer, puts.queue)
                   : put_signal(Thread{}, ctx, to, from, puts.bytes, &puts.arrived[i], sequence, peer);
    }
    return status == Status::ok;
  }
  BEELINE_HOST_DEVICE static bool receive(const Context& ctx, const Puts& puts, std::uint64_t sequence,
                                          std::uint32_t peer) {
    for (std::uint32_t i = 0; i < puts.count; ++i)
      if (wait(Thread{}, ctx, &puts.arrived[i], Compare::greater_equal, sequence, peer) != Status::ok) return false;
    return true;
  }
};

struct InOne {
  BEELINE_HOST_DEVICE static bool receive(const Context& ctx, const Puts& puts, std::uint64_t sequence,
                                          std::uint32_t peer) {
    return wait(Thread{}, ctx, puts.arrived, Compare::greater_equal, sequence, peer) == Status::ok;
  }
};
struct Batched : InOne {
  BEELINE_HOST_DEVICE static bool send(const Context& ctx, const Puts& puts, std::uint64_t sequence,
                                       std::uint32_t peer) {
    PutBatch batch(ctx, puts.entries, most_batch_entries);
    if (puts.queue.ring != nullptr)
      batch.begin(Thread{}, peer, puts.queue);
    else
      batch.begin(Thread{}, peer);
    for (std::uint32_t i = 0; i < puts.count; ++i)
      batch.put(Thread{}, puts.destination + i * puts.bytes, puts.source + i * puts.bytes, puts.bytes);
    batch.signal(Thread{}, puts.arrived, sequence);
    return batch.end(Thread{}) == Status::ok;
  }
};
/// Stores of words, and one flag.
struct Bare : InOne {
  BEELINE_HOST_DEVICE static bool send(const Context&, const Puts& puts, std::uint64_t sequence, std::uint32_t) {
    for (std::uint32_t i = 0; i < puts.count; ++i)
      reinterpret_cast<std::uint64_t*>(puts.destination_there)[i] =
          reinterpret_cast<const std::uint64_t*>(puts.source)[i];
    BareWord(*puts.arrived_there).store(sequence, std::memory_order_release);
    return true;
  }
};

template <class How>
struct RoundTrips {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Puts puts) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t sequence) {
      return round_trip(
          loop.leads, [&] { return How::send(ctx, puts, sequence, loop.peer); },
          [&] { return How::receive(ctx, puts, sequence, loop.peer); });
    });
  }
};

/// The time of the sending calls alone; the rest of each round is not timed.
template <class How>
struct SendCalls {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Puts puts) const {
    if (grid.block().thread_rank() != 0) return;
    time_parts(loop, [&](std::uint64_t sequence) -> std::uint64_t {
      std::uint64_t ns = 0;
      const auto send = [&] {
        const std::uint64_t start = machine::clock_ns();
        const bool is_sent = How::send(ctx, puts, sequence, loop.peer);
        ns = machine::clock_ns() - start;
        return is_sent;
      };
      const bool is_done = round_trip(loop.leads, send, [&] { return How::receive(ctx, puts, sequence, loop.peer); });
      return is_done ? ns + 1 : 0;
    });
  }
};

/// Instructions of the calls by loads and stores; 0 on a GPU.
template <class How>
struct CountedCalls {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::uint64_t* count, Puts puts,
                                      std::uint32_t peer) const {
    if (grid.block().thread_rank() != 0) return;
    constexpr std::uint64_t unset = 0;  // the peer waits for larger values
    for (int i = 0; i < 2; ++i)         // the first call also loads pages
      *count = instructions_of([&] { static_cast<void>(How::send(ctx, puts, unset, peer)); });
  }
};

struct State {
  State(Bench& bench_in, std::uint64_t bytes_in, std::uint32_t count_in, Carrier carrier)
      : bench(bench_in), bytes(bytes_in), count(count_in),
        buffers(std::make_shared<MessageBuffers>(bench, bytes * count)), arrived(bench.world(), count),
        entries(bench.world(), most_batch_entries, Heap::pinned),
        queues(carrier == Carrier::engine ? std::make_unique<CommandQueues>(bench.world(), 1) : nullptr), timed(bench) {
  }

  template <class How>
  [[nodiscard]] Puts puts() const {
    const int peer = static_cast<int>(bench.peer());
    const bool is_bare = std::is_same_v<How, Bare>;
    return {buffers->destination(),
            buffers->source(),
            arrived.data(),
            entries.data(),
            bytes,
            count,
            queues != nullptr ? queues->channel().queue(0) : CommandQueue{nullptr, nullptr},
            is_bare ? bench.world().at(buffers->destination(), peer) : nullptr,
            is_bare ? arrived.at(peer) : nullptr};
  }
  template <class How, class Kernel>
  std::vector<double> time(Rounds rounds) {
    return timed.run(single_thread(bench).threads, bench.paired(), rounds, Kernel{}, puts<How>());
  }
  /// Collective.
  template <class How>
  [[nodiscard]] std::uint64_t instructions() const {
    World& world = bench.world();
    const SymmetricArray<std::uint64_t> found(world, 1);
    if (bench.leads()) {
      launch(world, {}, CountedCalls<How>{}, found.data(), puts<How>(), bench.peer());
      world.synchronize();
    }
    world.barrier();
    std::uint64_t value = 0;
    world.copy(&value, found.data(), sizeof value);
    return value;
  }

  Bench& bench;
  std::uint64_t bytes;
  std::uint32_t count;
  std::shared_ptr<MessageBuffers> buffers;
  SymmetricArray<std::uint64_t> arrived;
  SymmetricArray<BatchEntry> entries;
  std::unique_ptr<CommandQueues> queues;
  TimedKernel timed;
};

/// What is measured: whole rounds, or the calls that send.
enum class Measured { rounds, calls };
constexpr const char* operation_of(Measured measured) { return measured == Measured::rounds ? "puts" : "puts_call"; }

///   counts  whether the instructions of the calls are counted
template <class How>
void add(std::vector<Measurement>& all, const std::shared_ptr<State>& state, const char* method, Measured measured,
         bool counts = false) {
  const bool is_of_calls = measured == Measured::calls;
  Measurement measurement =
      message_measurement(state->bench, state->buffers, Receivers::both, method, [=](Rounds rounds) {
        return is_of_calls ? state->time<How, SendCalls<How>>(rounds) : state->time<How, RoundTrips<How>>(rounds);
      });
  measurement.operation = operation_of(measured), measurement.bytes = state->bytes;
  measurement.unit = is_of_calls ? Unit::microseconds : Unit::million_messages_per_second;
  measurement.operations_per_iteration = is_of_calls ? 1 : 2.0 * state->count;
  if (is_of_calls) measurement.most_iterations = 500;  // the rest of each round takes longer than the calls
  measurement.settings = single_thread(state->bench).settings();
  measurement.settings.emplace_back("puts", std::uint64_t{state->count});
  if (counts && is_of_calls) measurement.settings.emplace_back("instructions", state->instructions<How>());
  all.push_back(std::move(measurement));
}

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes, Carrier carrier, Measured measured) {
  bench.require_alike();
  if (carrier == Carrier::network) require_two_nodes(bench);
  std::vector<Measurement> all;
  const bool counts = carrier == Carrier::stores && !bench.world().device().is_gpu();
  for (const std::uint32_t count : {1, 64}) {
    const auto state = std::make_shared<State>(bench, bytes, count, carrier);
    const std::size_t first = all.size();
    if (carrier == Carrier::stores && bytes == sizeof(std::uint64_t)) {
      add<Bare>(all, state, "bare/puts", measured, counts);
      all.back().stores_to_peer = true;
    }
    add<Singly>(all, state, single_method(carrier), measured, counts);
    add<Batched>(all, state, batch_method(carrier), measured, counts);
    for (std::size_t i = first; i + 1 < all.size(); ++i) all[i].peer_of = batch_method(carrier);
    all.back().baseline = all.size() - 2;
  }
  return all;
}

/// Longer puts are no entries of a batch.
constexpr SizeRange sizes{1, most_batched_bytes};

std::vector<Case> batches_by(std::initializer_list<Carrier> carriers) {
  std::vector<Case> all;
  for (const Measured measured : {Measured::rounds, Measured::calls})
    for (const Carrier carrier : carriers)
      all.push_back({operation_of(measured), batch_method(carrier), true,
                     [=](Bench& bench, std::uint64_t bytes) { return prepare(bench, bytes, carrier, measured); },
                     sizes});
  return all;
}

const ListedCases rate_cases(Command::rate, batches_by({Carrier::stores, Carrier::engine}));
const ListedCases network_cases(Command::network, batches_by({Carrier::network}));

}  // namespace

}  // namespace beeline::bench::put_batches_cases
