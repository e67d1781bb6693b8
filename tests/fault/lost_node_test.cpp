// SPDX-License-Identifier: Apache-2.0
// A node is lost while its rank and the others communicate, by each means. The remaining ranks agree and continue with
// all means, and a new rank joins them in a world beside the old one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "beeline/runtime/rendezvous.hpp"
#include "tests/fault/every_path.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/killings.hpp"
#include "tests/support/repetitions.hpp"
#include "tests/support/split_nodes.hpp"

namespace beeline_test::lost_node_test {

namespace {

using namespace beeline;
using namespace std::chrono_literals;

enum class Fault { death, stop, cut, loss };
constexpr const char* fault_names[] = {"Death", "Stop", "Cut", "Loss"};

struct Case {
  const char* transport;
  Fault fault;
  std::size_t path;
  bool on_gpus = false;
};

/// Ranks and nodes; the last rank is alone on its node, which is lost.
struct Shape {
  int ranks, nodes;
  [[nodiscard]] int victim() const { return ranks - 1; }
  [[nodiscard]] std::vector<int> left() const {
    std::vector<int> all;
    for (int rank = 0; rank < victim(); ++rank) all.push_back(rank);
    return all;
  }
};
Shape shape_of(bool on_gpus) {
  if (!on_gpus) return {5, 3};
  return gpus_here() >= 4 ? Shape{4, 3} : Shape{2, 2};
}

Config config_of(const Case& of) {
  // Waits for a rank that is only silent end by the deadline.
  const bool is_silent = of.fault == Fault::stop || of.fault == Fault::loss;
  Config config = split_config(is_silent ? 2'000'000'000 : 20'000'000'000, of.transport);
  config.split_nodes = shape_of(of.on_gpus).nodes;
  config.heap_bytes = std::size_t{64} << 20;
  // A survivor on another GPU than 0 would be late if a thread of the library made a context on GPU 0.
  if (of.on_gpus) config.device = gpus_here() >= 4 ? "auto" : "cuda:1,cuda:0";
  if (of.transport == std::string_view("ucx")) config.memory_keys = MemoryKeys::always;
  return config;
}

/// Applies the fault to this rank some time after all have begun.
void strike(Fault fault, std::chrono::milliseconds after) {
  std::thread([=] {
    std::this_thread::sleep_for(after);
    if (fault == Fault::death) Killings::end_this_process();
    if (fault == Fault::stop) ::kill(::getpid(), SIGSTOP);
  }).detach();
}

/// The number of mappings, in this process, of memory that ranks share.
std::size_t shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t found = 0;
  for (std::string line; std::getline(maps, line);) found += line.find("memfd:beeline") != std::string::npos ? 1 : 0;
  return found;
}

void check_members(const Team& team, const std::vector<int>& expected) {
  BEELINE_CHECK_EQ(expected.size(), static_cast<std::size_t>(team.size()));
  for (int member = 0; member < team.size(); ++member)
    BEELINE_CHECK_EQ(expected[static_cast<std::size_t>(member)], team.world_rank(member));
}

/// A rank's number, in memory allocated before the loss.
class Kept {
 public:
  explicit Kept(World& world) : world_(world), number_(world, 1), mappings_(shared_mappings()) {
    const auto mine = static_cast<std::uint64_t>(world.rank());
    world.copy(number_.data(), &mine, sizeof mine);
  }
  void check(const Team& team) const {
    BEELINE_CHECK(shared_mappings() >= mappings_);  // failed calls may have left some
    for (int member = 0; member < team.size(); ++member) {
      std::uint64_t kept = 0;
      world_.copy(&kept, number_.at(team.world_rank(member)), sizeof kept);
      BEELINE_CHECK_EQ(static_cast<std::uint64_t>(team.world_rank(member)), kept);
    }
    const int victim = world_.size() - 1;
    check_error(Status::peer_died, {join("memory of rank ", victim, " on another node, which has ended")}, [&] {
      std::uint64_t gone = 0;
      world_.copy(&gone, number_.at(victim), sizeof gone);
    });
  }
  /// A get whose data can never arrive makes the world fail at once.
  void end_by_a_get_from_the_victim(Team& team) const {
    if (world_.device().is_gpu()) return;
    const auto victim = static_cast<std::uint32_t>(world_.size() - 1);
    try {
      for (;;) {
        team.barrier();
        if (world_.rank() != 0) continue;
        std::uint64_t gone = 0;
        const Status status = get(Thread{}, world_.host_context(), &gone, number_.data(), 1, victim);
        BEELINE_CHECK_EQ(std::string("aborted"), name(status));
        world_.check();
      }
    } catch (const Error& error) {
      BEELINE_CHECK_CONTAINS(error.what(), join("rank ", victim, " has ended"));
    }
  }

