// SPDX-License-Identifier: Apache-2.0
/// @file
/// The contract of Bootstrap, over each implementation.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <tuple>

#include "bootstrap_worlds.hpp"
#include "runtime/rendezvous_protocol.hpp"
#include "runtime/tcp_bootstrap.hpp"
#include "tests/support/ranks.hpp"

namespace beeline::tests {

namespace {

struct World {
  std::string name;
  void (*run)(int size, const Body& body);
  friend void PrintTo(const World& world, std::ostream* out) { *out << world.name; }
};

std::vector<std::byte> pattern(int rank, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(rank) + 1);
  return data;
}

class AnyBootstrap : public ::testing::TestWithParam<std::tuple<World, int>> {
 protected:
  void run(const Body& body) const { std::get<0>(GetParam()).run(size(), body); }
  [[nodiscard]] int size() const { return std::get<1>(GetParam()); }
};

std::string case_name(const ::testing::TestParamInfo<AnyBootstrap::ParamType>& info) {
  return std::get<0>(info.param).name + "_" + std::to_string(std::get<1>(info.param));
}

const auto worlds = ::testing::Values(World{"memory", run_in_memory}, World{"tcp", run_over_tcp});

TEST_P(AnyBootstrap, KnowsRankAndSize) {
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(size()));
  run([&](Bootstrap& bootstrap) {
    EXPECT_EQ(bootstrap.size(), size());
    ++seen[static_cast<std::size_t>(bootstrap.rank())];
    bootstrap.barrier(generous_ns);
  });
  for (const auto& count : seen) EXPECT_EQ(count, 1);
}

TEST_P(AnyBootstrap, AllgatherGivesEveryonesBytesByRank) {
  run([](Bootstrap& bootstrap) {
    for (const std::size_t bytes : {0, 1, 100, 5000}) {
      const auto size_of = [&](int rank) { return bytes == 0 ? 0 : bytes + static_cast<std::size_t>(rank); };
      const auto all = bootstrap.allgather(pattern(bootstrap.rank(), size_of(bootstrap.rank())), generous_ns);
      ASSERT_EQ(all.size(), static_cast<std::size_t>(bootstrap.size()));
      for (int rank = 0; rank < bootstrap.size(); ++rank)
        EXPECT_EQ(all[static_cast<std::size_t>(rank)], pattern(rank, size_of(rank))) << bytes << " bytes";
    }
  });
}

TEST_P(AnyBootstrap, AllgatherTakesAMegabyteFromOneRankAndNothingFromOthers) {
  run([](Bootstrap& bootstrap) {
    const int giver = bootstrap.size() - 1;
    constexpr std::size_t bytes = std::size_t{1} << 20;
    const auto all = bootstrap.allgather(pattern(giver, bootstrap.rank() == giver ? bytes : 0), generous_ns);
    for (int rank = 0; rank < giver; ++rank) EXPECT_TRUE(all[static_cast<std::size_t>(rank)].empty());
    EXPECT_EQ(all.back(), pattern(giver, bytes));
  });
}

TEST_P(AnyBootstrap, DescriptorsReferToTheOwnersFiles) {
  if (!allow_open_files(static_cast<rlim_t>(size() * size() + 1000))) GTEST_SKIP() << "too few files may be open";
  run([](Bootstrap& bootstrap) {
    const auto rank = static_cast<std::size_t>(bootstrap.rank()), size = static_cast<std::size_t>(bootstrap.size());
    FileDescriptor mine(::memfd_create("beeline-test", MFD_CLOEXEC));
    ASSERT_TRUE(mine);
    ASSERT_EQ(::ftruncate(mine.get(), static_cast<off_t>(size)), 0);
    std::vector<FileDescriptor> all = bootstrap.exchange_descriptors(mine.get(), generous_ns);
    ASSERT_EQ(all.size(), size);
    // Every rank writes into every rank's file: the bytes in its own file came through the others' descriptors.
    for (std::size_t peer = 0; peer < size; ++peer) {
      const auto value = static_cast<unsigned char>(rank * 3 + peer);
      EXPECT_EQ(::pwrite(all[peer].get(), &value, 1, static_cast<off_t>(rank)), 1);
    }
    bootstrap.barrier(generous_ns);
    std::vector<unsigned char> content(size);
    EXPECT_EQ(::pread(mine.get(), content.data(), size, 0), static_cast<ssize_t>(size));
    for (std::size_t peer = 0; peer < size; ++peer)
      EXPECT_EQ(content[peer], static_cast<unsigned char>(peer * 3 + rank));
    EXPECT_NE(all[rank].get(), mine.get()) << "the own entry is a duplicate";
  });
}

