// SPDX-License-Identifier: Apache-2.0
/// @file
/// The parts of a transfer over a network: the parameters of the LogP model, beside bare UCX; the engine's copy of a
/// rank's own memory (loop-back), beside a read alone, whose bytes are dropped; puts whose source the engine knows or
/// looks up; a read across the bus of a GPU, and between the sockets of a machine. Source: seed 004, low-level table,
/// host overhead, kinds of sources, bus timing; seed 000, network card and GPU on different sockets.

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "beeline/control/post.hpp"
#include "beeline/host/command_queues.hpp"
#include "cases/cases.hpp"
#include "cases/network_pair.hpp"
#include "harness/group_choice.hpp"
#include "harness/random.hpp"
#include "peers/bare_copy.hpp"

namespace beeline::bench::network_parts_cases {

namespace {

// --- LogP ---

using Step = std::function<void()>;

/// Steps of an exchange: `send` and `await` one message; `finish` waits until all sent messages are complete; `settle`
/// ends a loop of messages.
struct Exchange {
  Step send, await, finish, settle;
};

std::uint64_t cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Times of rank 0, in nanoseconds; each element is the sum of a batch.
class LogP {
 public:
  static constexpr std::uint32_t messages = 128;

  LogP(Bench& bench, Exchange exchange) : bench_(bench), exchange_(std::move(exchange)) {}

  std::vector<double> half_round_trip(Rounds rounds) const {
    return halved(time_on_host(bench_, rounds, [&] {
      if (bench_.leads()) exchange_.send();
      exchange_.await();
      if (!bench_.leads()) exchange_.send();
    }));
  }
  /// o_s: time of a call that sends, while no call has to wait.
  std::vector<double> send_overhead(Rounds rounds) const {
    return time_parts(rounds, [&] {
      if (!bench_.leads()) return await(few), 0.0;
      const std::uint64_t start = machine::clock_ns();
      send(few);
      const auto ns = static_cast<double>(machine::clock_ns() - start);
      exchange_.finish();
      return ns / few;
    });
  }
  /// o_r: CPU time of the receiver for each of many messages, while the calling thread sleeps or receives. It includes
  /// engines that poll for more messages.
  std::vector<double> receive_overhead(Rounds rounds) const {
    return time_parts(rounds, [&] {
      if (!bench_.leads()) {
        exchange_.await();
        send(messages);
        return exchange_.finish(), 0.0;
      }
      exchange_.send();
      const std::uint64_t start = cpu_ns();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      await(messages);
      return static_cast<double>(cpu_ns() - start) / messages;
    });
  }
  /// g: time between two consecutive messages of many.
  std::vector<double> gap(Rounds rounds) const {
    return time_parts(rounds, [&] {
      const std::uint64_t start = machine::clock_ns();
      bench_.leads() ? send(messages) : await(messages);
      bench_.leads() ? exchange_.await() : exchange_.send();
      return static_cast<double>(machine::clock_ns() - start) / messages;
    });
  }
  /// L: the time of a message less the overheads of sender and receiver.
  std::vector<double> latency(Rounds rounds) const {
    std::vector<double> all = half_round_trip(rounds);
    exchange_.settle();
    const std::vector<double> sending = send_overhead(rounds);
    exchange_.settle();
    const std::vector<double> receiving = receive_overhead(rounds);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] -= sending[i] + receiving[i];
    return all;
  }

 private:
  static constexpr std::uint32_t few = 16;

  static std::vector<double> halved(std::vector<double> times) {
    for (double& each : times) each /= 2;
    return times;
  }
  void send(std::uint32_t count) const {
    for (std::uint32_t i = 0; i < count; ++i) exchange_.send();
  }
  void await(std::uint32_t count) const {
    for (std::uint32_t i = 0; i < count; ++i) exchange_.await();
  }
  /// Calls `round()`, which returns the nanoseconds of one message, as often as `rounds` states.
  template <class Round>
  std::vector<double> time_parts(Rounds rounds, Round round) const {
    bench_.world().barrier();
    std::vector<double> times;
    if (!bench_.paired()) return times;
    for (std::uint32_t i = 0; i < rounds.warm_up; ++i) round();
    for (std::uint32_t batch = 0; batch < rounds.batches; ++batch) {
      double ns = 0;
      for (std::uint32_t i = 0; i < rounds.iterations; ++i) ns += round();
      times.push_back(ns);
    }
    return times;
  }

