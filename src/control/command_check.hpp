// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The check of a command before an engine carries it out, since posters may have written anything. The texts of all
/// refusals are here.

#include <array>
#include <cstddef>
#include <span>
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

/// The entries of a `batch`, copied so that their poster cannot change them between check and use.
class BatchEntries {
 public:
  /// Copies the entries of a command from number `first` on, at most `most_batch_entries`; `is_there` says whether
  /// their memory was mapped.
  ///   memory  looks up the poster's memory
  BatchEntries(const Command& batch, std::uint64_t first, MappedMemory& memory);
  [[nodiscard]] bool is_there() const { return is_there_; }
  [[nodiscard]] std::span<const BatchEntry> all() const { return std::span(entries_).first(count_); }

 private:
  std::array<BatchEntry, most_batch_entries> entries_;
  std::size_t count_;
  bool is_there_;
};

/// Why an operation cannot be an entry of a batch; nullptr if it can.
[[nodiscard]] const char* refuse_in_batch(const Command& entry);
/// Why a batch is refused for one of its entries, by its index. Valid until the thread's next call.
[[nodiscard]] const char* refuse_entry(std::size_t index, const Command& entry, const char* reason);

/// Why a trigger is refused; nullptr if it is not.
///   tags  of the table of its queue; 0: the queue has no table
[[nodiscard]] const char* refuse_trigger(std::uint64_t tag, std::uint64_t count, std::uint32_t tags);

/// The error for a command of a queue that a rank's engine has refused.
[[nodiscard]] std::string refusal_of(int rank, const Command& command, const char* reason);
/// Describes a command in errors.
[[nodiscard]] std::string text_of(const Command& command);

}  // namespace beeline
