// SPDX-License-Identifier: Apache-2.0
#include "beeline/transport/engine.hpp"

#include <cuda/atomic>

#include "beeline/device/wait.hpp"

namespace beeline {

namespace {

void publish(std::uint64_t& word, std::uint64_t value) {
  detail::SystemAtomic<std::uint64_t>(word).store(value, cuda::memory_order_release);
}

}  // namespace

bool CommandReader::take(Command& command) {
  Command& slot = ring_->commands[next_ % command_ring_depth];
  if (detail::SystemAtomic<std::uint64_t>(slot.sequence).load(cuda::memory_order_acquire) != next_ + 1) return false;
  command = slot;
  publish(ring_->taken.value, ++next_);
  return true;
}

void CommandReader::answer(const Command& command, std::uint64_t value) {
  Answer& answer = ring_->answers[(command.sequence - 1) % command_ring_depth];
  answer.value = value;
  publish(answer.sequence, command.sequence);
}

void CommandReader::release_sources(const Command& command) { publish(ring_->reusable.value, command.sequence); }

void CommandReader::complete(const Command& command) { publish(ring_->completed.value, command.sequence); }

}  // namespace beeline