  Bench& bench_;
  Exchange exchange_;
};

struct Parameter {
  const char* name;
  std::vector<double> (LogP::*time)(Rounds) const;
  Receivers receivers;
};
constexpr Parameter parameters[] = {{"half_round_trip", &LogP::half_round_trip, Receivers::both},
                                    {"o_s", &LogP::send_overhead, Receivers::second},
                                    {"o_r", &LogP::receive_overhead, Receivers::both},
                                    {"g", &LogP::gap, Receivers::both},
                                    {"L", &LogP::latency, Receivers::both}};

void add_parameters(std::vector<Measurement>& all, const std::shared_ptr<NetworkPair>& pair, const char* method,
                    Exchange exchange) {
  const auto model = std::make_shared<LogP>(pair->bench(), std::move(exchange));
  for (const Parameter& each : parameters) {
    all.push_back(network_measurement(pair, each.receivers, method,
                                      [=](Rounds rounds) { return ((*model).*each.time)(rounds); }));
    all.back().operation = "log_p", all.back().unit = Unit::microseconds;
    all.back().operations_per_iteration = 1, all.back().most_iterations = 20;
    all.back().settings.emplace_back("parameter", each.name);
  }
}

std::vector<Measurement> prepare_log_p(Bench& bench, std::uint64_t bytes) {
  require_host_ranks(bench);
  const std::vector<std::uint64_t> processes = bench.from_all(static_cast<std::uint64_t>(::getpid()));
  require(processes[0] != processes[1], Status::unavailable,
          "the receiver's cores are those of a process: start the ranks as processes");
  const auto pair = std::make_shared<NetworkPair>(bench, bytes, 1);
  std::vector<Measurement> all;
  add_parameters(all, pair, "ucx/active_messages",
                 {[=] { pair->bare_send(0); }, [=] { pair->await_bare_messages(1); }, [=] { pair->bare().flush(); },
                  [=] { pair->bare_settle(); }});
  for (Measurement& each : all) each.peer_of = "network/put_signal";
  add_parameters(all, pair, "network/put_signal",
                 {[=] { pair->put_signal(); }, [=] { pair->await_signal(); }, [=] { pair->quiet(); }, [] {}});
  for (std::size_t i = 0; i < std::size(parameters); ++i) all[std::size(parameters) + i].baseline = i;
  return all;
}

// --- Loop-back and sink ---

struct PutsToItself {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::byte* to, const std::byte* from,
                                      std::uint64_t bytes, CommandQueue queue) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t) {
      return post_put(Thread{}, ctx, to, from, bytes, ctx.rank, queue) == Status::ok &&
             quiet(Thread{}, ctx, queue) == Status::ok;
    });
  }
};

class OwnMemory {
 public:
  OwnMemory(Bench& bench, std::uint64_t bytes, Memories memories)
      : bench_(bench), from_(bench.world(), bytes, memories.source), to_(bench.world(), bytes, memories.destination),
        queues_(bench.world(), 1), timed_(bench), stream_(bench.world().make_stream()) {}

