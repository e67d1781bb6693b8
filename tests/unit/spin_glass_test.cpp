// SPDX-License-Identifier: Apache-2.0
// The spin glass: the rules of one site, and every method bit for bit against the serial reference on several numbers
// of ranks. Ranks are threads; a rank that dies is a process.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/command_line.hpp"
#include "measure.hpp"
#include "method.hpp"
#include "serial.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/split_nodes.hpp"

namespace spin_glass {

namespace {

using beeline::Status;
using beeline_test::check_error;

TEST(SpinGlassProblem, Sizes) {
  EXPECT_EQ(parse_sizes("8,4x6x10", 3, false), (std::vector<Size>{{8, 8, 8}, {4, 6, 10}}));
  EXPECT_EQ(parse_sizes("8", 3, true), (std::vector<Size>{{8, 8, 24}}));
  for (const char* bad : {"0", "-2", "7", "4x6", "4x6x", "4x6x8x2", "4x5x6", "4098", "8,,8", "x"})
    check_error(Status::invalid_argument, {"--size: '", "is no size", "even numbers of sites from 2 to 4096"},
                [&] { static_cast<void>(parse_sizes(bad, 1, false)); });
  check_error(Status::invalid_argument, {"--size: no lattice"}, [] { static_cast<void>(parse_sizes("", 1, false)); });
  check_error(Status::invalid_argument, {"--couplings: 'strong'; valid: plus_minus, gaussian"},
              [] { static_cast<void>(parse_couplings("strong")); });
}

/// As main.cpp declares it.
TEST(SpinGlassProblem, TheTemperatureIsWithinItsLimits) {
  for (const char* text : {"nan", "-nan", "inf", "0", "1001", "cold"}) {
    double temperature = 1;
    CLI::App app;
    app.add_option("--temperature", temperature)->check(apps::between(0.001, 1000.0));
    const std::string argument = std::string("--temperature=") + text;
    const char* arguments[] = {"spin-glass", argument.c_str()};
    EXPECT_THROW(app.parse(2, arguments), CLI::ValidationError) << text;
    EXPECT_EQ(1, temperature);
  }
}

TEST(SpinGlassProblem, EachPlaneHasOneRank) {
  for (const int ranks : {1, 2, 3, 7, 10}) {
    std::uint32_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const Slab slab = slab_of({4, 4, 10}, ranks, rank);
      EXPECT_EQ(slab.first, next);
      EXPECT_GE(slab.planes, 1u);
      next += slab.planes;
    }
    EXPECT_EQ(next, 10u);
  }
  check_error(Status::invalid_argument, {"11 ranks for 10 planes (lattice 4x4x10)", "at least one"}, [] {
    static_cast<void>(slab_of({4, 4, 10}, 11, 0));
  });
}

TEST(SpinGlassProblem, TooLargeIsRefused) {
  beeline::Config config;
  config.size = 4;
  check_error(Status::no_resource, {"a lattice of 512x512x512 on 4 ranks", "this machine has 1.0"}, [&] {
    fit(config, {{512, 512, 512}}, false, {{}, std::size_t{1} << 30});
  });
  check_error(Status::invalid_argument, {"17179869184 sites a rank; the limit is 2147483647"}, [&] {
    fit(config, {{4096, 4096, 4096}}, false, {{}, SIZE_MAX});
  });
}

TEST(SpinGlassRules, OverRelaxationKeepsEnergyAndLengthAndIsItsOwnInverse) {
  for (std::uint64_t site = 0; site < 1000; ++site) {
    const Spin spin = initial_spin(site), field = scaled(3, initial_spin(site + 5000));
    EXPECT_NEAR(dot(spin, spin), 1, 1e-6);
    const Spin after = over_relaxed(spin, field), again = over_relaxed(after, field);
    EXPECT_NEAR(dot(after, after), 1, 1e-5);
    EXPECT_NEAR(dot(after, field), dot(spin, field), 1e-5);
    EXPECT_NEAR(again.x, spin.x, 1e-5);
  }
  const Spin alone = over_relaxed({0, 1, 0}, {0, 0, 0});
  EXPECT_EQ(alone.y, 1);
}

TEST(SpinGlassRules, ElementaryFunctions) {
  for (double value = 1e-9; value < 600; value *= 1.7)
    EXPECT_NEAR(detail::negative_exponential(value) / std::exp(-value), 1, 1e-10) << value;
  for (double value = 1; value > 1e-300; value /= 3.1)
    EXPECT_NEAR(detail::logarithm(value), std::log(value), 1e-11 * (1 - std::log(value))) << value;
}

TEST(SpinGlassRules, AHeatBathHasTheMeanOfEquilibrium) {
  // The mean projection on the field is the Langevin function of a = |h| / T.
  for (const double temperature : {0.2, 1.0, 5.0}) {
    const Spin field{0, 0, 2};
    const double a = 2 / temperature;
    double sum = 0;
    constexpr int count = 40'000;
    for (std::uint64_t i = 0; i < count; ++i) {
      const Spin spin = heat_bath({1, 0, 0}, field, temperature, 2 * random_bits(i, 7));
      ASSERT_NEAR(dot(spin, spin), 1, 1e-5);
      sum += static_cast<double>(spin.z);
    }
    EXPECT_NEAR(sum / count, 1 / std::tanh(a) - 1 / a, 0.01) << temperature;
  }
}

TEST(SpinGlassRules, CouplingsHaveVarianceOne) {
  for (const Couplings kind : {Couplings::plus_minus, Couplings::gaussian}) {
    double sum = 0, squares = 0;
    constexpr int count = 30'000;
    for (std::uint64_t site = 0; site < count; ++site) {
      const auto one = static_cast<double>(coupling(kind, site, site % 3));
      sum += one, squares += one * one;
    }
    EXPECT_NEAR(sum / count, 0, 0.03);
    EXPECT_NEAR(squares / count, 1, 0.03);
  }
}

/// A grid of a GPU whose blocks and threads run one after the other: sites of one colour do not read each other.
struct OneThreadOfGrid {
  std::uint32_t number, count, thread;
  [[nodiscard]] std::uint32_t block_rank() const { return number; }
  [[nodiscard]] std::uint32_t blocks() const { return count; }
  [[nodiscard]] const OneThreadOfGrid& block() const { return *this; }
  [[nodiscard]] std::uint32_t thread_rank() const { return thread; }
  [[nodiscard]] static std::uint32_t size() { return 1; }
};

/// A slab, its halos filled with numbers that differ, of a lattice that goes on beyond its last plane.
struct Slabs {
  explicit Slabs(std::uint32_t half_x, std::uint32_t y, std::uint32_t planes) {
    const std::size_t plane = std::size_t{components} * half_x * y;
    for (unsigned colour = 0; colour < colours; ++colour) {
      for (std::size_t i = 0; i < (planes + 2) * plane; ++i) spins[colour].push_back(initial_spin(7 * i + colour).x);
      for (std::size_t i = 0; i < (planes + 1) * plane; ++i)
        couplings[colour].push_back(initial_spin(5 * i + colour).y);
    }
    lattice = {half_x,
               y,
               planes,
               3,
               planes + 3,
               {spins[0].data(), spins[1].data()},
               {couplings[0].data(), couplings[1].data()}};
  }
  std::vector<float> spins[colours], couplings[colours];
  Lattice lattice{};
};

TEST(SpinGlassUpdate, RectanglesOfAGpuHaveTheBitsOfRows) {
  struct Shape {
    std::uint32_t half_x, y, planes, blocks;
  };
  for (const Shape& shape : {Shape{1, 2, 1, 3}, Shape{33, 9, 9, 1}, Shape{64, 8, 6, 4}, Shape{5, 20, 7, 100}})
    for (const bool bulk : {true, false})
      for (const bool is_heat_bath : {true, false}) {
        Slabs rows(shape.half_x, shape.y, shape.planes), tiles(shape.half_x, shape.y, shape.planes);
        const Planes planes =
            bulk ? Planes{1, shape.planes, 1} : Planes{1, shape.planes > 1 ? 2u : 1u, shape.planes - 1};
        const Rule rule{is_heat_bath, 3, 0.5};
        for (unsigned colour = 0; colour < colours; ++colour) {
          update_planes(OneThreadOfGrid{0, 1, 0}, rows.lattice, colour, planes, rule);
          for (std::uint32_t block = 0; block < shape.blocks; ++block)
            for (std::uint32_t thread = 0; thread < block_threads; ++thread)
              update_tiles(OneThreadOfGrid{block, shape.blocks, thread}, tiles.lattice, colour, planes, rule);
          EXPECT_EQ(rows.spins[colour], tiles.spins[colour])
              << shape.half_x << "x" << shape.y << "x" << shape.planes << ", colour " << colour;
        }
      }
}

struct MethodCase {
  int ranks, host_threads;
  Size size;
  Model model;
  const char* device = "cpu";
  int nodes = 1;
};
std::ostream& operator<<(std::ostream& out, const MethodCase& c) {
  return out << c.ranks << " ranks of " << c.host_threads << " threads on " << c.device << ", " << c.size.x << "x"
             << c.size.y << "x" << c.size.z << ", " << c.nodes << " nodes";
}

class SpinGlassMethods : public testing::TestWithParam<MethodCase> {};

void run_methods(beeline::World& world, const MethodCase& c) {
  Domain domain(world, c.size, c.model);
  for (const MethodInfo& info : methods()) {
    const std::unique_ptr<Method> method = info.make(domain);
    Serial reference(c.size, c.model);
    domain.reset();
    for (const int sweeps : {1, 4, 2}) {
      method->run(sweeps, true);
      reference.advance(sweeps);
      const std::vector<float> field = domain.gather();
      if (world.rank() == 0) {
        EXPECT_EQ(field, reference.field()) << info.name << ", " << sweeps << " sweeps";
      }
    }
    domain.reset();
    method->run(2, false);  // must not hang, nor break the next run
  }
}

TEST_P(SpinGlassMethods, HaveTheReferencesBits) {
  const MethodCase& c = GetParam();
  if (const std::string why = beeline_test::missing_gpus(c.device, c.ranks); !why.empty()) GTEST_SKIP() << why;
  beeline::Config config = beeline_test::test_config();
  config.device = c.device, config.host_threads = c.host_threads, config.split_nodes = c.nodes;
  if (c.nodes > 1) {
    SKIP_WITHOUT_UCX();
    config.transports = "ucx";
  }
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      beeline_test::WorldKind::threads, c.ranks, [&](beeline::World& world) { run_methods(world, c); }, config));
}