// ThreadSanitizer would take long for 64 threads, which do the same as nine.
constexpr int most = beeline_test::under_thread_sanitizer ? 9 : 64;
INSTANTIATE_TEST_SUITE_P(Ranks, AnyBootstrap, ::testing::Combine(worlds, ::testing::Values(1, 2, 5, most)), case_name);

class ThreeRanks : public AnyBootstrap {};

TEST_P(ThreeRanks, DescriptorsMayBeMissingAndTheCallRepeated) {
  run([](Bootstrap& bootstrap) {
    for (int round = 0; round < 3; ++round) {
      const FileDescriptor file(bootstrap.rank() == round ? ::memfd_create("beeline-test", MFD_CLOEXEC) : -1);
      const auto all = bootstrap.exchange_descriptors(file.get(), generous_ns);
      for (int rank = 0; rank < 3; ++rank)
        EXPECT_EQ(static_cast<bool>(all[static_cast<std::size_t>(rank)]), rank == round);
    }
  });
}

/// The deadline of the first of the two ranks that call ends the calls of both: so their time begins before the
/// barrier.
TEST_P(ThreeRanks, AMissingRankIsNamedAtTheDeadline) {
  constexpr std::int64_t deadline_ns = 600'000'000;
  std::promise<void> over;
  std::atomic<int> failed{0};
  run([&, end = over.get_future().share()](Bootstrap& bootstrap) {
    const Stopwatch stopwatch;
    bootstrap.barrier(generous_ns);
    if (bootstrap.rank() == 1) return end.wait();
    const Error error = error_of([&] { (void)bootstrap.exchange_descriptors(-1, deadline_ns); });
    stopwatch.expect_deadline(deadline_ns);
    EXPECT_EQ(error.code(), Status::deadline);
    EXPECT_EQ(error.rank(), bootstrap.rank());
    EXPECT_TRUE(mentions(error, "rank 1 joined, but did not make this call")) << error.what();
    if (++failed == 2) over.set_value();
  });
}

TEST_P(ThreeRanks, AnAbortFreesTheOthersAndTellsThem) {
  std::atomic<int> told{0};
  std::promise<void> over;
  run([&, end = over.get_future().share()](Bootstrap& bootstrap) {
    bootstrap.on_abort([&, rank = bootstrap.rank()](int culprit, const std::string& reason) {
      EXPECT_NE(rank, 2) << "who aborts knows";
      EXPECT_EQ(culprit, 2);
      EXPECT_NE(reason.find("too cold"), std::string::npos) << reason;
      if (++told == 2) over.set_value();
    });
    if (bootstrap.rank() == 2) bootstrap.abort("too cold");
    for (int call = 0; call < 2; ++call) {
      const Error error = error_of([&] { bootstrap.barrier(generous_ns); });
      EXPECT_EQ(error.code(), Status::aborted);
      EXPECT_TRUE(mentions(error, "rank 2 aborted: too cold")) << error.what();
    }
    end.wait();
  });
  EXPECT_EQ(told, 2);
}

TEST_P(ThreeRanks, AHandlerThatComesLateIsCalledAtOnce) {
  run([](Bootstrap& bootstrap) {
    if (bootstrap.rank() == 0) bootstrap.abort("early");
    (void)error_of([&] { bootstrap.barrier(generous_ns); });
    int calls = 0;
    bootstrap.on_abort([&](int culprit, const std::string&) { calls += culprit == 0 ? 1 : 100; });
    EXPECT_EQ(calls, bootstrap.rank() == 0 ? 0 : 1);
    bootstrap.on_abort(nullptr);
  });
}

TEST_P(ThreeRanks, ARoundThatIsCompleteSucceedsOnEveryRankWhateverFollows) {
  for (int world = 0; world < 30; ++world)
    run([](Bootstrap& bootstrap) {
      bootstrap.barrier(generous_ns);
      if (bootstrap.rank() == 0) bootstrap.abort("at once");
    });
}

TEST_P(ThreeRanks, ARankThatLeavesIsNamedToThoseThatWait) {
  run([](Bootstrap& bootstrap) {
    bootstrap.barrier(generous_ns);
    if (bootstrap.rank() == 0) return;
    const Error error = error_of([&] { bootstrap.barrier(generous_ns); });
    EXPECT_EQ(error.code(), Status::peer_died);
    EXPECT_TRUE(mentions(error, "rank 0")) << error.what();
  });
}