  std::vector<double> by_engine(Rounds rounds) {
    return timed_.run(single_thread(bench_).threads, bench_.leads(), rounds, PutsToItself{}, to_.data(),
                      static_cast<const std::byte*>(from_.data()), to_.bytes(), queues_.channel().queue(0));
  }
  std::vector<double> by_copy(Rounds rounds) {
    return on_leader(rounds, [this] {
      bare_copy(*stream_, to_.data(), from_.data(), to_.bytes());
      bench_.world().synchronize(*stream_);
    });
  }
  /// Reads host memory; the values are not used.
  std::vector<double> by_reads(Rounds rounds) {
    return on_leader(rounds, [this] {
      const auto* const words = reinterpret_cast<const std::uint64_t*>(from_.data());
      sink_ = std::accumulate(words, words + to_.bytes() / sizeof *words, std::uint64_t{0});
    });
  }
  [[nodiscard]] bool is_right(std::uint64_t seed, const std::function<void()>& move) {
    const std::vector<std::byte> sent = random_message(seed, bench_.world().rank(), to_.bytes());
    bench_.world().copy(from_.data(), sent.data(), sent.size());
    move();
    std::vector<std::byte> moved(sent.size());
    bench_.world().copy(moved.data(), to_.data(), moved.size());
    return !bench_.leads() || moved == sent;
  }

 private:
  std::vector<double> on_leader(Rounds rounds, const std::function<void()>& round) {
    return time_on_host(bench_, rounds, [&] {
      if (bench_.leads()) round();
    });
  }

  Bench& bench_;
  SymmetricArray<std::byte> from_, to_;
  CommandQueues queues_;
  TimedKernel timed_;
  std::unique_ptr<Stream> stream_;
  volatile std::uint64_t sink_ = 0;
};

std::vector<Measurement> prepare_loop_back(Bench& bench, std::uint64_t bytes) {
  constexpr const char* method = "proxy/copy_engine/signal";
  const auto name_of = [](Heap heap) { return heap == Heap::pinned ? "host" : "gpu"; };
  std::vector<Measurement> all;
  for (const Memories& memories : all_memories(bench)) {
    const auto memory = std::make_shared<OwnMemory>(bench, bytes, memories);
    const auto add = [&](const char* by, std::vector<double> (OwnMemory::*time)(Rounds), bool keeps) {
      Measurement measurement{.operation = "loop_back", .method = by, .bytes = bytes};
      measurement.unit = Unit::gigabytes_per_second;
      measurement.settings = {{"source", name_of(memories.source)},
                              {"destination", keeps ? name_of(memories.destination) : "sink"}};
      measurement.time = [=](Rounds rounds) { return ((*memory).*time)(rounds); };
      if (keeps)
        measurement.verify = [=](std::uint64_t seed) {
          return memory->is_right(seed, [&] { static_cast<void>(((*memory).*time)(Rounds{})); });
        };
      if (by != method) measurement.peer_of = method;
      all.push_back(std::move(measurement));
    };
    if (!bench.world().device().is_gpu()) add("bare/reads", &OwnMemory::by_reads, false);
    add("bare/copy", &OwnMemory::by_copy, true);
    add(method, &OwnMemory::by_engine, true);
    all.back().baseline = all.size() - 2;
  }
  return all;
}

// --- Sources that the engine knows ---

struct PostsFrom {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, std::byte* to, const std::byte* from,
                                      std::uint64_t bytes, CommandQueue queue, SourceKind kind) const {
    if (grid.block().thread_rank() != 0) return;
    time_rounds(Thread{}, loop, [&](std::uint64_t) {
      if (queue.ring == nullptr)
        return put(Thread{}, ctx, to, from, bytes, loop.peer, QueueId{}, kind) == Status::ok &&
               quiet(Thread{}, ctx) == Status::ok;
      return post_put(Thread{}, ctx, to, from, bytes, loop.peer, queue, Timeout::none(), kind) == Status::ok &&
             quiet(Thread{}, ctx, queue) == Status::ok;
    });
  }
};

