// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What an engine makes sure of before it does a command: posters may have written anything.

#include <cstddef>
#include <string>

#include "control/command_worker.hpp"
#include "control/mapped_memory.hpp"

namespace beeline {

/// What a command names at its peer.
struct CommandTarget {
  const char* refused = nullptr;  ///< why it is; nullptr: it is not
  std::byte* address = nullptr;   ///< all of it is mapped, but that of a `copy`
  std::size_t bytes = 0;          ///< that it moves or changes
};

[[nodiscard]] CommandTarget target_of(const EngineClient& client, MappedMemory& memory, const Command& command);

/// What can be checked of a command for a rank of another node, its signal included, without that rank's memory.
[[nodiscard]] CommandTarget checked_for_far(const EngineClient& client, const Command& command);

/// How a command was begun.
struct BegunCommand {
  const char* refused = nullptr;  ///< why it was; nullptr: it was not
  std::size_t bytes = 0;          ///< that it moves or changes
};
/// Begins a command, if all that it names is there. `slot` is the worker's.
[[nodiscard]] BegunCommand begin_command(const EngineClient& client, MappedMemory& memory, CommandWorker& worker,
                                         const Command& command, std::size_t slot);

/// What a command is, by whoever it was posted, for people.
[[nodiscard]] std::string what_is(const Command& command);
/// The command for people.
[[nodiscard]] std::string text_of(const Command& command);

}  // namespace beeline
