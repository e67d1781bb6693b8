// SPDX-License-Identifier: Apache-2.0
// The merge sort application: its parts, its pivots, and every method against std::sort, on host devices.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "merge_sort/method.hpp"
#include "tests/support/errors.hpp"

namespace merge_sort {

namespace {

using beeline::Status;
using beeline_test::check_error;

apps::Devices host_devices(int count) {
  beeline::Config config;
  config.device = "cpu", config.threads = true, config.size = count;
  return apps::devices_for(config);
}

TEST(MergeSortProblem, WhatCannotBeIsRefused) {
  EXPECT_EQ(parse_keys("1,7K,2M"), (std::vector<std::size_t>{1, 7 << 10, 2 << 20}));
  for (const char* bad : {"0", "-1", "K", "1,,2", "65G", "1.5"})
    check_error(Status::invalid_argument, {"--keys: '", "is no number of keys; valid: 1 to 64G"},
                [&] { static_cast<void>(parse_keys(bad)); });
  check_error(Status::invalid_argument, {"--keys: no number"}, [] { static_cast<void>(parse_keys("")); });
  check_error(Status::invalid_argument, {"4 devices for 3 keys", "at least one"}, [] {
    check(host_devices(4), {4, 3}, true);
  });
  check_error(Status::invalid_argument, {"17 devices", "16 at most"}, [] { check(host_devices(17), {400}, true); });
  check_error(Status::no_resource, {"a sort of 68719476736 keys on 2 devices"},
              [] { check(host_devices(2), {std::size_t{64} << 30}, true); });
}

TEST(MergeSortProblem, TheCheckFindsWrongResults) {
  const Problem problem{1000, 64, 5};
  std::vector<Key> keys;
  for (std::size_t index = 0; index < problem.keys; ++index) keys.push_back(initial_key(problem, index));
  EXPECT_FALSE(check_keys(keys).in_order);
  EXPECT_EQ(check_keys(keys).contents, contents_of(problem, 3));
  std::ranges::sort(keys);
  EXPECT_TRUE(check_keys(keys).in_order);
  EXPECT_EQ(check_keys(keys).contents, contents_of(problem, 1));
  keys[10] = keys[11];  // still in order, but one key is there twice and one is gone
  EXPECT_TRUE(check_keys(keys).in_order);
  EXPECT_NE(check_keys(keys).contents, contents_of(problem, 1));
}

/// Every pivot of two sequences of several parts, by its definition: a stable merge.
TEST(MergeSortPivot, IsThatOfAStableMerge) {
  const std::vector<Key> first{1, 1, 4}, second{4, 9}, third{0, 1, 4, 4}, fourth{9};
  const Sequence left{{first.data(), second.data()}, {0, 3, 5}, 2}, right{{third.data(), fourth.data()}, {0, 4, 5}, 2};
  const std::vector<bool> is_left{false, true, true, false, true, true, false, false, true, false};
  std::size_t from_left = 0;
  for (std::size_t position = 0; position <= is_left.size(); ++position) {
    EXPECT_EQ(pivot(left, right, position, [](const Key* key) { return *key; }), from_left) << position;
    if (position < is_left.size() && is_left[position]) ++from_left;
  }
}

void expect_sorted(std::size_t keys, unsigned bits, int count) {
  const Setup setup{host_devices(count), {keys, bits, 3}};
  std::vector<Key> expected;
  for (std::size_t index = 0; index < keys; ++index) expected.push_back(initial_key(setup.problem, index));
  std::ranges::sort(expected);
  for (const MethodInfo& info : methods()) {
    const std::unique_ptr<Method> method = info.make(setup);
    for (int repeat = 0; repeat < 2; ++repeat) {
      method->reset();
      static_cast<void>(method->sort());
      EXPECT_EQ(method->gather(), expected) << info.name << ": " << keys << " keys of " << bits << " bits on " << count;
    }
  }
}

TEST(MergeSortMethods, SortAsTheStandardLibraryDoes) {
  for (const int count : {1, 2, 3, 4, 7})
    for (const unsigned bits : {2u, 64u})
      for (const std::size_t keys : {17u, 4099u}) expect_sorted(keys, bits, count);
  expect_sorted(16, 64, 16);
}

}  // namespace

}  // namespace merge_sort