/// Checks allgather and descriptors among the remaining ranks; the entries of the others are empty.
void expect_to_go_on(Bootstrap& bootstrap, const std::vector<int>& left) {
  const auto is_left = [&](int rank) { return std::find(left.begin(), left.end(), rank) != left.end(); };
  const auto all = bootstrap.allgather(pattern(bootstrap.rank(), 100), generous_ns);
  const FileDescriptor file(::memfd_create("beeline-test", MFD_CLOEXEC));
  const auto files = bootstrap.exchange_descriptors(file.get(), generous_ns);
  ASSERT_EQ(all.size(), static_cast<std::size_t>(bootstrap.size()));
  ASSERT_EQ(files.size(), all.size());
  for (int rank = 0; rank < bootstrap.size(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    EXPECT_EQ(all[index], is_left(rank) ? pattern(rank, 100) : std::vector<std::byte>());
    EXPECT_EQ(static_cast<bool>(files[index]), is_left(rank));
  }
  bootstrap.barrier(generous_ns);
}

TEST_P(ThreeRanks, TheSurvivorsOfAnAbortAgreeAndGoOn) {
  run([](Bootstrap& bootstrap) {
    (void)bootstrap.exchange_descriptors(-1, generous_ns);  // over rank 0, which leaves later
    bootstrap.barrier(generous_ns);
    if (bootstrap.rank() == 0) {
      bootstrap.abort("too cold");
      const Error error = error_of([&] { (void)bootstrap.agree_on_survivors(generous_ns); });
      EXPECT_EQ(error.code(), Status::aborted);
      EXPECT_TRUE(mentions(error, "rank 0 is not among those that are left: rank 0 aborted: too cold")) << error.what();
      return;
    }
    EXPECT_TRUE(mentions(error_of([&] { bootstrap.barrier(generous_ns); }), "too cold"));
    EXPECT_EQ(bootstrap.agree_on_survivors(generous_ns), (std::vector<int>{1, 2}));
    expect_to_go_on(bootstrap, {1, 2});
    const std::vector<RankHealth> health = bootstrap.health();
    EXPECT_EQ(health[0].state, RankState::failed);
    EXPECT_EQ(health[0].noticed_by, 0);
    EXPECT_EQ(health[0].reason, "rank 0 aborted: too cold");
    EXPECT_EQ(health[1].state, RankState::healthy);
    EXPECT_EQ(health[2].state, RankState::healthy);
    bootstrap.barrier(generous_ns);
  });
}

TEST_P(ThreeRanks, ARankThatDoesNotAnswerCountsAsFailed) {
  std::promise<void> over;
  std::atomic<int> agreed{0};
  run([&, end = over.get_future().share()](Bootstrap& bootstrap) {
    constexpr std::int64_t deadline_ns = 600'000'000;
    const Stopwatch stopwatch;  // as above
    bootstrap.barrier(generous_ns);
    if (bootstrap.rank() == 1) {
      end.wait();
      for (int call = 0; call < 2; ++call) {
        const Error error = error_of([&] {
          call == 0 ? bootstrap.barrier(generous_ns) : static_cast<void>(bootstrap.agree_on_survivors(generous_ns));
        });
        EXPECT_TRUE(mentions(error, "rank 1 did not answer rank ")) << error.what();
      }
      return;
    }
    EXPECT_EQ(bootstrap.agree_on_survivors(deadline_ns), (std::vector<int>{0, 2}));
    stopwatch.expect_deadline(deadline_ns);
    EXPECT_NE(bootstrap.health()[1].noticed_by, -1);
    EXPECT_NE(bootstrap.health()[1].noticed_by, 1);
    expect_to_go_on(bootstrap, {0, 2});
    if (++agreed == 2) over.set_value();
  });
}

TEST_P(ThreeRanks, WhoWaitsInAnAllgatherIsToldToAsk) {
  run([](Bootstrap& bootstrap) {
    for (int round = 0; round < 3; ++round) {
      bootstrap.barrier(generous_ns);
      if (bootstrap.rank() == round) {
        const Error error = error_of([&] { bootstrap.barrier(generous_ns); });
        EXPECT_EQ(error.code(), Status::aborted);
        EXPECT_TRUE(mentions(error, "asks who is left")) << error.what();
      }
      EXPECT_EQ(bootstrap.agree_on_survivors(generous_ns), (std::vector<int>{0, 1, 2}));
    }
    expect_to_go_on(bootstrap, {0, 1, 2});
  });
}

TEST_P(ThreeRanks, ARankThatLeavesIsSeenAndNotWaitedFor) {
  run([](Bootstrap& bootstrap) {
    bootstrap.barrier(generous_ns);
    if (bootstrap.rank() == 1) return;
    while (bootstrap.health()[1].state == RankState::healthy) std::this_thread::yield();
    EXPECT_EQ(bootstrap.health()[1].state, RankState::left);
    EXPECT_EQ(bootstrap.agree_on_survivors(generous_ns), (std::vector<int>{0, 2}));
    expect_to_go_on(bootstrap, {0, 2});
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ThreeRanks, ::testing::Combine(worlds, ::testing::Values(3)), case_name);

class FiveRanks : public AnyBootstrap {};

TEST_P(FiveRanks, FailuresMayFollowEachOther) {
  for (int repetition = 0; repetition < 10; ++repetition)
    run([](Bootstrap& bootstrap) {
      std::atomic<int> told{0};
      bootstrap.on_abort([&](int, const std::string&) { ++told; });
      for (int victim = 0; victim < 4; ++victim) {
        if (bootstrap.rank() == victim) return bootstrap.abort("in its turn");
        (void)error_of([&] { bootstrap.barrier(generous_ns); });
        std::vector<int> left;
        for (int rank = victim + 1; rank < 5; ++rank) left.push_back(rank);
        EXPECT_EQ(bootstrap.agree_on_survivors(generous_ns), left);
        EXPECT_EQ(told, victim + 1);
        expect_to_go_on(bootstrap, left);
      }
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, FiveRanks, ::testing::Combine(worlds, ::testing::Values(5)), case_name);

TEST(SingleBootstrap, IsAWorldOfOne) {
  const auto bootstrap = make_single_bootstrap();
  EXPECT_EQ(bootstrap->rank(), 0);
  EXPECT_EQ(bootstrap->size(), 1);
  EXPECT_EQ(bootstrap->allgather(pattern(0, 10), 0).front(), pattern(0, 10));
  EXPECT_FALSE(bootstrap->exchange_descriptors(-1, 0).front());
}

TEST(ThreadBootstraps, RefuseSizesThatNoWorldHas) {
  for (const int size : {-1, 0, 1025})
    EXPECT_EQ(error_of([&] { (void)make_thread_bootstraps(size); }).code(), Status::invalid_argument);
}

/// A rendezvous server that welcomes rank 0 and answers its request for the survivors late.
void answer_late(int listener, std::chrono::milliseconds late) {
  pollfd visit{listener, POLLIN, 0};
  ASSERT_EQ(1, ::poll(&visit, 1, 10'000));
  const FileDescriptor rank(::accept(listener, nullptr, nullptr));
  const auto read_header = [&rank](detail::FrameHeader& header) {
    EXPECT_EQ(static_cast<ssize_t>(sizeof header), ::recv(rank.get(), &header, sizeof header, MSG_WAITALL));
    std::vector<std::byte> payload(header.bytes);
    if (!payload.empty()) static_cast<void>(::recv(rank.get(), payload.data(), payload.size(), MSG_WAITALL));
  };
  const auto say = [&rank](const detail::EncodedFrame& frame) {
    EXPECT_EQ(static_cast<ssize_t>(frame->size()), ::send(rank.get(), frame->data(), frame->size(), MSG_NOSIGNAL));
  };
  detail::FrameHeader hello, asked, goodbye;
  read_header(hello);
  say(detail::encode({.type = detail::FrameType::welcome}));
  read_header(asked);
  std::this_thread::sleep_for(late);
  const std::int32_t survivor = 0;
  say(detail::encode({.type = detail::FrameType::agreed, .sequence = asked.sequence}, &survivor, sizeof survivor));
  read_header(goodbye);  // a connection that closes before would be the server's end
}

/// A server whose cores are busy when the deadline passes loses no rank.
TEST(AgreementOnSurvivors, WaitsForAnAnswerThatIsLate) {
  const FileDescriptor listener = detail::listen_tcp("127.0.0.1");
  const std::jthread server([&listener] { answer_late(listener.get(), std::chrono::milliseconds(500)); });
  Config config;
  config.rank = 0, config.size = 2, config.token = "token", config.deadline_ns = generous_ns;
  config.rendezvous = detail::local_endpoint(listener.get());
  const std::unique_ptr<Bootstrap> rank = detail::connect_bootstrap(config, detail::Deadline(generous_ns));
  EXPECT_EQ(rank->agree_on_survivors(100'000'000), std::vector<int>{0});
}

}  // namespace

}  // namespace beeline::tests
