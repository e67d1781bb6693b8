// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The check of a command before an engine carries it out, since posters may have written anything. The texts of all
/// refusals are here.

#include <cstddef>
#include <string>

#include "control/command_worker.hpp"
#include "control/mapped_memory.hpp"

namespace beeline {

/// The memory that a command names at its peer.
struct CommandTarget {
  const char* refused = nullptr;  ///< why the command is refused; nullptr: it is not
  std::byte* address = nullptr;   ///< the target; mapped as a whole, except for a `copy`
  std::size_t bytes = 0;          ///< length that the command moves or changes, without its signal
  std::byte* signal = nullptr;    ///< nullptr: the command has no signal
};

[[nodiscard]] CommandTarget target_of(const EngineClient& client, MappedMemory& memory, const Command& command);

/// Whether a command goes to a rank of another node.
[[nodiscard]] bool is_for_other_node(const EngineClient& client, const Command& command);
/// The checks of a command for a rank of another node that do not need that rank's memory. `bytes` includes its signal.
[[nodiscard]] CommandTarget checked_for_far(const EngineClient& client, const Command& command);

/// The result of beginning a command.
struct BegunCommand {
  const char* refused = nullptr;  ///< why it was refused; nullptr: it was not
  std::size_t bytes = 0;          ///< length that the command moves or changes
};
/// Begins a command and its signal, if all memory that it names is mapped. `slot` is the worker's.
[[nodiscard]] BegunCommand begin_command(const EngineClient& client, MappedMemory& memory, CommandWorker& worker,
                                         const Command& command, std::size_t slot);

/// Why a trigger is refused; nullptr if it is not.
///   tags  of the table of its queue; 0: the queue has no table
[[nodiscard]] const char* refuse_trigger(std::uint64_t tag, std::uint64_t count, std::uint32_t tags);

/// The error for a command of a queue that a rank's engine has refused.
[[nodiscard]] std::string refusal_of(int rank, const Command& command, const char* reason);
/// Describes a command in errors.
[[nodiscard]] std::string text_of(const Command& command);

}  // namespace beeline
