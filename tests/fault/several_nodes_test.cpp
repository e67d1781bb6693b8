// SPDX-License-Identifier: Apache-2.0
// Faults of worlds on several nodes: this machine acts as two nodes, whose ranks communicate over UCX.
#include <arpa/inet.h>
#include <dirent.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/support/check.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/split_nodes.hpp"
#include "tests/support/stopped_process.hpp"

namespace beeline_test::several_nodes_test {

namespace {

using namespace beeline;
using namespace std::chrono_literals;

constexpr int ranks = 4;
constexpr int victim = 3;  // ranks 2 and 3 are on the other node

/// A missing UCX is reported before any rank waits for another, and does not matter to worlds of one node.
void expect_refused(const std::string& ucx, std::initializer_list<std::string_view> words) {
  const auto outcomes = run_processes(
      2,
      [&](const Config& config) {
        ::setenv("BEELINE_UCX", ucx.c_str(), 1);
        Config one_node = config;
        one_node.split_nodes = 1;
        World::create(one_node)->barrier();
        check_error(Status::unavailable, words, [&] { static_cast<void>(World::create(config)); });
      },
      split_config());
  expect_all_passed(outcomes);
}

TEST(Ucx, ThatIsMissingIsSaid) {
  SKIP_WITHOUT_UCX();
  expect_refused("/nowhere", {"ranks on several nodes need UCX", "/nowhere", "install", "libucx"});
}

TEST(Ucx, ThatIsTooOldIsSaid) {
  SKIP_WITHOUT_UCX();
  expect_refused(OLD_UCX, {"ranks on several nodes need UCX", "version 1.12.1", "1.13 or later"});
}

struct BarrierKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, int) const {
    static_cast<void>(barrier(grid.block(), ctx));
  }
};

/// The waits that a death must end, by name.
using Words = SymmetricArray<std::uint64_t>;
struct Wait {
  const char* name;
  void (*wait)(World&, Words& signals);
};
const Wait waits[] = {
    {"barrier", [](World& world, Words&) { world.barrier(); }},
    {"barrier_in_a_kernel",
     [](World& world, Words&) {
       launch(world, {.waits = true}, BarrierKernel{}, 0);
       world.synchronize();
     }},
    {"signal",
     [](World& world, Words& signals) {
       static_cast<void>(wait(Thread{}, world.host_context(), signals.data(), Compare::equal, 1, victim));
       world.check();
     }},
    {"quiet",
     [](World& world, Words& signals) {
       for (;;) {
         put_value(world.host_context(), signals.data() + 1, std::uint64_t{1}, victim);
         static_cast<void>(quiet(Thread{}, world.host_context()));
         world.check();
       }
     }},
    {"batch",
     [](World& world, Words& signals) {
       BatchEntry entries[3];
       PutBatch batch(world.host_context(), entries, 3);
       for (std::uint64_t value = 1;; ++value) {
         batch.begin(Thread{}, victim);
         batch.put(Thread{}, signals.data() + 2, signals.data() + 500, 3);
         for (std::size_t i = 1; i < 9; ++i) batch.put(Thread{}, signals.data() + i, &value, 1);
         if (batch.end(Thread{}) == Status::ok) static_cast<void>(quiet(Thread{}, world.host_context()));
         world.check();
       }
     }},
    {"get",
     [](World& world, Words& signals) {
       std::uint64_t value = 0;
       for (;;) {
         static_cast<void>(get(Thread{}, world.host_context(), &value, signals.data(), 1, victim));
         world.check();
       }
     }},
    {"copy",
     [](World& world, Words& signals) {
       std::vector<std::uint64_t> data(1000);
       for (;;) {
         world.copy(data.data(), signals.at(victim), data.size() * sizeof(std::uint64_t));
         world.check();
       }
     }},
    {"stream_put",
     [](World& world, Words& signals) {
       for (;;) {
         put_on_stream(world, signals.data() + 2, signals.data() + 500, 2000, victim);
         world.synchronize();
       }
     }},
    {"stream_put_signal",
     [](World& world, Words& signals) {
       for (std::uint64_t value = 1;; ++value) {
         put_signal_on_stream(world, signals.data() + 2, signals.data() + 500, 2000, victim,
                              {.signal = signals.data() + 1, .value = value});
         world.synchronize();
       }
     }},
    {"stream_copy", [](World& world, Words& signals) {
       for (;;) {
         world.copy(signals.data() + 2, signals.at(victim) + 500, 2000, world.stream());
         world.synchronize();
       }
     }}};