 private:
  World& world_;
  SymmetricArray<std::uint64_t> number_;
  std::size_t mappings_;
};

/// Communicates by `path`, with objects kept in `use`, until the victim's fault.
void communicate(World& world, const Case& of, std::optional<EveryObject>& use, std::chrono::milliseconds after) {
  const int victim = shape_of(of.on_gpus).victim();
  try {
    use.emplace(world);
    every_path()[of.path].step(*use);
    world.barrier();
    if (world.rank() == victim) strike(of.fault, after);
    for (;;) every_path()[of.path].step(*use);
  } catch (const Error& error) {
    Killings::noticed();
    // A rank that is unreachable but alive is named only by the error of the first rank that notices it.
    if (of.fault == Fault::death) BEELINE_CHECK_CONTAINS(error.what(), join("rank ", victim));
  }
}

/// A trigger of the old world sends to the lost node: the command is dropped, and counts as complete.
void fire_into_the_lost_node(EveryObject& before) {
  const auto put = TriggeredOperation::put(before.in.data(), before.out.data(), 512, before.world.size() - 1)
                       .and_signal(before.arrived.data(), 1);
  const ArmedOperation armed = before.engine.arm(put, {.tag = 1});
  before.engine.trigger(1);
  BEELINE_CHECK(before.engine.wait(armed) == Status::ok);
}

void lose_a_node(World& world, const Case& of, std::chrono::milliseconds after) {
  const Shape shape = shape_of(of.on_gpus);
  const Kept kept(world);
  const auto pid = static_cast<std::uint64_t>(::getpid());
  const auto pids = world.allgather(std::as_bytes(std::span(&pid, 1)));
  std::optional<EveryObject> before;
  communicate(world, of, before, after);
  // A GPU has no room for the blocks of both sets of objects.
  if (of.path % 2 == 0 || of.on_gpus) before.reset();  // otherwise the remaining ranks destroy the objects
  if (world.rank() == shape.victim()) {                // it is alive, but unreachable
    try {
      static_cast<void>(world.survivors());
      throw CheckFailure("the victim went on");
    } catch (const Error& error) {
      BEELINE_CHECK_CONTAINS(error.what(), "is not among those that are left");
    }
    return;
  }
  Killings::agrees();
  // A rank whose wait is for the silent rank fails up to a second later than a rank whose wait is for that rank.
  const bool is_silent = of.fault == Fault::stop || of.fault == Fault::loss;
  const double deadline_s = static_cast<double>(world.config().deadline_ns) / 1e9 + (is_silent ? 1 : 0);
  Team& team = world.survivors(static_cast<std::int64_t>(deadline_s * 1e9));
  const double took_s = Killings::went_on();
  // A rank that is alive, but silent, has a second from the last rank's call on, also if the deadline has passed.
  BEELINE_CHECK(took_s < deadline_s + (of.fault == Fault::loss ? 1.5 : 0.5));
  // Threads of the library that make a context on a second GPU take two seconds.
  if (of.on_gpus && of.fault == Fault::death) BEELINE_CHECK(took_s < 1);
  check_members(team, shape.left());
  kept.check(team);
  EveryObject use(team);
  use_every_path(use, "after the loss");
  if (before) fire_into_the_lost_node(*before);
  before.reset();
  team.barrier();
  std::uint64_t victims_pid = 0;
  std::memcpy(&victims_pid, pids[static_cast<std::size_t>(shape.victim())].data(), sizeof victims_pid);
  if (of.fault == Fault::stop && world.rank() == 0) ::kill(static_cast<pid_t>(victims_pid), SIGKILL);
  if (of.path == 0) kept.end_by_a_get_from_the_victim(team);
}

class LostNode : public ::testing::TestWithParam<Case> {};

TEST_P(LostNode, TheOthersGoOn) {
  const Case& of = GetParam();
  SKIP_WITHOUT(of.transport);
  if (const std::string why = of.on_gpus ? missing_gpus(2) : ""; !why.empty()) GTEST_SKIP() << why;
  const Shape shape = shape_of(of.on_gpus);
  for (int repetition = 0, end = repetitions(1); repetition < end && !HasFailure(); ++repetition) {
    const auto outcomes = run_processes(
        shape.ranks,
        [&](const Config& config) {
          Config own = config;
          if (own.rank == shape.victim() && of.fault == Fault::cut) own.transports += ":cut=400";
          if (own.rank == shape.victim() && of.fault == Fault::loss) own.transports += ":drop=400";
          lose_a_node(*World::create(own), of, std::chrono::milliseconds(20 + 7 * (repetition % 20)));
        },
        config_of(of), 60);
    Killings::count(of.on_gpus);
    const auto victim = static_cast<std::size_t>(shape.victim());
    if (of.fault == Fault::death || of.fault == Fault::stop)
      expect_others_passed(victim, outcomes);
    else
      expect_all_passed(outcomes);
  }
}

/// Each path with one of the faults, or with all if BEELINE_TEST_REPETITIONS asks for a long run.
std::vector<Case> cases() {
  constexpr Case faults[] = {{"sockets", Fault::death, 0},
                             {"ucx", Fault::death, 0},
                             {"sockets", Fault::stop, 0},
                             {"sockets", Fault::cut, 0},
                             {"sockets", Fault::loss, 0}};
  constexpr std::string_view of_gpus[] = {"PutInKernel",        "BarrierAndSumInKernel", "MessageInKernel",
                                          "CollectiveOnStream", "TriggerByStream",       "Tasks"};
  // Faults that the ranks find by a deadline take seconds.
  constexpr std::size_t of_path[] = {0, 1, 3, 0, 1, 4, 0, 1, 3, 2};
  const bool is_long = repetitions(0) > 0;
  std::vector<Case> all;
  for (std::size_t path = 0; path < every_path().size(); ++path) {
    for (std::size_t i = 0; i < std::size(faults); ++i)
      if (is_long || i == of_path[path % std::size(of_path)])
        all.push_back({faults[i].transport, faults[i].fault, path});
    const bool is_of_gpus = std::count(std::begin(of_gpus), std::end(of_gpus), every_path()[path].name) != 0;
    for (const Fault fault : {Fault::death, Fault::stop, Fault::cut})
      if (every_path()[path].on_gpus && (is_long || (is_of_gpus && fault == Fault::death)))
        all.push_back({"sockets", fault, path, true});
  }
  return all;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return join(every_path()[info.param.path].name, fault_names[static_cast<int>(info.param.fault)], "Over",
              info.param.transport, info.param.on_gpus ? "OnGpus" : "");
}

INSTANTIATE_TEST_SUITE_P(While, LostNode, ::testing::ValuesIn(cases()), case_name);

/// Another rank dies while the remaining ranks agree, or a little later: they agree again.
TEST(LostNode, AndAnotherWhileTheOthersAgree) {
  SKIP_WITHOUT("sockets");
  const Shape shape = shape_of(false);
  for (int repetition = 0, end = repetitions(2); repetition < end && !HasFailure(); ++repetition) {
    const auto outcomes = run_processes(
        shape.ranks,
        [&](const Config& config) {
          const std::unique_ptr<World> world = World::create(config);
          std::optional<EveryObject> before;
          communicate(*world, {"sockets", Fault::death, 0}, before, 20ms);
          before.reset();
          if (config.rank == 3) strike(Fault::death, std::chrono::milliseconds(repetition % 10));
          for (int attempt = 0;; ++attempt) {
            try {
              Team& team = world->survivors();
              for (int i = 0; i < 50; ++i) team.barrier();
              if (team.size() == shape.ranks - 1) continue;  // rank 3 dies soon
              check_members(team, {0, 1, 2});
              EveryObject use(team);
              use_every_path(use, "after two losses");
              team.barrier();
              return;
            } catch (const Error& error) {
              BEELINE_CHECK(attempt < 100);
              BEELINE_CHECK_CONTAINS(error.what(), "rank 3");
            }
          }
        },
        config_of({"sockets", Fault::death, 0}), 60);
    Killings::count(false);
    for (const std::size_t rank : {0u, 1u, 2u}) EXPECT_TRUE(outcomes[rank].passed()) << outcomes[rank].failure;
    for (const std::size_t rank : {3u, 4u}) EXPECT_EQ(SIGKILL, outcomes[rank].signal);
  }
}

/// A process that becomes a rank once it receives the rendezvous of a world.
class Replacement {
 public:
  Replacement(const Config& config, const std::function<void(const Config&)>& body) {
    int ends[2];
    if (::pipe(ends) != 0) throw CheckFailure("no pipe");
    pid_ = ::fork();
    if (pid_ != 0) {
      ::close(ends[0]);
      told_ = ends[1];
      return;
    }
    ::close(ends[1]);
    std::array<char, 256> text{};
    const ssize_t got = ::read(ends[0], text.data(), text.size() - 1);
    int code = 1;
    try {
      if (got > 0) body(at(config, text.data())), code = 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "the new rank: %s\n", error.what());
    }
    ::_exit(code);
  }
  /// The configuration of the world at "address token".
  static Config at(Config config, const std::string& text) {
    config.rendezvous = text.substr(0, text.find(' '));
    config.token = text.substr(text.find(' ') + 1);
    return config;
  }
  void tell(const std::string& text) const {
    BEELINE_CHECK_EQ(static_cast<ssize_t>(text.size()), ::write(told_, text.data(), text.size()));
  }
  [[nodiscard]] int exit_code() const {
    int status = 1;
    ::waitpid(pid_, &status, 0);
    return status;
  }

