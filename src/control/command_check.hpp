// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The check of a command before an engine carries it out, since posters may have written anything. Each refusal has
/// its text here.

#include <cstddef>
#include <string>

#include "control/command_worker.hpp"
#include "control/mapped_memory.hpp"

namespace beeline {

/// What a command names at its peer.
struct CommandTarget {
  const char* refused = nullptr;  ///< why it is refused; nullptr: it is not
  std::byte* address = nullptr;   ///< all of it is mapped, but that of a `copy`
  std::size_t bytes = 0;          ///< that it moves or changes, without its signal
  std::byte* signal = nullptr;    ///< nullptr: it has none
};

[[nodiscard]] CommandTarget target_of(const EngineClient& client, MappedMemory& memory, const Command& command);

/// What can be checked of a command for a rank of another node without that rank's memory. `bytes` has its signal's.
[[nodiscard]] CommandTarget checked_for_far(const EngineClient& client, const Command& command);

/// How a command was begun.
struct BegunCommand {
  const char* refused = nullptr;  ///< why it was refused; nullptr: it was not
  std::size_t bytes = 0;          ///< that it moves or changes
};
/// Begins a command and its signal, if all that it names is there. `slot` is the worker's.
[[nodiscard]] BegunCommand begin_command(const EngineClient& client, MappedMemory& memory, CommandWorker& worker,
                                         const Command& command, std::size_t slot);

/// Why a trigger is refused; nullptr: it is not.
///   tags  of the table of its queue; 0: there is none
[[nodiscard]] const char* refuse_trigger(std::uint64_t tag, std::uint64_t count, std::uint32_t tags);

/// The error of a command of a queue that a rank's engine has refused.
[[nodiscard]] std::string refusal_of(int rank, const Command& command, const char* reason);
/// The command for people.
[[nodiscard]] std::string text_of(const Command& command);

}  // namespace beeline
