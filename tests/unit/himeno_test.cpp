// SPDX-License-Identifier: Apache-2.0
// The Himeno application: its serial reference compared with the official loop nest, and every method compared with the
// reference, bit for bit, on several numbers of ranks. Ranks are threads.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "beeline/core/error.hpp"
#include "bound_share.hpp"
#include "common/copy_bandwidth.hpp"
#include "method.hpp"
#include "serial.hpp"
#include "tests/support/ranks.hpp"
#include "tests/unit/himeno_methods_case.hpp"
#include "verify.hpp"

namespace himeno {

namespace {

using beeline_test::WorldKind;

TEST(HimenoProblem, SizesAreNamedOrSpelledOut) {
  EXPECT_EQ(parse_size("XS"), (Size{32, 32, 64}));
  EXPECT_EQ(parse_size("L"), (Size{256, 256, 512}));
  EXPECT_EQ(parse_size("l"), (Size{256, 256, 512}));
  EXPECT_EQ(parse_size("5x7x9"), (Size{5, 7, 9}));
  EXPECT_EQ(parse_size("5x7x9", 4), (Size{5, 7, 36}));
  EXPECT_THROW(static_cast<void>(parse_size("3x3x20000", 2)), beeline::Error);
  EXPECT_DOUBLE_EQ(parse_size("M").flop(), 137.105136e6);  // seed 000, table 4.2: 137.1
  for (const char* bad : {"", "XXL", "5x7", "5x7x", "5x7x9x", "5x7x2", "5x7x-9", "5x7x99999", "5 x7x9"})
    EXPECT_THROW(static_cast<void>(parse_size(bad)), beeline::Error) << bad;
}

TEST(HimenoProblem, SlabsCoverTheInteriorOnce) {
  for (int z = 3; z < 40; ++z)
    for (int ranks = 1; ranks <= z - 2; ++ranks) {
      int next = 1, fewest = z, most = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Slab slab = slab_of({5, 5, z}, ranks, rank);
        EXPECT_EQ(slab.first, next);
        next += slab.planes;
        fewest = std::min(fewest, slab.planes), most = std::max(most, slab.planes);
      }
      EXPECT_EQ(next, z - 1);
      EXPECT_GE(fewest, 1);
      EXPECT_LE(most - fewest, 1);
    }
}

TEST(HimenoProblem, MoreRanksThanPlanesAreRefused) {
  try {
    static_cast<void>(slab_of({5, 7, 9}, 8, 0));
    FAIL() << "accepted";
  } catch (const beeline::Error& error) {
    EXPECT_EQ(error.code(), beeline::Status::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("8 ranks for 7 interior planes"), std::string::npos) << error.what();
  }
}

/// An array in the official program's layout: [i][j][k], k contiguous.
class OfficialArray {
 public:
  OfficialArray(const Size& size, Data data, Array array)
      : j_(static_cast<std::size_t>(size.y)), k_(static_cast<std::size_t>(size.z)), values_(size.points()) {
    for (int i = 0; i < size.x; ++i)
      for (int j = 0; j < size.y; ++j)
        for (int k = 0; k < size.z; ++k) (*this)(i, j, k) = initial_value(data, size, array, i, j, k);
  }
  float& operator()(int i, int j, int k) {
    return values_[(static_cast<std::size_t>(i) * j_ + static_cast<std::size_t>(j)) * k_ + static_cast<std::size_t>(k)];
  }

