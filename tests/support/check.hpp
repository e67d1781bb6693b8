// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks for code that runs as a rank: they throw, so that they work in threads and in child processes.

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace beeline_test {

/// A failed check; its text contains the source location and the values.
struct CheckFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Concatenates the parts. For kernel sources, in which nvcc does not compile fmt's format strings.
template <class... Parts>
[[nodiscard]] std::string join(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

template <class A, class B>
void check_equal(const A& expected, const B& observed, std::string_view text, std::string_view file, int line) {
  if (expected == observed) return;
  throw CheckFailure(join(file, ":", line, ": ", text, ": expected ", expected, ", observed ", observed));
}

inline void check_that(bool condition, std::string_view text, std::string_view file, int line) {
  if (!condition) throw CheckFailure(join(file, ":", line, ": ", text, " does not hold"));
}

inline void check_contains(std::string_view text, std::string_view part, std::string_view file, int line) {
  if (text.find(part) != std::string_view::npos) return;
  throw CheckFailure(join(file, ":", line, ": expected \"", part, "\" in \"", text, "\""));
}

}  // namespace beeline_test

#define BEELINE_CHECK(...) beeline_test::check_that(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define BEELINE_CHECK_EQ(expected, observed) \
  beeline_test::check_equal(expected, observed, #observed, __FILE__, __LINE__)
#define BEELINE_CHECK_CONTAINS(text, part) beeline_test::check_contains(text, part, __FILE__, __LINE__)
