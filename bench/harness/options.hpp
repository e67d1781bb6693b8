// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The options of the command line.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "beeline/collectives/elements.hpp"

namespace beeline::bench {

/// The commands; those from `collectives` on belong to beeline-bench-collectives.
enum class Command {
  latency,
  bandwidth,
  rate,
  methods,
  address_space,
  network,
  adapters,
  energy,
  launch,
  collectives,
  accuracy,
  overlap,
  calls
};
[[nodiscard]] const char* name(Command command);

struct Options {
  Command command = Command::latency;
  std::vector<std::string> operations, methods;
  bool methods_are_named = false;      ///< false: all methods are measured
  std::vector<std::uint64_t> sizes;    ///< message sizes in bytes; empty: the command's default, by device
  std::uint64_t iterations = 0;        ///< operations in one timed batch; 0: as many as last long enough to be timed
  unsigned threads_per_block = 0;      ///< GPU ranks; 0: chosen by size
  unsigned blocks = 0;                 ///< GPU ranks, bandwidth; 0: a sweep
  std::vector<unsigned> block_counts;  ///< GPU ranks, collectives; empty: as many as suit the size
  ElementType type = ElementType::float32;  ///< collectives: type of the elements
  std::uint64_t table_bytes = 0;            ///< rate: a rank's table of random updates, a power of two; 0: by device
  std::uint64_t energy_ms = 0;              ///< window in which each method's energy is metered; 0: no metering
  std::uint64_t energy_budget_s = 0;        ///< for all metering; 0: no limit
  bool verify = true;
  std::uint64_t seed = 0;              ///< of the random data; 0: chosen at random, and printed
  std::vector<std::string> arguments;  ///< the command line, for the record
};

/// Makes the options from their values by name. Throws invalid_argument for values that do not go together.
[[nodiscard]] Options options_from(Command command, const nlohmann::ordered_json& values);

/// The sizes to measure: those of the options, or the command's default.
[[nodiscard]] std::vector<std::uint64_t> sizes_of(const Options& options, bool on_gpus);

/// Bytes of a rank's table of random updates: the option's value, or more than the caches hold.
[[nodiscard]] std::uint64_t table_bytes(const Options& options, bool on_gpus);

/// Messages in flight for a sender whose rate is measured: many small messages, fewer large ones, which fill the
/// memory.
[[nodiscard]] constexpr std::uint32_t rate_ring_depth(std::uint64_t bytes) { return bytes <= 64 ? 64 : 16; }

/// Most bytes of all messages in a window across nodes, unless a single message is longer.
inline constexpr std::size_t most_window_bytes = std::size_t{32} << 20;

/// Symmetric heap that these options need in a world of `ranks`; `on_gpus` says whether the machine has GPUs.
[[nodiscard]] std::size_t heap_bytes_for(const Options& options, int ranks, bool on_gpus);

}  // namespace beeline::bench