class EndOfARankElsewhere : public ::testing::TestWithParam<Wait> {};

TEST_P(EndOfARankElsewhere, EndsEveryWaitWithItsName) {
  SKIP_WITHOUT_UCX();
  expect_others_passed(victim, run_processes(
                                   ranks,
                                   [wait = GetParam()](const Config& config) {
                                     const std::unique_ptr<World> world = World::create(config);
                                     Words signals(*world, 1024);
                                     const auto start = std::chrono::steady_clock::now();
                                     try {
                                       world->barrier();  // some may still be in it when the victim has left
                                       if (config.rank == victim) {
                                         std::this_thread::sleep_for(50ms);
                                         ::kill(::getpid(), SIGKILL);
                                       }
                                       wait.wait(*world, signals);
                                       throw CheckFailure("no error");
                                     } catch (const Error& error) {
                                       BEELINE_CHECK_CONTAINS(error.what(), "rank 3 ended");
                                       BEELINE_CHECK(error.code() == Status::peer_died);
                                     }
                                     BEELINE_CHECK(std::chrono::steady_clock::now() - start < 5s);
                                     world->abort("its partner is gone");
                                   },
                                   split_config()));
}

INSTANTIATE_TEST_SUITE_P(In, EndOfARankElsewhere, ::testing::ValuesIn(waits),
                         [](const auto& each) { return std::string(each.param.name); });

/// Ends the target's process while it runs the task, if the argument is true.
struct EndProcess {
  static constexpr const char* name = "end_process";
  using Arguments = bool;
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group&, const Context&, [[maybe_unused]] const Task& task) const {
#if !BEELINE_ON_GPU
    if (task.as<bool>()) ::kill(::getpid(), SIGKILL);
#endif
  }
};

/// A target on another node ends in a task: the replies to earlier tasks have arrived; waits for that task and for
/// later ones end.
TEST(EndOfATarget, EndsTheWaitsForItsTasks) {
  SKIP_WITHOUT_UCX();
  expect_others_passed(
      victim, run_processes(
                  ranks,
                  [](const Config& config) {
                    const std::unique_ptr<World> world = World::create(config);
                    try {
                      Words replies(*world, 3);
                      Tasks<TaskList<EndProcess>> tasks(*world, {.queues = 1, .workers = 1});
                      tasks.register_function<EndProcess>({});
                      const Context& ctx = world->host_context();
                      for (int task = 0; task < 3 && config.rank == 0; ++task) {
                        const bool ends = task == 1;
                        TaskPost post = task_of<TaskList<EndProcess>, EndProcess>(ends, victim);
                        post.reply = replies.data() + task;
                        BEELINE_CHECK(post_task(Thread{}, ctx, tasks.channel(), post) == Status::ok);
                        if (task == 0)
                          BEELINE_CHECK(wait(Thread{}, ctx, post.reply, Compare::equal, 1, victim) == Status::ok);
                      }
                      static_cast<void>(wait(Thread{}, ctx, replies.data() + 2, Compare::equal, 1, victim));
                      world->check();
                      throw CheckFailure("no error");
                    } catch (const Error& error) {
                      BEELINE_CHECK_CONTAINS(error.what(), "rank 3 ended");
                      BEELINE_CHECK(error.code() == Status::peer_died);
                    }
                    world->abort("its partner is gone");
                  },
                  split_config()));
}

