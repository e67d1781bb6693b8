// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The protocol of command rings (core/command_protocol.hpp) under a model checker.

#include <string>

namespace beeline {

/// Deliberate mistakes in the protocol.
enum class Bug {
  none,
  relaxed_publish,  ///< a command's sequence does not release its fields
  relaxed_taken,    ///< `taken` does not release the engine's copy
  relaxed_known,    ///< `known_taken` does not release what its writer has seen of `taken`
  relaxed_answer,   ///< an answer's sequence does not release its value
  freed_at_once,    ///< slots are freed before their answers have been read
  divided_exchange  ///< with a sleeping engine: posters read its mark, and then store
};

/// Whether all executions that were tried were right, and the checker's report.
struct Verdict {
  bool is_right;
  std::string report;
};

/// Runs two posters and an engine on a ring of two slots, in so many interleavings, with all values that relaxed memory
/// may show them.
[[nodiscard]] Verdict try_command_ring(Bug bug, unsigned executions);

/// As above, with an engine that sleeps whenever it finds nothing, until a poster wakes it: without a mistake, or with
/// `Bug::divided_exchange`.
[[nodiscard]] Verdict try_sleeping_engine(Bug bug, unsigned executions);

}  // namespace beeline