 private:
  std::size_t j_, k_;
  std::vector<float> values_;
};

struct OfficialResult {
  OfficialArray p;
  float gosa;
};

/// Jacobi iterations as written in the official C program.
OfficialResult official_jacobi(const Size& size, Data data, int iterations) {
  const auto array = [&](Array which) { return OfficialArray(size, data, which); };
  OfficialArray a0 = array(Array::a0), a1 = array(Array::a1), a2 = array(Array::a2), a3 = array(Array::a3);
  OfficialArray b0 = array(Array::b0), b1 = array(Array::b1), b2 = array(Array::b2);
  OfficialArray c0 = array(Array::c0), c1 = array(Array::c1), c2 = array(Array::c2);
  OfficialArray bnd = array(Array::bnd), wrk1 = array(Array::wrk1), p = array(Array::p), wrk2 = p;
  float gosa = 0;
  for (int n = 0; n < iterations; ++n) {
    gosa = 0;
    for (int i = 1; i < size.x - 1; ++i)
      for (int j = 1; j < size.y - 1; ++j)
        for (int k = 1; k < size.z - 1; ++k) {
          const float s0 =
              a0(i, j, k) * p(i + 1, j, k) + a1(i, j, k) * p(i, j + 1, k) + a2(i, j, k) * p(i, j, k + 1) +
              b0(i, j, k) * (p(i + 1, j + 1, k) - p(i + 1, j - 1, k) - p(i - 1, j + 1, k) + p(i - 1, j - 1, k)) +
              b1(i, j, k) * (p(i, j + 1, k + 1) - p(i, j - 1, k + 1) - p(i, j + 1, k - 1) + p(i, j - 1, k - 1)) +
              b2(i, j, k) * (p(i + 1, j, k + 1) - p(i - 1, j, k + 1) - p(i + 1, j, k - 1) + p(i - 1, j, k - 1)) +
              c0(i, j, k) * p(i - 1, j, k) + c1(i, j, k) * p(i, j - 1, k) + c2(i, j, k) * p(i, j, k - 1) +
              wrk1(i, j, k);
          const float ss = (s0 * a3(i, j, k) - p(i, j, k)) * bnd(i, j, k);
          gosa += ss * ss;
          wrk2(i, j, k) = p(i, j, k) + 0.8f * ss;
        }
    p = wrk2;
  }
  return {p, gosa};
}

TEST(HimenoSerial, IsTheOfficialLoopNest) {
  constexpr int iterations = 4;
  for (const Data data : {Data::official, Data::scrambled}) {
    const Size size{19, 7, 12};
    Serial serial(size, data, 1);
    serial.advance(iterations);
    OfficialResult official = official_jacobi(size, data, iterations);
    for (int z = 0; z < size.z; ++z)
      for (int y = 0; y < size.y; ++y)
        for (int x = 0; x < size.x; ++x)
          ASSERT_EQ(serial.field()[static_cast<std::size_t>((z * size.y + y) * size.x + x)], official.p(x, y, z))
              << x << ' ' << y << ' ' << z;
    EXPECT_EQ(serial.gosa_float32(), official.gosa);
    EXPECT_NEAR(serial.gosa() / official.gosa, 1, 1e-5);
  }
}

TEST(HimenoSerial, ThreadsChangeNothing) {
  Serial one({9, 6, 14}, Data::scrambled, 1), many({9, 6, 14}, Data::scrambled, 5);
  one.advance(3);
  many.advance(1);
  many.advance(2);
  EXPECT_EQ(one.field(), many.field());
  EXPECT_EQ(one.gosa(), many.gosa());
}

TEST(HimenoVerify, SeesWrongResults) {
  const Expectation expected{1, {1, 2, 3}, 4.0, 4.0f};
  EXPECT_TRUE(compare(expected, {1, 2, 3}, 4.0).good());
  EXPECT_FALSE(compare(expected, {1, 2.001f, 3}, 4.0).good());
  EXPECT_FALSE(compare(expected, {1, NAN, 3}, 4.0).good());
  EXPECT_FALSE(compare(expected, {1, 2, 3}, 4.001).good());
  EXPECT_FALSE(compare(expected, {1, 2}, 4.0).good());
  EXPECT_NE(checksum({1, 2, 3}), checksum({1, 3, 2}));
}

class HimenoMethods : public testing::TestWithParam<MethodCase> {};

TEST_P(HimenoMethods, HaveTheSameBits) {
  if (const std::string why = beeline_test::missing_gpus(GetParam().device, GetParam().ranks); !why.empty())
    GTEST_SKIP() << why;
  expect_same_bits(GetParam(), methods(), {1, 2, 5, 12});
}

INSTANTIATE_TEST_SUITE_P(Ranks, HimenoMethods,
                         testing::Values(MethodCase{{5, 7, 9}, 1, 1}, MethodCase{{5, 7, 9}, 2, 1},
                                         MethodCase{{5, 7, 9}, 3, 1}, MethodCase{{5, 7, 9}, 7, 1},
                                         MethodCase{{8, 4, 12}, 4, 2}));

// Planes too large for packets, rows that need padding.
INSTANTIATE_TEST_SUITE_P(LargePlanes, HimenoMethods,
                         testing::Values(MethodCase{{66, 65, 7}, 3, 1}, MethodCase{{66, 65, 7}, 2, 3}));

// As on GPUs: few blocks without carriers, then with carriers; tiles that end inside rows, and rows of several tiles;
// two sections of a plane.
INSTANTIATE_TEST_SUITE_P(ManyBlocks, HimenoMethods,
                         testing::Values(MethodCase{{9, 8, 10}, 2, 1, {3, 4}}, MethodCase{{9, 8, 10}, 3, 1, {9, 4}},
                                         MethodCase{{9, 8, 10}, 8, 1, {9, 5}}, MethodCase{{9, 8, 10}, 2, 1, {9, 1}},
                                         MethodCase{{9, 8, 30}, 2, 2, {10, 32}},
                                         MethodCase{{130, 128, 7}, 2, 1, {8, 256}}));

// Several ranks on one GPU; each rank on its own GPU.
INSTANTIATE_TEST_SUITE_P(Gpus, HimenoMethods,
                         testing::Values(MethodCase{{130, 128, 40}, 1, 1, {}, "cuda:0"},
                                         MethodCase{{5, 7, 9}, 3, 1, {}, "cuda:0"},
                                         MethodCase{{130, 128, 40}, 2, 1, {}, "cuda:0"},
                                         MethodCase{{66, 65, 23}, 2, 1, {}, "auto"},
                                         MethodCase{{258, 130, 41}, 4, 1, {}, "auto"}));

/// The methods of `launch_methods` that can run on these ranks.
std::vector<MethodInfo> launch_methods_on(const char* device, int ranks) {
  beeline::Config config;
  config.device = device, config.size = ranks;
  std::vector<MethodInfo> all = launch_methods();
  std::erase_if(all, [&](const MethodInfo& info) { return !info.reason(config).empty(); });
  return all;
}

TEST(HimenoLaunches, HaveTheSameBitsOnOneRank) {
  ASSERT_EQ(launch_methods_on("cpu", 1).size(), 1);
  expect_same_bits({{5, 7, 9}, 1, 1}, launch_methods_on("cpu", 1), {1, 2, 5});
  EXPECT_TRUE(launch_methods_on("cpu", 2).empty());
  if (beeline_test::missing_gpus("cuda:0", 1).empty()) {
    EXPECT_EQ(launch_methods_on("cuda:0", 1).size(), 2);
    expect_same_bits({{66, 65, 23}, 1, 1, {}, "cuda:0"}, launch_methods_on("cuda:0", 1), {1, 2, 5, 1100});
  }
}

TEST(HimenoLaunches, AreTimedUnlessTheHostWaitsInBetween) {
  beeline::Config config = himeno_config({5, 7, 9}, 1);
  config.device = "cpu";
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      WorldKind::threads, 1,
      [](beeline::World& world) {
        Domain domain(world, {5, 7, 9});
        const std::pair<MethodInfo, bool> both[] = {{launch_methods().front(), true},
                                                    {find_method(methods(), "host_staged"), false}};
        for (const auto& [info, is_timed] : both) {
          const std::unique_ptr<Method> method = info.make(domain);
          EXPECT_EQ(method->launch_seconds(), std::nullopt);
          domain.reset(Data::official);
          method->run(3, true);
          EXPECT_EQ(method->launch_seconds().has_value(), is_timed) << info.name;
          EXPECT_GT(method->launch_seconds().value_or(1), 0);
        }
      },
      config));
}