/// Puts from symmetric memory, which the engine knows, and from other memory, with and without the poster's assertion
/// that the engine can read it: by a command queue and, between nodes, by the calling thread.
std::vector<Measurement> prepare_source_kinds(Bench& bench, std::uint64_t bytes) {
  require_host_ranks(bench);
  const auto symmetric = std::make_shared<MessageBuffers>(bench, bytes);
  const std::shared_ptr<std::byte[]> memory = std::make_shared<std::byte[]>(bytes);
  const auto other = std::make_shared<MessageBuffers>(bench, bytes, std::shared_ptr<std::byte>(memory, memory.get()),
                                                      std::shared_ptr<std::byte>(symmetric, symmetric->destination()));
  const auto queues = std::make_shared<CommandQueues>(bench.world(), 1);
  const auto timed = std::make_shared<TimedKernel>(bench);
  std::vector<Measurement> all;
  const auto add = [&](bool posts, const char* source, const std::shared_ptr<MessageBuffers>& buffers,
                       SourceKind kind) {
    all.push_back(
        message_measurement(bench, buffers, Receivers::second, "proxy/copy_engine/signal", [=, &bench](Rounds rounds) {
          const CommandQueue queue = posts ? queues->channel().queue(0) : CommandQueue{nullptr, nullptr};
          return timed->run(single_thread(bench).threads, bench.leads(), rounds, PostsFrom{}, buffers->destination(),
                            static_cast<const std::byte*>(buffers->source()), buffers->bytes(), queue, kind);
        }));
    all.back().operation = "source_kind", all.back().unit = Unit::microseconds;
    all.back().settings = {{"source", source}, {"call", posts ? "post_put" : "put"}};
  };
  for (const bool posts : {true, false}) {
    if (!posts && bench.world().node(0) == bench.world().node(static_cast<int>(bench.world().size() - 1))) break;
    add(posts, "symmetric", symmetric, SourceKind::unknown);
    add(posts, "other", other, SourceKind::unknown);
    add(posts, "other_known", other, SourceKind::readable);
  }
  return all;
}

// --- Reads across a bus, and between sockets ---

/// A chain of dependent loads: each word has the index of the next.
struct DependentLoads {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, Loop loop, const std::uint64_t* words) const {
    if (grid.block().thread_rank() != 0) return;
    std::uint64_t at = 0;
    time_rounds(Thread{}, loop, [&](std::uint64_t) {
      at = detail::SystemAtomic<std::uint64_t>(const_cast<std::uint64_t&>(words[at])).load(std::memory_order_relaxed);
      return true;
    });
    loop.stamps[0] += at == ~std::uint64_t{0} ? 1 : 0;  // the loads are used
  }
};

/// A cycle through cache lines in random order.
std::vector<std::uint64_t> cycle(std::size_t words) {
  constexpr std::size_t line = 8;
  std::vector<std::uint64_t> order(words / line), next(words);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random_word(1, i) % i]);
  for (std::size_t i = 0; i < order.size(); ++i) next[order[i] * line] = order[(i + 1) % order.size()] * line;
  return next;
}
constexpr std::size_t cycle_bytes = std::size_t{64} << 20;

std::vector<Measurement> prepare_bus_read(Bench& bench, std::uint64_t) {
  bench.require_alike();
  require(bench.world().device().is_gpu(), Status::unavailable,
          "no bus lies between a host rank's threads and its memory: measured on GPU ranks");
  const std::vector<std::uint64_t> next = cycle(cycle_bytes / sizeof(std::uint64_t) / 8);
  const auto words = std::make_shared<SymmetricArray<std::uint64_t>>(bench.world(), next.size(), Heap::pinned);
  bench.world().copy(words->data(), next.data(), words->bytes());
  const auto timed = std::make_shared<TimedKernel>(bench);
  Measurement measurement{.operation = "bus_read", .method = "bare/reads", .bytes = sizeof(std::uint64_t)};
  measurement.settings = {{"memory", "pinned"}};
  measurement.time = [&bench, words, timed](Rounds rounds) {
    return timed->run(1, bench.leads(), rounds, DependentLoads{}, static_cast<const std::uint64_t*>(words->data()));
  };
  return {measurement};
}

