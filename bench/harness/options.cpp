// SPDX-License-Identifier: Apache-2.0
#include "harness/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "beeline/core/error.hpp"

namespace beeline::bench {

namespace {

using Json = nlohmann::ordered_json;

/// Sets `member` to the option's value, if there is one.
template <class T>
void take(const Json& values, const char* option, T& member) {
  if (const auto found = values.find(option); found != values.end() && !found->is_null()) found->get_to(member);
}

std::vector<std::uint64_t> collective_sizes(bool on_gpus) {
  constexpr std::uint64_t kib = 1 << 10, mib = 1 << 20;
  std::vector<std::uint64_t> sizes = {8, 64, 512, 4 * kib, 8 * kib, 32 * kib, 128 * kib, 512 * kib, mib};
  if (on_gpus)
    for (std::uint64_t mibs : {4, 16, 64, 256, 1024}) sizes.push_back(mibs * mib);
  return sizes;
}

/// Throws invalid_argument for values that are valid alone, but not together.
void check(const Options& options) {
  for (std::uint64_t bytes : options.sizes)
    require(options.command != Command::collectives || bytes % bytes_of(options.type) == 0, Status::invalid_argument,
            fmt::format("bad --sizes \"{}\"; valid: multiples of the {} bytes of a {}", bytes, bytes_of(options.type),
                        name(options.type)));
  const std::uint64_t table = options.table_bytes;
  require((table & (table - 1)) == 0, Status::invalid_argument,
          fmt::format("bad --table \"{}\"; valid: a power of two", table));
  require(options.energy_budget_s == 0 || options.energy_ms != 0, Status::invalid_argument,
          "--energy-budget: it limits what --energy meters: give both");
}

}  // namespace

const char* name(Command command) {
  constexpr const char* names[] = {"latency",  "bandwidth", "rate",   "methods", "address-space",
                                   "network",  "adapters",  "energy", "launch",  "collectives",
                                   "accuracy", "overlap",   "calls"};
  return names[static_cast<int>(command)];
}

Options options_from(Command command, const Json& values) {
  Options options{.command = command};
  take(values, "operations", options.operations);
  take(values, "methods", options.methods);
  take(values, "sizes", options.sizes);
  if (command != Command::launch) take(values, "iterations", options.iterations);  // launch: a list, for Python
  take(values, "threads-per-block", options.threads_per_block);
  if (command == Command::bandwidth) take(values, "blocks", options.blocks);
  if (command == Command::collectives) take(values, "blocks", options.block_counts);
  take(values, "table", options.table_bytes);
  take(values, "energy", options.energy_ms);
  take(values, "energy-budget", options.energy_budget_s);
  take(values, "seed", options.seed);
  if (values.value("type", "") == name(ElementType::bfloat16)) options.type = ElementType::bfloat16;
  options.verify = !values.value("no-verify", false);
  check(options);
  return options;
}

std::vector<std::uint64_t> sizes_of(const Options& options, bool on_gpus) {
  if (!options.sizes.empty() || options.command == Command::address_space) return options.sizes;
  if (options.command == Command::collectives) return collective_sizes(on_gpus);
  // One CPU thread copies a few GB/s: larger messages would show nothing new on host ranks.
  const std::uint64_t largest = std::uint64_t{on_gpus ? 512u : 64u} << 20;
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = 64 << 10; bytes <= largest; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

std::uint64_t table_bytes(const Options& options, bool on_gpus) {
  if (options.table_bytes != 0) return options.table_bytes;
  return std::uint64_t{on_gpus ? 512u : 16u} << 20;
}

std::size_t heap_bytes_for(const Options& options, int ranks, bool on_gpus) {
  constexpr std::size_t mib = std::size_t{1} << 20, signals_and_stamps = 16 * mib;
  // The arrays of all strides, 63 times the bytes moved at stride 1, and as many local words for each stride.
  if (options.command == Command::address_space) return 1024 * mib;
  const std::vector<std::uint64_t> sizes = sizes_of(options, on_gpus);
  const std::size_t largest = *std::max_element(sizes.begin(), sizes.end()), world = static_cast<std::size_t>(ranks);
  if (options.command == Command::network) return 4 * std::max(largest, most_window_bytes) + signals_and_stamps;
  // Each sender has a channel with a ring from every rank; each number of senders also needs a few buffers.
  constexpr std::size_t channels = 256, buffers = 2048;
  const std::size_t ring_bytes = 2 * rate_ring_depth(largest) * largest;
  if (options.command == Command::rate)
    return std::max(table_bytes(options, true), channels * world * ring_bytes + buffers * largest) +
           4 * signals_and_stamps;
  constexpr std::size_t ring = 16 * mib, channel = 768 * mib;
  if (options.command == Command::collectives) return 2 * largest + (on_gpus ? channel : 0) + world * ring;
  constexpr std::size_t messages = 64 * mib;
  // Copies that kernels start, of 4 KiB to 64 MiB: a source and a destination for each size.
  const std::size_t started_copies = options.command == Command::methods && on_gpus ? 256 * mib : 0;
  // Two pairs of source and destination: one for a triggered copy, one for the method compared with it.
  // Methods that are metered in turns keep their buffers at the same time.
  const std::size_t in_turns = options.energy_ms == 0 ? 0 : 2 * largest * options.methods.size();
  return 4 * largest + in_turns + world * ring + messages + started_copies + signals_and_stamps;
}

}  // namespace beeline::bench
