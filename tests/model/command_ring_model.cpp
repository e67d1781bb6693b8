// SPDX-License-Identifier: Apache-2.0
// A ring in Relacy's memory, and the steps of its posters and its engine.
#include "tests/model/command_ring_model.hpp"

#include <cstdint>
#include <ostream>
#include <streambuf>
#include <string>

#include "beeline/core/command_protocol.hpp"

namespace {

// Relacy has macros of these names.
constexpr auto acquires = std::memory_order_acquire, releases = std::memory_order_release,
               exchanges = std::memory_order_acq_rel;

}  // namespace

#include <relacy/relacy.hpp>

namespace beeline {

namespace {

constexpr rl::memory_order order_of(std::memory_order order) {
  if (order == acquires) return rl::mo_acquire;
  if (order == exchanges) return rl::mo_acq_rel;
  return order == releases ? rl::mo_release : rl::mo_relaxed;
}

/// A word as the protocol uses it. `is_weak`: its stores release nothing, and an exchange is a load and then a store.
struct Word {
  rl::atomic<std::uint64_t>* word;
  bool is_weak;

  [[nodiscard]] std::uint64_t load(std::memory_order order) const { return word->load(order_of(order), $); }
  void store(std::uint64_t value, std::memory_order order) const {
    word->store(value, is_weak ? rl::mo_relaxed : order_of(order), $);
  }
  std::uint64_t exchange(std::uint64_t value, std::memory_order order) const {
    if (!is_weak) return word->exchange(value, order_of(order), $);
    const std::uint64_t held = word->load(rl::mo_acquire, $);
    word->store(value, order_of(order), $);
    return held;
  }
  bool compare_exchange_strong(std::uint64_t& expected, std::uint64_t desired, std::memory_order order) const {
    return word->compare_exchange_strong(expected, desired, order_of(order), $);
  }
};

/// A plain word of an answer.
struct PlainWord {
  rl::var<std::uint64_t>* word;
  void operator=(std::uint64_t value) const { (*word)($) = value; }
};

constexpr std::uint32_t ring_depth = 2, posters = 2, posts = 3;

/// A ring in Relacy's memory.
template <Bug bug>
struct Ring {
  rl::atomic<std::uint64_t> next, known_taken, taken;
  rl::atomic<std::uint64_t> wanted;  ///< a poster sets it to wake a sleeping engine
  rl::atomic<std::uint64_t> freed[ring_depth], sequences[ring_depth], answered[ring_depth];
  rl::var<std::uint64_t> fields[ring_depth], answers[ring_depth];

  void clear() {
    for (rl::atomic<std::uint64_t>* word : {&next, &known_taken, &taken, &wanted}) word->store(0, rl::mo_relaxed, $);
    for (std::uint32_t slot = 0; slot < ring_depth; ++slot) {
      for (rl::atomic<std::uint64_t>* word : {&freed[slot], &sequences[slot], &answered[slot]})
        word->store(0, rl::mo_relaxed, $);
      fields[slot]($) = answers[slot]($) = 0;
    }
  }
};

template <Bug bug>
struct Memory {
  static constexpr std::uint32_t depth = ring_depth;
  static constexpr bool has_answers = true;
  Ring<bug>* ring;

  [[nodiscard]] Word next() const { return {&ring->next, false}; }
  [[nodiscard]] Word known_taken() const { return {&ring->known_taken, bug == Bug::relaxed_known}; }
  [[nodiscard]] Word taken() const { return {&ring->taken, bug == Bug::relaxed_taken}; }
  [[nodiscard]] Word freed(std::uint64_t slot) const { return {&ring->freed[slot], false}; }
  [[nodiscard]] Word sequence(std::uint64_t slot) const {
    return {&ring->sequences[slot], bug == Bug::relaxed_publish};
  }
  [[nodiscard]] Word near_sequence(std::uint64_t slot) const {
    return {&ring->sequences[slot], bug == Bug::divided_exchange};
  }
  [[nodiscard]] Word answer_sequence(std::uint64_t slot) const {
    return {&ring->answered[slot], bug == Bug::relaxed_answer};
  }
  void write(std::uint64_t slot, std::uint64_t fields) const { ring->fields[slot]($) = fields; }
  [[nodiscard]] std::uint64_t read(std::uint64_t slot) const { return ring->fields[slot]($); }
  [[nodiscard]] PlainWord answer(std::uint64_t slot) const { return {&ring->answers[slot]}; }
};

/// Posters post commands, every other with an answer; the engine, the last thread, carries out all of them. If the
/// engine sleeps and no poster wakes it, no thread makes progress, and the checker reports that.
template <Bug bug, bool sleeps>
struct Posts : rl::test_suite<Posts<bug, sleeps>, posters + 1> {
  Ring<bug> ring;
  std::uint64_t done[posters];  ///< commands of each poster that are complete, in order