TEST(HimenoBound, IsTheCopyBandwidthAgainst56BytesAPoint) {
  EXPECT_DOUBLE_EQ(bytes_per_point, 56);
  // 1000 points, 10 times a second: 560 kB/s.
  EXPECT_DOUBLE_EQ(bound_share({12, 12, 12}, 10, 1.12e6).value(), 0.5);
  EXPECT_EQ(bound_share({12, 12, 12}, 10, std::nullopt), std::nullopt);
}

TEST(HimenoBound, CopiesAreTimedOnAllRanks) {
  for (const int host_threads : {1, 2}) {
    beeline::Config config = beeline_test::test_config();
    config.device = "cpu", config.host_threads = host_threads;
    config.heap_bytes = apps::copy_heap_bytes, config.slot_shift = 34;
    beeline_test::expect_all_passed(beeline_test::run_ranks(
        WorldKind::threads, 2,
        [&](beeline::World& world) {
          const std::optional<double> bandwidth = apps::copy_bandwidth(world);
          EXPECT_EQ(bandwidth.has_value(), host_threads == 1);  // one thread copies
          if (!bandwidth) return;
          EXPECT_GT(*bandwidth, 1e6);
          EXPECT_LT(*bandwidth, 1e13);
        },
        config));
  }
}

TEST(HimenoDomain, RefusesMoreRanksThanPlanes) {
  beeline::Config config = himeno_config({5, 7, 9}, 3);
  config.device = "cpu";
  beeline_test::expect_all_passed(beeline_test::run_ranks(
      WorldKind::threads, 3,
      [](beeline::World& world) {
        EXPECT_THROW(Domain(world, {5, 7, 4}), beeline::Error);
        world.barrier();
      },
      config));
}

}  // namespace
}  // namespace himeno
