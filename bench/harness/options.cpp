// SPDX-License-Identifier: Apache-2.0
#include "harness/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "beeline/core/error.hpp"

namespace beeline::bench {

namespace {

constexpr std::uint64_t largest_size = std::uint64_t{16} << 30;
constexpr std::uint64_t largest_rate_size = 4 << 10;

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

std::vector<std::uint64_t> collective_sizes(bool on_gpus) {
  constexpr std::uint64_t kib = 1 << 10, mib = 1 << 20;
  std::vector<std::uint64_t> sizes = {8, 64, 512, 4 * kib, 8 * kib, 32 * kib, 128 * kib, 512 * kib, mib};
  if (on_gpus)
    for (std::uint64_t mibs : {4, 16, 64, 256, 1024}) sizes.push_back(mibs * mib);
  return sizes;
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
  if (command == Command::rate) return {8, 64, 512};
  if (command == Command::address_space) return {};
  if (command == Command::collectives) return collective_sizes(on_gpus);
  // One CPU thread copies a few GB/s: larger messages would show nothing new there.
  const std::uint64_t largest = std::uint64_t{on_gpus ? 512u : 64u} << 20;
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = 64 << 10; bytes <= largest; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

void check_sizes(const Options& options) {
  for (std::uint64_t bytes : options.sizes)
    require(options.command != Command::rate || bytes <= largest_rate_size, Status::invalid_argument,
            fmt::format("bad size {}: message rates are measured up to {} bytes", bytes, largest_rate_size));
  for (std::uint64_t bytes : options.sizes)
    require(options.command != Command::collectives || bytes % bytes_of(options.type) == 0, Status::invalid_argument,
            fmt::format("bad size {}: no multiple of the {} bytes of a {}", bytes, bytes_of(options.type),
                        name(options.type)));
  const std::uint64_t table = options.table_bytes;
  require(table == 0 || (table >= sizeof(std::uint64_t) && (table & (table - 1)) == 0), Status::invalid_argument,
          fmt::format("bad table of {} bytes; valid: a power of two, at least 8", table));
}

std::uint64_t table_bytes(const Options& options, bool on_gpus) {
  if (options.table_bytes != 0) return options.table_bytes;
  return std::uint64_t{on_gpus ? 512u : 16u} << 20;
}

std::size_t heap_bytes_for(const Options& options, int ranks, bool on_gpus) {
  constexpr std::size_t mib = std::size_t{1} << 20, signals_and_stamps = 16 * mib;
  // The arrays of all strides, 63 times what the threads move at stride 1, and as many local words for each.
  if (options.command == Command::address_space) return 1024 * mib;
  const std::vector<std::uint64_t> sizes =
      options.sizes.empty() ? default_sizes(options.command, on_gpus) : options.sizes;
  const std::size_t largest = *std::max_element(sizes.begin(), sizes.end()), world = static_cast<std::size_t>(ranks);
  // For each sender a channel with a ring from every rank; beside them a few buffers for each number of senders.
  constexpr std::size_t channels = 256, buffers = 2048;
  const std::size_t ring_bytes = 2 * rate_ring_depth(largest) * largest;
  if (options.command == Command::rate)
    return std::max(table_bytes(options, true), channels * world * ring_bytes + buffers * largest) +
           4 * signals_and_stamps;
  constexpr std::size_t ring = 16 * mib, channel = 768 * mib;
  if (options.command == Command::collectives) return 2 * largest + (on_gpus ? channel : 0) + world * ring;
  constexpr std::size_t messages = 64 * mib;
  return 2 * largest + world * ring + messages + signals_and_stamps;
}

}  // namespace beeline::bench
