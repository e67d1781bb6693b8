// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The protocol of command rings (core/command_protocol.hpp) under a model checker.

#include <string>

namespace beeline {

/// What is done wrong on purpose.
enum class Bug {
  none,
  relaxed_publish,  ///< a command's sequence does not release its fields
  relaxed_taken,    ///< `taken` does not release the engine's copy
  relaxed_known,    ///< nor what one poster tells the others of it
  relaxed_answer,   ///< an answer's sequence does not release its value
  freed_at_once,    ///< slots go before their answers have been read
  divided_exchange  ///< of an engine that sleeps: posters look for its mark, and then store
};

/// Whether all executions that were tried were right, and what the checker says.
struct Verdict {
  bool is_right;
  std::string report;
};

/// Two posters and an engine on a ring of two slots, in so many interleavings, with every value that a relaxed memory
/// may show them.
[[nodiscard]] Verdict try_command_ring(Bug bug, unsigned executions);

/// The same with an engine that sleeps whenever it finds nothing, until a poster wakes it: right, or with
/// `Bug::divided_exchange`.
[[nodiscard]] Verdict try_sleeping_engine(Bug bug, unsigned executions);

}  // namespace beeline
