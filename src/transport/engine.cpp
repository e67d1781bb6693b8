// SPDX-License-Identifier: Apache-2.0
#include "beeline/transport/engine.hpp"

#include "beeline/core/command_protocol.hpp"
#include "beeline/device/impl/route.hpp"

namespace beeline {

namespace {

/// A ring as its engine accesses it: see command_protocol.hpp.
struct EngineMemory {
  static constexpr std::uint32_t depth = command_ring_depth;
  using Word = detail::SystemAtomic<std::uint64_t>;
  CommandRing* ring;

  [[nodiscard]] Word taken() const { return Word(ring->taken.value); }
  [[nodiscard]] Word sequence(std::uint64_t slot) const { return Word(ring->commands[slot].sequence); }
  [[nodiscard]] Word answer_sequence(std::uint64_t slot) const { return Word(ring->answers[slot].sequence); }
  [[nodiscard]] const Command& read(std::uint64_t slot) const { return ring->commands[slot]; }
  [[nodiscard]] std::uint64_t& answer(std::uint64_t slot) const { return ring->answers[slot].value; }
};

void publish(std::uint64_t& word, std::uint64_t value) {
  detail::SystemAtomic<std::uint64_t>(word).store(value, std::memory_order_release);
}

}  // namespace

namespace detail {

void wake_engine(std::uint64_t asleep) noexcept { reinterpret_cast<Waker*>(asleep)->wake(); }

}  // namespace detail

bool CommandReader::has_next() const { return detail::is_posted(EngineMemory{ring_}, next_); }

Verb CommandReader::next_verb() const { return ring_->commands[next_ % command_ring_depth].verb; }

bool CommandReader::take(Command& command) {
  if (!has_next()) return false;
  command = detail::take_command(EngineMemory{ring_}, next_++);
  return true;
}

void CommandReader::release_slots() {
  if (released_ == next_) return;
  detail::release_slots(EngineMemory{ring_}, next_);
  released_ = next_;
}

void CommandReader::answer(const Command& command, std::uint64_t value) {
  detail::publish_answer(EngineMemory{ring_}, command.sequence - 1, value);
}

void CommandReader::release_sources(DoneCount reusable) { publish(ring_->reusable.value, reusable.word); }

void CommandReader::complete(DoneCount completed) { publish(ring_->completed.value, completed.word); }

void CommandReader::refuse(std::uint64_t commands) { publish(ring_->refused.value, commands); }

void CommandReader::set_waker(Waker* waker) noexcept {
  publish(ring_->asleep.value, reinterpret_cast<std::uintptr_t>(waker));
}

void CommandReader::wake() const noexcept {
  const std::uint64_t asleep = detail::load_acquired(ring_->asleep.value);
  if (asleep != 0) detail::wake_engine(asleep);
}

}  // namespace beeline
