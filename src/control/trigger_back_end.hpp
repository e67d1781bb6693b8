// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What holds triggered operations until they fire: the table of the engine, or streams that wait.

#include <array>
#include <cstdint>
#include <string>

#include "beeline/control/armed_operation.hpp"
#include "beeline/core/command.hpp"

namespace beeline {

/// An operation to arm: one command, or two that follow each other.
struct TriggeredCommands {
  std::array<Command, 2> commands{};
  std::uint32_t count = 1;  ///< of the commands
  std::uint32_t tag = 0;
  std::uint64_t threshold = 1;
  std::uint32_t then = no_chain;  ///< the tag that its completion triggers
  std::uint64_t deadline_ns = 0;  ///< from its arming, or from the latest trigger of its tag; 0: the world's
};

/// Tags, and what is armed for them. Thread-safe.
class TriggerBackEnd {
 public:
  virtual ~TriggerBackEnd() = default;
  /// Fires at once where its tag has counted to the threshold. Throws no_resource where there is no place.
  virtual ArmedOperation arm(const TriggeredCommands& what) = 0;
  /// Returns true if the operation was still armed: it then never starts. Throws unavailable if it cannot be cancelled.
  virtual bool cancel(ArmedOperation operation) = 0;
  /// Cancels all armed operations that can be cancelled; later calls of `arm` are refused.
  virtual void close() = 0;
  /// Whether it is in place at its target, or will never be.
  [[nodiscard]] virtual bool is_over(ArmedOperation operation) = 0;
  /// Tag, count and threshold of an operation that is not over, in words; empty where it is.
  [[nodiscard]] virtual std::string describe(ArmedOperation operation) = 0;
  /// Whether nothing is under way.
  [[nodiscard]] virtual bool is_idle() = 0;
  [[nodiscard]] virtual std::uint64_t count(std::uint32_t tag) const = 0;
  [[nodiscard]] virtual std::uint32_t armed() = 0;  ///< operations that have not fired, as far as is known
  /// Adds to a tag's count. Returns why it is refused; nullptr: it is not.
  [[nodiscard]] virtual const char* trigger(std::uint64_t tag, std::uint64_t count) = 0;
};

}  // namespace beeline