constexpr Model gauss_with_heat{Couplings::gaussian, 3, 0.7};
INSTANTIATE_TEST_SUITE_P(Host, SpinGlassMethods,
                         testing::Values(MethodCase{1, 1, {4, 6, 8}, {}}, MethodCase{2, 1, {2, 2, 2}, {}},
                                         MethodCase{2, 2, {8, 4, 6}, gauss_with_heat},
                                         MethodCase{3, 1, {6, 4, 8}, gauss_with_heat},
                                         MethodCase{4, 1, {4, 2, 4}, {}}));
INSTANTIATE_TEST_SUITE_P(Nodes, SpinGlassMethods,
                         testing::Values(MethodCase{3, 1, {6, 4, 8}, gauss_with_heat, "cpu", 2}));
INSTANTIATE_TEST_SUITE_P(Gpu, SpinGlassMethods,
                         testing::Values(MethodCase{1, 1, {64, 32, 16}, gauss_with_heat, "auto"},
                                         MethodCase{2, 1, {64, 32, 16}, gauss_with_heat, "auto"},
                                         MethodCase{4, 1, {130, 50, 6}, {}, "auto"},
                                         MethodCase{3, 1, {18, 6, 4}, gauss_with_heat, "cuda:0"}));

TEST(SpinGlassDomain, EnergyAndLengthStayForAnyNumberOfRanks) {
  double energy[3];
  for (const int ranks : {1, 2}) {
    beeline_test::expect_passed_on_cpus(ranks, [&](beeline::World& world) {
      Domain domain(world, {4, 4, 8}, {});
      const std::unique_ptr<Method> method = device().make(domain);
      const Totals before = domain.totals();
      constexpr int sweeps = beeline_test::under_thread_sanitizer ? 500 : 10'000;
      method->run(sweeps, true);
      const Totals after = domain.totals();
      EXPECT_NEAR(after.energy, before.energy, tolerance(sweeps));
      EXPECT_LE(after.length_error, tolerance(sweeps));
      if (world.rank() == 0) energy[ranks] = after.energy;
    });
  }
  EXPECT_EQ(energy[1], energy[2]);
}

