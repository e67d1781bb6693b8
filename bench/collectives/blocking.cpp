// SPDX-License-Identifier: Apache-2.0
#include "collectives/blocking.hpp"

#include <vector>

#include "beeline/device/impl/machine.hpp"
#include "beeline/host/collectives.hpp"
#include "beeline/host/launch.hpp"
#include "beeline/host/messages.hpp"
#include "collectives/cases.hpp"
#include "collectives/empty_grid.hpp"
#include "harness/message_buffers.hpp"
#include "harness/random.hpp"
#include "harness/timed_host.hpp"
#include "peers/mpi/mpi.hpp"

namespace beeline::bench {

namespace {

constexpr const char *messages_method = "blocking/messages", *collectives_method = "blocking/collectives",
                     *world_method = "blocking/world", *launch_method = "blocking/launch", *mpi_method = "mpi/host";

/// Collective. Nanoseconds of each batch on the slowest rank; all ranks make the calls.
std::vector<double> time_calls(const Bench& bench, Rounds rounds, const std::function<void()>& call) {
  bench.world().barrier();
  for (std::uint32_t i = 0; i < rounds.warm_up; ++i) call();
  return bench.slowest(time_batches(rounds, [&] {
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t i = 0; i < rounds.iterations; ++i) call();
    return static_cast<double>(machine::clock_ns() - start);
  }));
}

Measurement by_all(Bench& bench, const char* operation, const char* method, std::function<void()> call) {
  Measurement measurement{.operation = operation, .method = method};
  measurement.time = [&bench, call = std::move(call)](Rounds rounds) { return time_calls(bench, rounds, call); };
  return measurement;
}

// --- Messages: there and back ---------------------------------------------------------------------------------------

/// Sends a message to the peer, or receives one from it.
using Transfer = std::function<void(std::byte* at, std::uint64_t bytes)>;

Measurement ping_pong(Bench& bench, std::uint64_t bytes, const char* method, Transfer send, Transfer receive) {
  const auto buffers = std::make_shared<MessageBuffers>(bench, bytes);
  const auto bounce = [=, &bench] {
    if (bench.leads()) send(buffers->source(), bytes);
    receive(buffers->destination(), bytes);
    if (!bench.leads()) send(buffers->source(), bytes);
  };
  return message_measurement(bench, buffers, Receivers::both, method,
                             [=, &bench](Rounds rounds) { return time_on_host(bench, rounds, bounce); });
}

Case messages_case() {
  const auto prepare = [](Bench& bench, std::uint64_t bytes) {
    const auto messages = std::make_shared<Messages>(bench.world());
    const int peer = static_cast<int>(bench.peer());
    return std::vector{ping_pong(
        bench, bytes, messages_method,
        [=](const std::byte* from, std::uint64_t count) { messages->send(std::span(from, count), peer); },
        [=](std::byte* to, std::uint64_t count) { messages->receive(std::span(to, count), peer); })};
  };
  return {"message", messages_method, true, prepare};
}

Case mpi_messages_case() {
  const auto prepare = [](Bench& bench, std::uint64_t bytes) {
    const auto communicator = mpi::communicator(bench);
    require(!bench.world().device().is_gpu(), Status::unavailable, "this MPI is for memory of the host");
    const int peer = static_cast<int>(bench.peer());
    Measurement measurement = ping_pong(
        bench, bytes, mpi_method,
        [=](const std::byte* from, std::uint64_t count) { communicator->send(from, count, peer); },
        [=](std::byte* to, std::uint64_t count) { communicator->receive(to, count, peer); });
    measurement.peer_of = messages_method;
    measurement.settings.emplace_back("version", communicator->version());
    return std::vector{measurement};
  };
  return {"message", mpi_method, true, prepare};
}

// --- All-reduce -----------------------------------------------------------------------------------------------------

/// Vectors that all members add up.
struct Sum {
  Sum(Bench& bench, std::uint64_t bytes)
      : world(bench.world()), source(world, bytes / sizeof(float)), destination(world, bytes / sizeof(float)) {}

  /// Small whole numbers, whose sums are exact.
  static float element(std::uint64_t seed, int rank, std::size_t i) {
    return static_cast<float>(random_word(seed, i * max_ranks + static_cast<std::size_t>(rank)) % 1000);
  }
  bool holds(std::uint64_t seed, const std::function<void()>& call) {
    std::vector<float> mine(source.count()), sums(mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = element(seed, world.rank(), i);
    world.copy(source.data(), mine.data(), mine.size() * sizeof(float));
    call();
    world.copy(sums.data(), destination.data(), sums.size() * sizeof(float));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      float expected = 0;
      for (int rank = 0; rank < world.size(); ++rank) expected += element(seed, rank, i);
      if (sums[i] != expected) return false;
    }
    return true;
  }

