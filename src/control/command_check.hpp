// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What an engine makes sure of before it does a command: posters may have written anything.

#include <cstddef>
#include <string>

#include "control/mapped_memory.hpp"

namespace beeline {

/// What a command names at its peer.
struct CommandTarget {
  const char* refused = nullptr;  ///< why it is; nullptr: it is not
  std::byte* address = nullptr;   ///< all of it is mapped, but that of a `copy`
  std::size_t bytes = 0;          ///< that it moves or changes
};

[[nodiscard]] CommandTarget target_of(const EngineClient& client, MappedMemory& memory, const Command& command);

/// The command for people.
[[nodiscard]] std::string text_of(const Command& command);

}  // namespace beeline
