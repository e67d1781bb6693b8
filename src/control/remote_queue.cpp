// SPDX-License-Identifier: Apache-2.0
#include "control/remote_queue.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "beeline/device/wait.hpp"

namespace beeline {

namespace {

std::uint64_t load(const std::uint64_t& word) {
  return detail::SystemAtomic<std::uint64_t>(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}

}  // namespace

bool RemoteQueue::has_room() const { return posted_ - load(ring.taken.value) < command_ring_depth; }

void RemoteQueue::hand_over(const Command& command, const FiredCommand& fired, std::uint64_t before) {
  // As in command_protocol.hpp, with one poster and without answers.
  Command& slot = ring.commands[posted_ % command_ring_depth];
  std::memcpy(&slot.verb, &command.verb, sizeof command - offsetof(Command, verb));
  detail::SystemAtomic<std::uint64_t>(slot.sequence).store(++posted_, std::memory_order_release);
  handed_.push_back({command, fired, before, posted_});
}

void RemoteQueue::submit() {
  if (std::exchange(submitted_, posted_) == posted_) return;
  if (!std::exchange(is_open_, true)) network_.open_queue(*this);
  if (const std::uint64_t asleep = load(ring.asleep.value); asleep != 0) detail::wake_engine(asleep);
}

bool RemoteQueue::has_news() const {
  const auto is_over = [](const Handed& handed, const PaddedWord& done) {
    return handed.number <= DoneCount{load(done.value)}.commands();
  };
  return (!handed_.empty() && is_over(handed_.front(), ring.completed)) ||
         (released_ < handed_.size() && is_over(handed_[released_], ring.reusable));
}

bool RemoteQueue::take_over(Handed& handed, std::string& refusal) {
  const std::uint64_t reusable = DoneCount{load(ring.reusable.value)}.commands();
  while (released_ < handed_.size() && handed_[released_].number <= reusable) ++released_;
  if (handed_.empty() || handed_.front().number > DoneCount{load(ring.completed.value)}.commands()) return false;
  handed = handed_.front();
  handed_.pop_front();
  if (released_ > 0) --released_;
  const std::lock_guard lock(mutex_);
  const bool is_refused = first_refused_ != 0 && handed.number >= first_refused_;
  refusal = is_refused ? refusal_ : std::string();
  return true;
}

std::uint64_t RemoteQueue::reusable(std::uint64_t local) {
  const std::uint64_t now = released_ < handed_.size() ? std::min(local, handed_[released_].before) : local;
  return published_reusable_ = std::max(published_reusable_, now);
}

std::uint64_t RemoteQueue::completed(std::uint64_t local) {
  const std::uint64_t now = handed_.empty() ? local : std::min(local, handed_.front().before);
  return published_completed_ = std::max(published_completed_, now);
}

void RemoteQueue::refused(std::uint64_t command, const std::string& reason) noexcept {
  const std::lock_guard lock(mutex_);
  first_refused_ = command;
  try {
    refusal_ = reason;
  } catch (const std::exception&) {
    refusal_ = "refused";  // short enough to need no allocation
  }
}

void RemoteQueue::has_grown() noexcept { wake_(); }

}  // namespace beeline
