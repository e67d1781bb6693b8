// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Posts the requests that kernels leave in mailboxes (control/verbs_assisted.hpp), and answers them. A thread of an
/// engine serves this object as a source that yields no commands: the thread polls the mailboxes, and sleeps, as it
/// does for rings.

#include <cstdint>
#include <vector>

#include "beeline/control/verbs_assisted.hpp"
#include "beeline/transport/engine.hpp"

namespace beeline {

/// Serves all pairs, whose rings are in host memory; no other thread posts to them or polls.
class VerbsAssistant final : public CommandSource {
 public:
  VerbsAssistant(const VerbsQueuesView& queues, const VerbsAssistedView& mailboxes)
      : queues_(queues), mailboxes_(mailboxes), lines_(std::size_t{2} * queues.pairs) {}

  /// Answers the requests in flight of a pair's send ring, which was emptied. No thread serves this object meanwhile.
  void reset(std::uint32_t pair) {
    take_completions(pair % queues_.completion_queues);
    Line& line = lines_[2 * pair];
    while (line.answered != line.taken)
      answer(2 * pair, {queues_.posted[pair].number, static_cast<std::uint32_t>(line.answered), VerbsOpcode::none,
                        VerbsStatus::flushed});
  }

  [[nodiscard]] bool has_next() const override {
    for (std::uint32_t line = 0; line < lines_.size(); ++line)
      if (is_asked(line)) return true;
    for (std::uint32_t queue = 0; queue < queues_.completion_queues; ++queue)
      if (Poller(queues_, queue).has_next()) return true;
    return false;
  }
  /// Engines, also of other processes, write completions without waking a thread.
  [[nodiscard]] bool is_woken() const noexcept override { return false; }
  [[nodiscard]] Verb next_verb() const override { return Verb::copy; }
  [[nodiscard]] bool take(Command&) override {
    for (std::uint32_t queue = 0; queue < queues_.completion_queues; ++queue) take_completions(queue);
    for (std::uint32_t line = 0; line < lines_.size(); ++line)
      while (is_asked(line) && post(line)) {
      }
    return false;
  }
  /// Requests posted and answered: a thread that finds this unchanged may sleep.
  [[nodiscard]] std::uint64_t taken() const override { return steps_; }
  void release_slots() override {}
  void answer(const Command&, std::uint64_t) override {}
  void release_sources(DoneCount) override {}
  void complete(DoneCount) override {}
  void refuse(std::uint64_t) override {}
  void set_waker(Waker* waker) noexcept override {
    detail::SystemAtomic<std::uint64_t>(*mailboxes_.asleep)
        .store(reinterpret_cast<std::uintptr_t>(waker), std::memory_order_release);
  }
  void wake() const noexcept override {
    if (const std::uint64_t asleep = detail::load_acquired(*mailboxes_.asleep); asleep != 0)
      detail::wake_engine(asleep);
  }

 private:
  using Poller = detail::VerbsPoller<VerbsSteps{}, detail::DirectAccess>;
  /// A ring of a pair: counts of requests.
  struct Line {
    std::uint64_t taken = 0, answered = 0;
  };

  [[nodiscard]] VerbsMailbox& mailbox(std::uint32_t line, std::uint64_t ticket) const {
    return mailboxes_.mailboxes[std::size_t{line} * mailboxes_.depth + (ticket & (mailboxes_.depth - 1))];
  }
  [[nodiscard]] bool is_asked(std::uint32_t line) const {
    const std::uint64_t ticket = lines_[line].taken;
    return detail::load_acquired(mailbox(line, ticket).asked) == ticket + 1;
  }

  /// Posts the next request of a ring. Returns false if the ring is full.
  bool post(std::uint32_t line) {
    // Bad requests have error completions, in the order of the ring.
    constexpr VerbsSteps unchecked{.checks = false};
    const std::uint32_t pair = line / 2;
    const bool receives = line % 2 != 0;
    const VerbsPosted& posted = queues_.posted[pair];
    const std::uint64_t in_flight =
        receives ? posted.receives - posted.receives_done : posted.sends - posted.sends_done;
    if (in_flight >= queues_.depth - 1) return false;
    VerbsRequest request = mailbox(line, lines_[line].taken).request;
    request.signaled = true;
    static_cast<void>(receives ? post_receive<unchecked>(Thread{}, queues_, pair, request)
                               : post_send<unchecked>(Thread{}, queues_, pair, request));
    ++lines_[line].taken;
    ++steps_;
    return true;
  }

  void take_completions(std::uint32_t queue) {
    VerbsCompletion completion;
    while (poll_completion(Thread{}, queues_, queue, completion) == Status::ok) {
      const std::uint32_t pair = completion.pair - queues_.posted[0].number;  // a rank's pairs have consecutive numbers
      Line& line = lines_[2 * pair + (completion.is_receive ? 1 : 0)];
      // Completions from before a `reset` are skipped: it has answered their requests.
      if (static_cast<std::uint32_t>(line.answered) == completion.index && line.answered != line.taken)
        answer(2 * pair + (completion.is_receive ? 1 : 0), completion);
    }
  }

  void answer(std::uint32_t line, const VerbsCompletion& completion) {
    const std::uint64_t ticket = lines_[line].answered++;
    VerbsMailbox& to = mailbox(line, ticket);
    ++steps_;
    to.completion = completion;
    detail::SystemAtomic<std::uint64_t>(to.answered).store(ticket + 1, std::memory_order_release);
  }

  const VerbsQueuesView queues_;
  const VerbsAssistedView mailboxes_;
  std::vector<Line> lines_;
  std::uint64_t steps_ = 0;
};

}  // namespace beeline