TEST(SpinGlassDomain, HeatBathsCool) {
  beeline_test::expect_passed_on_cpus(2, [&](beeline::World& world) {
    Domain domain(world, {8, 8, 8}, {Couplings::plus_minus, 2, 0.2});
    const std::unique_ptr<Method> method = both().make(domain);
    EXPECT_NEAR(domain.totals().energy, 0, 0.2);  // random spins
    method->run(40, true);
    const Totals after = domain.totals();
    EXPECT_LT(after.energy, -1);
    EXPECT_LE(after.length_error, tolerance(40));
  });
}

/// What rank 0 hears of a method whose other rank does `other` in place of its part.
std::string error_beside(const MethodInfo& info, beeline_test::WorldKind kind, std::int64_t deadline_ns,
                         void (*other)(beeline::World&), int nodes = 1) {
  beeline::Config config = beeline_test::test_config();
  config.deadline_ns = deadline_ns;
  if (nodes > 1) config.device = "cpu", config.split_nodes = nodes, config.transports = "sockets";
  const auto outcomes = beeline_test::run_ranks(
      kind, 2,
      [&](beeline::World& world) {
        Domain domain(world, {4, 4, 4}, {});
        const std::unique_ptr<Method> method = info.make(domain);
        if (world.rank() == 1) return other(world);
        for (;;) method->run(2, true);
      },
      config, 60);
  return outcomes.front().failure;
}