  World& world;
  SymmetricArray<float> source, destination;
};

Measurement allreduce_by(Bench& bench, const std::shared_ptr<Sum>& sum, const char* method,
                         const std::function<void()>& call) {
  Measurement measurement = by_all(bench, name(Operation::allreduce), method, call);
  measurement.bytes = sum->source.count() * sizeof(float);
  measurement.verify = [sum, call](std::uint64_t seed) { return sum->holds(seed, call); };
  return measurement;
}

Case allreduce_case() {
  const auto prepare = [](Bench& bench, std::uint64_t bytes) {
    const auto sum = std::make_shared<Sum>(bench, bytes);
    const auto collectives = std::make_shared<Collectives>(bench.world());
    return std::vector{
        allreduce_by(bench, sum, collectives_method, [=] { collectives->allreduce(sum->destination, sum->source); })};
  };
  return {name(Operation::allreduce), collectives_method, true, prepare, {.least_bytes = sizeof(float)}};
}

Case mpi_allreduce_case() {
  const auto prepare = [](Bench& bench, std::uint64_t bytes) {
    const auto communicator = mpi::communicator(bench);
    require(!bench.world().device().is_gpu(), Status::unavailable, "this MPI is for memory of the host");
    const auto sum = std::make_shared<Sum>(bench, bytes);
    const VectorPair vectors{sum->source.data(), sum->destination.data(), sum->source.count(), ElementType::float32};
    Measurement measurement =
        allreduce_by(bench, sum, mpi_method, [=] { communicator->call(Operation::allreduce, vectors); });
    measurement.peer_of = collectives_method;
    measurement.settings.emplace_back("version", communicator->version());
    return std::vector{measurement};
  };
  return {name(Operation::allreduce), mpi_method, true, prepare, {.least_bytes = sizeof(float)}};
}

// --- Barriers and launches ------------------------------------------------------------------------------------------

Case barrier_case(const char* method, std::function<std::function<void()>(Bench&)> make) {
  const auto prepare = [=](Bench& bench, std::uint64_t) {
    Measurement measurement = by_all(bench, name(Operation::barrier), method, make(bench));
    if (method == mpi_method) measurement.peer_of = world_method;
    return std::vector{measurement};
  };
  return {name(Operation::barrier), method, false, prepare};
}

std::function<void()> world_barrier(Bench& bench) {
  return [&bench] { bench.world().barrier(); };
}
std::function<void()> channel_barrier(Bench& bench) {
  return [collectives = std::make_shared<Collectives>(bench.world())] { collectives->barrier(); };
}
std::function<void()> mpi_barrier(Bench& bench) {
  return [communicator = mpi::communicator(bench)] { communicator->barrier(); };
}

/// Launches an empty grid that may wait, and waits for its end.
Case launch_case() {
  const auto prepare = [](Bench& bench, std::uint64_t) {
    std::vector<Measurement> all;
    for (const unsigned blocks : {1u, 2u, 8u, 32u}) {
      all.push_back(by_all(bench, "launch", launch_method, [&world = bench.world(), blocks] {
        launch_empty_grid(world, blocks);
        world.synchronize();
      }));
      all.back().settings = {{"blocks", std::uint64_t{blocks}}};
    }
    return all;
  };
  return {"launch", launch_method, false, prepare};
}

/// A case that a program in Python measures (python/beeline/ranks/python_calls.py, torch_calls.py).
Case elsewhere(const char* operation, const char* method) { return {operation, method, true, nullptr}; }

}  // namespace

Measuring calls_command() {
  return {
      .command = Command::calls,
      .summary = "Calls that block the host, from C++ and Python, beside MPI; torch's eager ones, beside NCCL and gloo",
      .options = {{"sizes", CommandOption::Type::sizes, "Message and vector sizes", "8,256,4K,64K,1M"},
                  {"type",
                   CommandOption::Type::name,
                   "Type of the elements of torch's tensors: float32 or bfloat16",
                   "bfloat16",
                   {"float32", "bfloat16"}}}};
}

std::vector<Case> blocking_cases() {
  std::vector<Case> all{messages_case(),
                        mpi_messages_case(),
                        allreduce_case(),
                        mpi_allreduce_case(),
                        barrier_case(world_method, world_barrier),
                        barrier_case(collectives_method, channel_barrier),
                        barrier_case(mpi_method, mpi_barrier),
                        launch_case(),
                        elsewhere("empty", "python/call"),
                        elsewhere("message", "python/messages"),
                        elsewhere("message", "mpi4py/host"),
                        elsewhere(name(Operation::allreduce), "python/collectives"),
                        elsewhere(name(Operation::allreduce), "mpi4py/host"),
                        elsewhere("put_signal", "python/signals"),
                        elsewhere("allreduce_value", "python/world"),
                        elsewhere("allreduce_value", "mpi4py/host"),
                        elsewhere(name(Operation::barrier), "python/world"),
                        elsewhere(name(Operation::barrier), "mpi4py/host")};
  const auto places = std::make_shared<Workplaces>();
  for (const Operation operation :
       {Operation::allreduce, Operation::allgather, Operation::reduce_scatter, Operation::alltoall}) {
    const CollectiveShape& shape = *find_shape(operation);
    if (shape.moves_all()) all.push_back(bare_copies(shape, places));
    for (const char* method : {"torch_eager/beeline", "torch_eager/beeline_pool", "torch_eager/beeline_symmetric",
                               "torch_eager/nccl", "torch_eager/gloo"})
      all.push_back(elsewhere(name(operation), method));
  }
  return all;
}

}  // namespace beeline::bench
