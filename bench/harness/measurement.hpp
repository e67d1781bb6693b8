// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a case gives the harness to time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/bench.hpp"

namespace beeline::bench {

/// How often an operation is repeated in one call.
struct Rounds {
  std::uint32_t iterations = 1;  ///< in one timed batch
  std::uint32_t batches = 1;
  std::uint32_t warm_up = 0;  ///< untimed, before the first batch
};

/// What `batch()` returns for each batch: its nanoseconds.
template <class Batch>
[[nodiscard]] std::vector<double> time_batches(Rounds rounds, Batch batch) {
  std::vector<double> times;
  for (std::uint32_t i = 0; i < rounds.batches; ++i) times.push_back(batch());
  return times;
}

/// How a measurement was set up, as the record shows it: group, threads_per_block, blocks, order, chunk_bytes, ...
using Settings = std::vector<std::pair<std::string, std::variant<std::uint64_t, std::string>>>;

enum class Unit { microseconds, gigabytes_per_second, million_messages_per_second, giga_updates_per_second };

/// One line of the results: a way of doing an operation.
struct Measurement {
  std::string operation;  ///< message, flag, barrier, put, get, ...
  std::string method;     ///< identifier of a method, or bare/... for what is compared with it
  std::uint64_t bytes = 0;
  Unit unit = Unit::microseconds;
  double operations_per_iteration = 1;       ///< 2 where an iteration is a round trip and one way is reported
  std::uint32_t most_iterations = 10'000;    ///< what queues of the method can hold
  std::optional<std::string> peer_of = {};   ///< bare peers: the method that is compared with this
  bool stores_to_peer = false;               ///< bare peers: into the peer's memory, so that the two share a node
  std::optional<std::size_t> baseline = {};  ///< index of the bare peer among the measurements of its case
  std::optional<double> bus_factor = {};     ///< collectives: bytes on the busiest link for each byte of the message
  std::string compared_as = {};              ///< collectives: their baseline is the best peer with the same word
  Settings settings = {};
  /// Collective. Nanoseconds of each batch on rank 0; elsewhere whatever it returns is ignored.
  std::function<std::vector<double>(Rounds)> time = {};
  /// Collective. Does the operation with data made from the seed; whether this rank found what it should.
  /// Empty for a peer's operation that moves no data.
  std::function<bool(std::uint64_t seed)> verify = {};
};

/// Message sizes that a case is measured with: far from its use it only takes time, or cannot be.
struct SizeRange {
  std::uint64_t least_bytes = 0, most_bytes = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] bool holds(std::uint64_t bytes) const { return bytes >= least_bytes && bytes <= most_bytes; }
};

/// A way of doing an operation, with the bare peers beside it.
struct Case {
  std::string operation, method;
  bool sized = true;  ///< whether it is repeated for each message size
  /// Collective. The measurements for messages of `bytes`; what they allocate lives as long as they do.
  /// Throws unavailable, unreachable or no_resource where this machine lacks what the method needs. Empty for what is
  /// measured by programs in Python.
  std::function<std::vector<Measurement>(Bench&, std::uint64_t bytes)> prepare;
  SizeRange sizes = {};
};

}  // namespace beeline::bench
