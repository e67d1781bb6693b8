// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tools of the serial references: threads, and comparisons of their results with the methods' results.

#include <cstdint>
#include <thread>
#include <vector>

namespace apps {

/// Threads that this machine can run at once, at least 1.
[[nodiscard]] int hardware_threads();

/// Calls `work(first, last)` for contiguous shares of [begin, end), each on a thread of its own.
template <class Index, class Work>
void on_threads(int threads, Index begin, Index end, const Work& work) {
  const auto start = [&](int thread) {
    return begin + static_cast<Index>(std::int64_t(end - begin) * thread / threads);
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread)
    others.emplace_back([&work, start, thread] { work(start(thread), start(thread + 1)); });
  work(start(0), start(1));
}

/// FNV-1a over the bits of values: equal vectors have equal checksums.
[[nodiscard]] std::uint64_t checksum(const std::vector<float>& values);

/// Largest absolute difference of two vectors of the same length; infinite if a value is not a number.
[[nodiscard]] double max_error(const std::vector<float>& expected, const std::vector<float>& observed);

}  // namespace apps
