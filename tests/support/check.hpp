// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks for code that runs as a rank: they throw, so that they work alike on threads and in child processes.

#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ostream.h>

namespace beeline_test {

/// A check that did not hold; its text names place and values.
struct CheckFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class A, class B>
void check_equal(const A& expected, const B& observed, std::string_view text, std::string_view file, int line) {
  if (expected == observed) return;
  throw CheckFailure(fmt::format("{}:{}: {}: expected {}, observed {}", file, line, text, expected, observed));
}

inline void check_that(bool condition, std::string_view text, std::string_view file, int line, const std::string& detail = {}) {
  if (!condition) throw CheckFailure(fmt::format("{}:{}: {} does not hold{}{}", file, line, text, detail.empty() ? "" : ": ", detail));
}

inline void check_contains(std::string_view text, std::string_view part, std::string_view file, int line) {
  if (text.find(part) != std::string_view::npos) return;
  throw CheckFailure(fmt::format("{}:{}: expected \"{}\" in \"{}\"", file, line, part, text));
}

}  // namespace beeline_test

#define BEELINE_CHECK(...) beeline_test::check_that(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define BEELINE_CHECK_EQ(expected, observed) \
  beeline_test::check_equal(expected, observed, #observed, __FILE__, __LINE__)
#define BEELINE_CHECK_CONTAINS(text, part) beeline_test::check_contains(text, part, __FILE__, __LINE__)