  void before() {
    ring.clear();
    for (std::uint64_t& each : done) each = 0;
  }
  void after() {
    for (const std::uint64_t each : done) RL_ASSERT(each == posts);
  }
  void thread(unsigned index) {
    if (index == posters)
      serve();
    else
      post(index);
  }

 private:
  void post(unsigned index) {
    const Memory<bug> memory{&ring};
    for (std::uint64_t number = 0; number < posts; ++number) {
      std::uint64_t ticket = 0;
      while (detail::try_claim(memory, ticket, true) != detail::Claim::got) rl::yield(1, $);
      const std::uint64_t fields = 100 * (index + 1) + number;
      const bool answers = number % 2 == 0;
      publish(memory, fields, answers && bug != Bug::freed_at_once, ticket);
      if (!answers) continue;
      while (!detail::is_answered(memory, ticket)) rl::yield(1, $);
      RL_ASSERT(ring.answers[ticket % ring_depth]($) == 7 * fields);
      detail::free_slot(memory, ticket);
    }
  }
  void publish(const Memory<bug>& memory, std::uint64_t fields, bool answers, std::uint64_t ticket) {
    if (!sleeps)
      detail::publish_command(memory, fields, answers, ticket);
    else if (detail::publish_to_sleeper(memory, fields, answers, ticket) != 0)
      ring.wanted.store(1, rl::mo_release, $);
  }
  void idle(const Memory<bug>& memory, std::uint64_t ticket) {
    if (!sleeps) return rl::yield(1, $);
    constexpr std::uint64_t mark = 1;
    if (!detail::falls_asleep(memory, ticket, mark)) return;
    while (ring.wanted.load(rl::mo_acquire, $) == 0) rl::yield(1, $);
    ring.wanted.store(0, rl::mo_release, $);
  }
  void serve() {
    const Memory<bug> memory{&ring};
    for (std::uint64_t ticket = 0; ticket < posters * posts; ++ticket) {
      while (!detail::is_posted(memory, ticket)) idle(memory, ticket);
      const std::uint64_t fields = detail::take_command(memory, ticket);
      if (!detail::is_posted(memory, ticket + 1)) detail::release_slots(memory, ticket + 1);
      const std::uint64_t poster = fields / 100 - 1, number = fields % 100;
      RL_ASSERT(poster < posters && number == done[poster]);
      ++done[poster];
      if (number % 2 == 0) detail::publish_answer(memory, ticket, 7 * fields);
    }
  }
};

/// Keeps the first characters written to it. It does not allocate: Relacy defines `operator new` for its own use.
class Beginning : public std::streambuf {
 public:
  Beginning() { setp(text_, text_ + sizeof text_); }
  [[nodiscard]] std::string text() const { return {pbase(), pptr()}; }

 protected:
  int overflow(int character) override { return character; }

 private:
  char text_[1 << 14];
};

template <Bug bug, bool sleeps = false>
Verdict try_executions(unsigned executions) {
  Beginning kept;
  std::ostream report(&kept);
  rl::test_params params;
  params.iteration_count = executions;
  params.execution_depth_limit = 20'000;
  params.output_stream = params.progress_stream = &report;
  const bool is_right = rl::simulate<Posts<bug, sleeps>>(params);
  return {is_right, kept.text()};
}

}  // namespace

Verdict try_sleeping_engine(Bug bug, unsigned executions) {
  return bug == Bug::divided_exchange ? try_executions<Bug::divided_exchange, true>(executions)
                                      : try_executions<Bug::none, true>(executions);
}

Verdict try_command_ring(Bug bug, unsigned executions) {
  switch (bug) {
    case Bug::relaxed_publish:
      return try_executions<Bug::relaxed_publish>(executions);
    case Bug::relaxed_taken:
      return try_executions<Bug::relaxed_taken>(executions);
    case Bug::relaxed_known:
      return try_executions<Bug::relaxed_known>(executions);
    case Bug::relaxed_answer:
      return try_executions<Bug::relaxed_answer>(executions);
    case Bug::freed_at_once:
      return try_executions<Bug::freed_at_once>(executions);
    case Bug::divided_exchange:  // only in try_sleeping_engine
    case Bug::none:
      break;
  }
  return try_executions<Bug::none>(executions);
}

}  // namespace beeline
