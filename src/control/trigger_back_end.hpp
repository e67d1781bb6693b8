// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The holders of triggered operations until they fire: an engine's table, or streams that wait.

#include <array>
#include <cstdint>
#include <string>

#include "beeline/control/armed_operation.hpp"
#include "beeline/core/command.hpp"

namespace beeline {

/// An operation to arm: one command, or two in sequence.
struct TriggeredCommands {
  std::array<Command, 2> commands{};
  std::uint32_t count = 1;  ///< number of commands
  std::uint32_t tag = 0;
  std::uint64_t threshold = 1;
  std::uint32_t then = no_chain;  ///< the tag that the operation's completion triggers
  std::uint64_t deadline_ns = 0;  ///< counts from its arming, or the latest trigger of its tag; 0: the world's deadline
};

/// Tags and their armed operations. Thread-safe.
class TriggerBackEnd {
 public:
  virtual ~TriggerBackEnd() = default;
  /// Arms an operation; it fires at once if its tag's count has reached the threshold. Throws no_resource if there is
  /// no room.
  virtual ArmedOperation arm(const TriggeredCommands& what) = 0;
  /// Returns true if the operation was still armed: it then never starts. Throws unavailable if it cannot be cancelled.
  virtual bool cancel(ArmedOperation operation) = 0;
  /// Cancels all armed operations that can be cancelled; later calls of `arm` are refused.
  virtual void close() = 0;
  /// Whether an operation is complete at its target, or will never be.
  [[nodiscard]] virtual bool is_over(ArmedOperation operation) = 0;
  /// Tag, count and threshold of an operation as text; empty if the operation is over.
  [[nodiscard]] virtual std::string describe(ArmedOperation operation) = 0;
  /// Whether no operation is in flight.
  [[nodiscard]] virtual bool is_idle() = 0;
  [[nodiscard]] virtual std::uint64_t count(std::uint32_t tag) const = 0;
  [[nodiscard]] virtual std::uint32_t armed() = 0;  ///< operations that are not known to have fired
  /// Adds to a tag's count. Returns nullptr, or why the trigger is refused.
  [[nodiscard]] virtual const char* trigger(std::uint64_t tag, std::uint64_t count) = 0;
};

}  // namespace beeline