TEST(SpinGlassFaults, ADeadlineNamesTheRankThatIsMissing) {
  for (const MethodInfo& info : methods()) {
    const std::string error =
        error_beside(info, beeline_test::WorldKind::threads, 300'000'000, [](beeline::World& world) {
          while (!world.failed()) usleep(1000);
        });
    EXPECT_NE(error.find("rank 1"), std::string::npos) << info.name << ": " << error;
    EXPECT_NE(error.find("deadline"), std::string::npos) << info.name << ": " << error;
  }
}

TEST(SpinGlassFaults, ADeadRankOfAnotherNodeIsNamed) {
  SKIP_WITHOUT("sockets");
  const std::string error = error_beside(
      device(), beeline_test::WorldKind::processes, 10'000'000'000, [](beeline::World&) { _exit(3); }, 2);
  EXPECT_NE(error.find("rank 1"), std::string::npos) << error;
}

TEST(SpinGlassFaults, ADeadRankIsNamed) {
  for (const MethodInfo& info : {both(), device()}) {
    const std::string error =
        error_beside(info, beeline_test::WorldKind::processes, 10'000'000'000, [](beeline::World&) { _exit(3); });
    EXPECT_NE(error.find("rank 1"), std::string::npos) << info.name << ": " << error;
  }
}

}  // namespace

}  // namespace spin_glass
