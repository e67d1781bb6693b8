// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface through which a case gives the harness operations to time.

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

/// How often one call repeats an operation.
struct Rounds {
  std::uint32_t iterations = 1;  ///< operations in one timed batch
  std::uint32_t batches = 1;
  std::uint32_t warm_up = 0;  ///< untimed operations before the first batch
};

/// Calls `batch()` for each batch, and returns the nanoseconds that it returned.
template <class Batch>
[[nodiscard]] std::vector<double> time_batches(Rounds rounds, Batch batch) {
  std::vector<double> times;
  for (std::uint32_t i = 0; i < rounds.batches; ++i) times.push_back(batch());
  return times;
}

/// The settings of a measurement, as the record shows them: group, threads_per_block, blocks, order, chunk_bytes, ...
using Settings = std::vector<std::pair<std::string, std::variant<std::uint64_t, std::string>>>;

enum class Unit {
  microseconds,
  gigabytes_per_second,
  million_messages_per_second,
  giga_updates_per_second,
  requests  ///< a count, which `time` returns in place of nanoseconds
};

/// One line of the results: one method of an operation, in one setting.
struct Measurement {
  std::string operation;  ///< message, flag, barrier, put, get, ...
  std::string method;     ///< identifier of a method, or bare/... for a bare peer
  std::uint64_t bytes = 0;
  Unit unit = Unit::microseconds;
  double operations_per_iteration = 1;       ///< 2 if an iteration is a round trip and the time of one way is reported
  std::uint32_t most_iterations = 10'000;    ///< limited by the capacity of the method's queues
  std::optional<std::string> peer_of = {};   ///< bare peers: the method that is compared with this one
  std::string lacking = {};                  ///< bare peers: why it cannot be measured; empty: it can
  bool stores_to_peer = false;               ///< bare peers: needs the peer's memory on the same node
  std::optional<std::size_t> baseline = {};  ///< index of the bare peer among the measurements of its case
  std::optional<double> bus_factor = {};     ///< collectives: bytes on the busiest link for each byte of the message
  std::string compared_as = {};              ///< collectives: the baseline is the best peer with the same string here
  Settings settings = {};
  /// Collective. Nanoseconds of each batch on rank 0; the result on other ranks is ignored.
  std::function<std::vector<double>(Rounds)> time = {};
  /// Collective. Runs the operation with data made from the seed; returns whether this rank's result is right. Empty
  /// for a peer's operation that moves no data.
  std::function<bool(std::uint64_t seed)> verify = {};
};

/// Message sizes with which a case is measured: other sizes would only take time, or are impossible.
struct SizeRange {
  std::uint64_t least_bytes = 0, most_bytes = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] bool holds(std::uint64_t bytes) const { return bytes >= least_bytes && bytes <= most_bytes; }
};

/// One method of an operation, with its bare peers.
struct Case {
  std::string operation, method;
  bool sized = true;  ///< whether it is measured for each message size
  /// Collective. Returns the measurements for messages of `bytes`, which own their memory. Throws unavailable,
  /// unreachable or no_resource if this machine lacks what the method needs. Empty for methods that programs in Python
  /// measure.
  std::function<std::vector<Measurement>(Bench&, std::uint64_t bytes)> prepare;
  SizeRange sizes = {};
};

}  // namespace beeline::bench
