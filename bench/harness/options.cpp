// SPDX-License-Identifier: Apache-2.0
#include "harness/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "beeline/core/error.hpp"

namespace beeline::bench {

namespace {

constexpr std::uint64_t largest_size = std::uint64_t{16} << 30;

unsigned shift_of(char suffix) {
  switch (suffix) {
    case 'k':
    case 'K':
      return 10;
    case 'm':
    case 'M':
      return 20;
    case 'g':
    case 'G':
      return 30;
    default:
      return 0;
  }
}

}  // namespace

std::uint64_t parse_size(const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const unsigned shift = rest + 1 == end ? shift_of(*rest) : 0;
  const bool whole = rest == end || (rest + 1 == end && shift != 0);
  if (error != std::errc{} || !whole || number == 0 || number > (largest_size >> shift))
    throw Error(Status::invalid_argument,
                fmt::format("bad size \"{}\"; valid: 1 to 16G bytes, written like 8, 4K, 1M or 2G", text));
  return number << shift;
}

std::vector<std::uint64_t> default_sizes(Command command, bool on_gpus) {
  if (command == Command::latency) return {8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20};
  // One CPU thread copies a few GB/s: larger messages would show nothing new there.
  const std::uint64_t largest = std::uint64_t{on_gpus ? 512u : 64u} << 20;
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = 64 << 10; bytes <= largest; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

std::size_t heap_bytes_for(const Options& options, int ranks) {
  const std::vector<std::uint64_t> sizes = options.sizes.empty() ? default_sizes(options.command, true) : options.sizes;
  constexpr std::size_t ring = std::size_t{16} << 20, signals_and_stamps = std::size_t{16} << 20;
  return 2 * *std::max_element(sizes.begin(), sizes.end()) + static_cast<std::size_t>(ranks) * ring +
         signals_and_stamps;
}

}  // namespace beeline::bench