/// Chunks are posted, in flight and in buffers when their target dies; rank 1 waits for a chunk of the victim.
TEST(StagedTransfers, EndWithTheirPeer) {
  expect_others_passed(victim, run_processes(
                                   ranks,
                                   [](const Config& config) {
                                     const std::unique_ptr<World> world = World::create(config);
                                     HybridTransfers hybrid(*world,
                                                            {.threshold_bytes = 1, .chunk_bytes = 3000, .chunks = 3});
                                     StagedChannel channel(*world, 3000, 2);
                                     const SymmetricArray<std::byte> memory(*world, 100'000);
                                     std::vector<std::byte> mine(memory.bytes());
                                     try {
                                       world->barrier();
                                       if (config.rank == victim) {
                                         std::this_thread::sleep_for(50ms);
                                         ::kill(::getpid(), SIGKILL);
                                       }
                                       if (config.rank == 1) channel.receive(mine.data(), mine.size(), victim);
                                       if (config.rank == 2) channel.send(mine.data(), mine.size(), victim);
                                       for (;;) {
                                         hybrid.put(memory.data(), mine.data(), mine.size(), victim);
                                         world->check();
                                       }
                                     } catch (const Error& error) {
                                       BEELINE_CHECK_CONTAINS(error.what(), "rank 3 ended");
                                       BEELINE_CHECK(error.code() == Status::peer_died);
                                     }
                                     world->abort("its partner is gone");
                                   },
                                   split_config(20'000'000'000, "sockets")));
}

/// Kills the process that has written its number to a word, if any has, even if a check fails: a stopped process would
/// remain for ever.
class StoppedProcess {
 public:
  explicit StoppedProcess(const std::uint64_t* number) : number_(number) {}
  ~StoppedProcess() {
    if (const auto number = static_cast<pid_t>(*number_); number != 0) ::kill(number, SIGKILL);
  }
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;

 private:
  const volatile std::uint64_t* number_;
};

/// When rank 0 and the other ranks make `check`, rank 0 knows that the victim has stopped. A stopped process keeps its
/// connections open, so only the deadline ends waits for it.
///   bytes  of memory that all ranks have
void with_a_stopped_rank(
    std::int64_t deadline_ns, std::size_t bytes,
    const std::function<void(World& world, SymmetricArray<std::byte>& memory, std::uint64_t* signal)>& check) {
  expect_others_passed(
      victim,
      run_processes(
          ranks,
          [&](const Config& config) {
            const std::unique_ptr<World> world = World::create(config);
            Words words(*world, 2);
            SymmetricArray<std::byte> memory(*world, bytes);
            world->barrier();
            if (config.rank == victim) {
              std::this_thread::sleep_for(300ms);  // its engine acknowledges the barrier's messages meanwhile
              put_value(world->host_context(), words.data(), static_cast<std::uint64_t>(::getpid()), 0);
              BEELINE_CHECK(quiet(Thread{}, world->host_context()) == Status::ok);  // rank 0 knows which process to end
              ::raise(SIGSTOP);
            }
            {
              const StoppedProcess stopped(words.data());  // only rank 0 has its number
              if (config.rank == 0) {
                BEELINE_CHECK(wait(Thread{}, world->host_context(), words.data(), Compare::not_equal, 0, victim) ==
                              Status::ok);
                await_stop(static_cast<pid_t>(*words.data()));  // until then its engine takes what is sent
              }
              check(*world, memory, words.data() + 1);
              std::this_thread::sleep_for(400ms);  // all have their errors now
            }
            world->abort("its partner has stopped");
          },
          split_config(deadline_ns)));
}

TEST(StoppedRank, EndsWaitsByTheirDeadline) {
  SKIP_WITHOUT_UCX();
  with_a_stopped_rank(1'500'000'000, 16, [](World& world, SymmetricArray<std::byte>&, std::uint64_t*) {
    try {
      world.barrier();
      throw CheckFailure("no error");
    } catch (const Error& error) {
      BEELINE_CHECK_CONTAINS(error.what(), " on rank 3");  // barrier, or quiet of the previous barrier's messages
      BEELINE_CHECK_CONTAINS(error.what(), "deadline");
    }
  });
}

/// Work on a stream that ends at the deadline of a wait.
struct StreamWork {
  const char* name;
  std::vector<std::string_view> said;
  void (*put)(World& world, SymmetricArray<std::byte>& memory, std::uint64_t* signal);
};
const StreamWork stream_works[] = {{"put",
                                    {"quiet on rank 3", "stream copy"},
                                    [](World& world, SymmetricArray<std::byte>& memory, std::uint64_t*) {
                                      put_on_stream(world, memory.data(), memory.data() + memory.bytes() / 2,
                                                    memory.bytes() / 2, victim);
                                    }},
                                   {"get",
                                    {"get on rank 3", "stream copy"},
                                    [](World& world, SymmetricArray<std::byte>& memory, std::uint64_t*) {
                                      world.copy(memory.data(), memory.at(victim), memory.bytes(), world.stream());
                                    }},
                                   {"fill",
                                    {"quiet on rank 3", "stream fill"},
                                    [](World& world, SymmetricArray<std::byte>& memory, std::uint64_t*) {
                                      world.stream().fill(memory.at(victim), 1, memory.bytes());
                                    }},
                                   {"put_signal",
                                    {"flush on rank 3", "put_signal"},
                                    [](World& world, SymmetricArray<std::byte>& memory, std::uint64_t* signal) {
                                      put_signal_on_stream(world, memory.data(), memory.data() + memory.bytes() / 2,
                                                           memory.bytes() / 2, victim, {.signal = signal});
                                    }}};

class StreamsToAStoppedRank : public ::testing::TestWithParam<StreamWork> {};

TEST_P(StreamsToAStoppedRank, EndByTheirDeadline) {
  SKIP_WITHOUT_UCX();
  constexpr std::size_t bytes = std::size_t{48} << 20;  // more than connections hold
  with_a_stopped_rank(3'000'000'000, bytes,
                      [work = GetParam()](World& world, SymmetricArray<std::byte>& memory, std::uint64_t* signal) {
                        if (world.rank() != 0) {
                          while (!world.failed()) std::this_thread::sleep_for(10ms);
                          return;
                        }
                        std::vector<std::string_view> said = work.said;
                        said.emplace_back("deadline");
                        try {
                          work.put(world, memory, signal);
                          world.synchronize();
                          throw CheckFailure("no error");
                        } catch (const Error& error) {
                          for (const std::string_view part : said) BEELINE_CHECK_CONTAINS(error.what(), part);
                        }
                      });
}

INSTANTIATE_TEST_SUITE_P(Of, StreamsToAStoppedRank, ::testing::ValuesIn(stream_works),
                         [](const auto& each) { return std::string(each.param.name); });

/// A call of ranks on two nodes, one form for the odd rank and one for the others.
struct MixedCall {
  const char* name;
  std::vector<std::string_view> said;
  void (*make)(Collectives& collectives, float* data, bool is_odd);
};

std::vector<std::size_t> lengths(std::size_t each) { return std::vector<std::size_t>(ranks, each); }

const MixedCall mixed_calls[] = {
    {"counts",
     {"allreduce(sum, float32, 100 elements) by across_nodes", "allreduce(sum, float32, 101 elements) by across_nodes"},
     [](Collectives& collectives, float* data, bool is_odd) {
       collectives.allreduce_on_stream(data, data, is_odd ? 101 : 100, ElementType::float32, Reduction::sum);
     }},
    {"operations",
     {"barrier by across_nodes", "allgather(float32, 8 elements) by across_nodes"},
     [](Collectives& collectives, float* data, bool is_odd) {
       is_odd ? collectives.barrier_on_stream()
              : collectives.allgather_on_stream(data, data + 100, 8, ElementType::float32);
     }},
    // Each waits for the other, and neither sends.
    {"roots",
     {"broadcast(float32, 8 elements, root 0) by across_nodes",
      "broadcast(float32, 8 elements, root 3) by across_nodes"},
     [](Collectives& collectives, float* data, bool is_odd) {
       const int rank = collectives.team().rank();
       collectives.broadcast_on_stream(data, data, 8, ElementType::float32, is_odd || rank == 3 ? 0 : 3);
     }},
    // Rank 0 forwards rank 2's data to rank 1, which waits for rank 3 instead; rank 3 is no root.
    {"roots_inside_a_node",
     {"broadcast(float32, 8 elements, root 2) by across_nodes",
      "broadcast(float32, 8 elements, root 3) by across_nodes"},
     [](Collectives& collectives, float* data, bool) {
       collectives.broadcast_on_stream(data, data, 8, ElementType::float32, collectives.team().rank() == 1 ? 3 : 2);
     }},
    // Rank 1 sends to ranks that do not wait for it. Rank 0's data for it remain, and look like its next call's. Rank 1
    // finds that in its second call, unless a rank that waits for it in the first compares the two before.
    {"roots_of_one_call_of_two",
     {"rank 1", "broadcast(float32, 8 elements, root 0)"},
     [](Collectives& collectives, float* data, bool) {
       for (const bool is_first : {true, false})
         collectives.broadcast_on_stream(data, data, 8, ElementType::float32,
                                         is_first && collectives.team().rank() == 1 ? 1 : 0);
     }},
    {"lengths",
     {"sends 4 bytes to rank", "which expects 8 in alltoallv"},
     [](Collectives& collectives, float* data, bool is_odd) {
       static const std::vector<std::size_t> ones = lengths(1), offsets{0, 2, 4, 6};
       std::vector<std::size_t> expected = ones;
       if (is_odd) expected[3] = 2;
       collectives.alltoallv_on_stream(data, data + 100, {ones, offsets, expected, offsets}, ElementType::float32);
     }}};

class CallsThatDiffer : public ::testing::TestWithParam<MixedCall> {};

TEST_P(CallsThatDiffer, AcrossNodesAreNamed) {
  SKIP_WITHOUT_UCX();
  expect_all_passed(run_ranks(
      WorldKind::processes, ranks,
      [call = GetParam()](World& world) {
        Collectives collectives(world);
        const SymmetricArray<float> vector(world, 1000);
        collectives.allreduce(vector);
        const auto start = std::chrono::steady_clock::now();
        try {
          world.barrier();
          call.make(collectives, vector.data(), world.rank() == 0);
          world.synchronize();
          world.barrier();
          throw CheckFailure("no error");
        } catch (const Error& error) {
          for (const std::string_view part : call.said) BEELINE_CHECK_CONTAINS(error.what(), part);
        }
        BEELINE_CHECK(std::chrono::steady_clock::now() - start < 5s);
      },
      split_config()));
}

INSTANTIATE_TEST_SUITE_P(In, CallsThatDiffer, ::testing::ValuesIn(mixed_calls),
                         [](const auto& each) { return std::string(each.param.name); });

/// Both nodes get an error that names the rank that does not come, for collectives and for messages.
TEST(AbsentRank, EndsCallsAcrossNodesByTheirDeadline) {
  SKIP_WITHOUT_UCX();
  for (const bool is_message : {false, true})
    expect_all_passed(run_ranks(
        WorldKind::processes, 2,
        [is_message](World& world) {
          Collectives collectives(world);
          Messages messages(world);
          const SymmetricArray<float> vector(world, 100);
          world.barrier();
          try {
            if (world.rank() == 1)
              while (!world.failed()) std::this_thread::sleep_for(1ms);
            else if (is_message)
              messages.receive(vector, 1);
            else
              collectives.allreduce(vector);
            world.check();
            throw CheckFailure("no error");
          } catch (const Error& error) {
            BEELINE_CHECK_CONTAINS(error.what(),
                                   is_message ? "receive on rank 1" : "collective on rank 1 in allreduce");
          }
        },
        split_config(1'500'000'000)));  // also for the set-up of UCX, on a busy machine
}

/// Ports at which this process listens, on IPv4.
std::vector<int> listening_ports() {
  std::set<std::string> sockets;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    char text[64] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    if (::readlink(link.c_str(), text, sizeof text - 1) > 0 && std::string_view(text).starts_with("socket:["))
      sockets.insert(std::string(text + 8, std::string_view(text).size() - 9));
  }
  std::vector<int> ports;
  std::ifstream table("/proc/self/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.size() > 9 && fields[3] == "0A" && sockets.contains(fields[9]))
      ports.push_back(std::stoi(fields[1].substr(fields[1].find(':') + 1), nullptr, 16));
  }
  return ports;
}

void send_noise(int port, const std::vector<std::byte>& noise) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    static_cast<void>(!::send(socket, noise.data(), noise.size(), MSG_NOSIGNAL));
  ::close(socket);
}

class RandomBytes : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, RandomBytes, ::testing::Values("ucx", "sockets", "tls"),
                         [](const auto& transport) { return std::string(transport.param); });

TEST_P(RandomBytes, OnEveryPortHarmNothing) {
  const bool secure = GetParam() == std::string_view("tls");
  Config config = split_config(20'000'000'000, secure ? "sockets" : GetParam());
  config.secure = secure;
  SKIP_WITHOUT(config.transports);
  if (const std::string why = secure ? no_network_reason("sockets", true) : ""; !why.empty()) GTEST_SKIP() << why;
  expect_all_passed(run_ranks(
      WorldKind::processes, 2,
      [](World& world) {
        SymmetricArray<std::uint64_t> word(world, 1);
        world.barrier();
        Random random("noise");
        const std::vector<int> ports = listening_ports();
        BEELINE_CHECK(!ports.empty());
        for (std::uint64_t round = 1; round <= 20; ++round) {
          for (const int port : ports) send_noise(port, pattern(random.next(), 1 + random.below(std::size_t{3000})));
          put_value(world.host_context(), word.data(), round, static_cast<std::uint32_t>(1 - world.rank()));
          world.barrier();
          BEELINE_CHECK_EQ(round, word.data()[0]);
          world.barrier();
        }
      },
      config));
}

}  // namespace

}  // namespace beeline_test::several_nodes_test