/// The numbers of a list like "0-3,8".
std::vector<int> numbers_in(const std::filesystem::path& file) {
  std::vector<int> all;
  std::ifstream text(file);
  for (int first = 0; text >> first;) {
    int last = first;
    if (text.peek() == '-') text.ignore() >> last;
    for (; first <= last; ++first) all.push_back(first);
    text.ignore();  // the comma
  }
  return all;
}

const std::filesystem::path numa_nodes = "/sys/devices/system/node";

/// Memory of one NUMA node, read by a thread on the cores of another.
class NodeMemory {
 public:
  NodeMemory(int node, const std::vector<int>& cores) {
    CPU_ZERO(&cores_);
    for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &cores_);
    void* const got = ::mmap(nullptr, cycle_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(got != MAP_FAILED, Status::no_resource, "no memory for reads between sockets");
    words_ = static_cast<std::uint64_t*>(got);
    std::array<unsigned long, 16> mask{};
    mask[static_cast<std::size_t>(node) / 64] = 1ul << node % 64;
    const long bound = ::syscall(SYS_mbind, got, cycle_bytes, MPOL_BIND, mask.data(), 64 * mask.size(), 0);
    const std::vector<std::uint64_t> next = cycle(cycle_bytes / sizeof(std::uint64_t));
    if (bound == 0) std::copy(next.begin(), next.end(), words_);
    is_there_ = bound == 0;
  }
  ~NodeMemory() { ::munmap(words_, cycle_bytes); }
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;
  [[nodiscard]] bool is_there() const { return is_there_; }

  std::vector<double> time(Rounds rounds) {
    std::vector<double> times;
    std::thread([&] {
      static_cast<void>(::sched_setaffinity(0, sizeof cores_, &cores_));
      times = time_batches(rounds, [&] {
        const std::uint64_t start = machine::clock_ns();
        for (std::uint32_t i = 0; i < rounds.iterations; ++i) at_ = const_cast<volatile std::uint64_t*>(words_)[at_];
        return static_cast<double>(machine::clock_ns() - start);
      });
    }).join();
    return times;
  }

 private:
  std::uint64_t* words_ = nullptr;
  std::uint64_t at_ = 0;
  cpu_set_t cores_{};
  bool is_there_ = false;
};

std::vector<Measurement> prepare_socket_reads(Bench& bench, std::uint64_t) {
  const std::vector<int> nodes = numbers_in(numa_nodes / "has_memory");
  const std::vector<int> cores =
      nodes.empty() ? std::vector<int>{} : numbers_in(numa_nodes / ("node" + std::to_string(nodes[0])) / "cpulist");
  require(bench.everywhere(nodes.size() > 1 && !cores.empty()), Status::unavailable,
          "this machine has one socket with memory (NUMA node): there is no far one");
  std::vector<Measurement> all;
  for (const int node : {nodes[0], nodes[1]}) {
    const auto memory = std::make_shared<NodeMemory>(node, cores);
    require(bench.everywhere(memory->is_there()), Status::unavailable, "the system binds no memory to a socket");
    Measurement measurement{.operation = "socket_read", .method = "bare/reads", .bytes = sizeof(std::uint64_t)};
    measurement.settings = {{"socket", node == nodes[0] ? "near" : "far"}};
    measurement.time = [=](Rounds rounds) { return memory->time(rounds); };
    all.push_back(std::move(measurement));
  }
  return all;
}

constexpr std::uint64_t kib = 1 << 10;

const ListedCases network_cases(
    Command::network, {{"log_p", "network/put_signal", true, prepare_log_p, {0, 4 * kib}},
                       {"loop_back", "proxy/copy_engine/signal", true, prepare_loop_back, {64 * kib}},
                       {"source_kind", "proxy/copy_engine/signal", true, prepare_source_kinds, {64, 256 * kib}},
                       {"bus_read", "bare/reads", false, prepare_bus_read},
                       {"socket_read", "bare/reads", false, prepare_socket_reads}});

}  // namespace

}  // namespace beeline::bench::network_parts_cases