 private:
  pid_t pid_ = -1;
  int told_ = -1;
};

/// Uses every path in the world that `config` names, which has all its ranks again.
void work_in_a_new_world(const Config& config) {
  const std::unique_ptr<World> world = World::create(config);
  EveryObject use(*world);
  use_every_path(use, "in the new world");
  world->barrier();
}

TEST(NewWorld, BesideOneThatHasLostANode) {
  for (const char* const transport : {"sockets", "ucx"}) {
    if (!missing_transport(transport).empty()) continue;
    const Shape shape = shape_of(false);
    const Case of{transport, Fault::death, 0};
    expect_others_passed(
        static_cast<std::size_t>(shape.victim()),
        run_processes(
            shape.ranks,
            [&](const Config& config) {
              std::optional<Replacement> replacement;
              Config lost = config;
              lost.rank = shape.victim();
              if (config.rank == 0) replacement.emplace(lost, work_in_a_new_world);
              const std::unique_ptr<World> world = World::create(config);
              std::optional<EveryObject> before;
              communicate(*world, of, before, 20ms);
              Team& team = world->survivors();
              EveryObject use(team);
              const std::string token = make_token();
              std::optional<RendezvousServer> server;
              std::string text;
              if (config.rank == 0) {
                server.emplace(RendezvousServer::Options{shape.ranks, token, "127.0.0.1"});
                text = server->address() + " " + token;
                replacement->tell(text);
              }
              const auto texts = world->allgather(std::as_bytes(std::span(text)));
              work_in_a_new_world(Replacement::at(
                  config, std::string(reinterpret_cast<const char*>(texts[0].data()), texts[0].size())));
              use_every_path(use, "in the old world");
              team.barrier();
              if (config.rank == 0) BEELINE_CHECK_EQ(0, replacement->exit_code());
            },
            config_of(of), 60));
  }
}

}  // namespace

}  // namespace beeline_test::lost_node_test
