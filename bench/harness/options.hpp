// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the command line asks for.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace beeline::bench {

enum class Command { latency, bandwidth };

struct Options {
  Command command = Command::latency;
  std::vector<std::string> operations;  ///< empty: all of the command
  std::vector<std::string> methods;     ///< empty: all of the command
  std::vector<std::uint64_t> sizes;     ///< message sizes in bytes; empty: the command's own
  std::uint64_t iterations = 0;         ///< operations in one timed batch; 0: as many as last long enough to be timed
  unsigned threads_per_block = 0;       ///< GPU ranks; 0: chosen by size
  unsigned blocks = 0;                  ///< GPU ranks, bandwidth; 0: a sweep
  bool verify = true;
  std::uint64_t seed = 0;              ///< of the random data; 0: drawn, and printed
  std::vector<std::string> arguments;  ///< the command line, for the record
};

/// Bytes that `text` means: a number with an optional K, M or G (powers of 1024).
/// Throws invalid_argument that says what is accepted.
[[nodiscard]] std::uint64_t parse_size(const std::string& text);

/// Sizes that are measured when none are given.
[[nodiscard]] std::vector<std::uint64_t> default_sizes(Command command, bool on_gpus);

/// Symmetric heap that these options need in a world of `ranks`.
[[nodiscard]] std::size_t heap_bytes_for(const Options& options, int ranks);

}  // namespace beeline::bench
