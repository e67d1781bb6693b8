// SPDX-License-Identifier: Apache-2.0
// Tasks that the threads of host ranks run themselves, in turns with the workers; on GPUs the same calls leave them to
// the workers.
#include <string_view>

#include "tests/conformance/queue_cases.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test::task_caller_cases {

namespace {

using namespace beeline;

/// What a rank has received from each poster. Tasks of one queue with one worker change it.
struct Received {
  std::uint64_t tasks, words, faults;
};

/// Checks order and payload, and posts a reply to the poster in queue 0.
struct Deliver {
  static constexpr const char* name = "deliver";
  struct Arguments {
    std::uint64_t number;  ///< of the poster's tasks to this rank, from 0 on
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, const Task& task) const;
};
/// A reply, which counts at the poster.
struct Reply {
  static constexpr const char* name = "reply";
  struct Arguments {};
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const Task& task) const {
    if (group.thread_rank() == 0) ++static_cast<Received*>(task.object)[task.poster].tasks;
  }
};
using List = TaskList<Deliver, Reply>;

constexpr std::uint64_t most_words = 100;

/// Words of a poster's task; the lengths differ, so that some payloads travel in slots.
BEELINE_HOST_DEVICE std::uint64_t words_of(std::uint64_t number) { return number * 7 % (most_words + 1); }
BEELINE_HOST_DEVICE std::uint64_t word_of(std::uint64_t number, std::uint64_t poster, std::uint64_t index) {
  return (number << 32 | poster << 16) + index;
}

template <class Group>
BEELINE_HOST_DEVICE void Deliver::operator()(const Group& group, const Context& ctx, const Task& task) const {
  const std::uint64_t number = task.as<Arguments>().number;
  if (group.thread_rank() == 0) {
    Received& mine = static_cast<Received*>(task.object)[task.poster];
    bool is_right = number == mine.tasks && task.payload_bytes == 8 * words_of(number);
    for (std::uint64_t i = 0; is_right && i < words_of(number); ++i)
      is_right = static_cast<const std::uint64_t*>(task.payload)[i] == word_of(number, task.poster, i);
    ++mine.tasks, mine.words += words_of(number), mine.faults += is_right ? 0 : 1;
  }
  static_cast<void>(post_task(group, ctx, task.channel, task_of<List, Reply>({}, task.poster, 0)));
}

struct CallerArguments {
  TaskChannel channel;
  TaskRunner<List> runner;
  std::uint64_t* payload;  ///< [ranks, most_words] for targets on other nodes
  std::uint64_t rounds;
};
/// Posts tasks of both kinds to all ranks, and runs those that arrive: between posts, in waits for full queues, and
/// until its own have run.
struct CallerKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, CallerArguments a) const {
    if (grid.thread_rank() != 0) return;
    const Thread self;
    for (std::uint64_t round = 0; round < a.rounds; ++round) {
      for (std::uint32_t rank = 0; rank < ctx.size; ++rank)
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, deliver(ctx, a, rank, round));
      if (round % 3 == 0) static_cast<void>(run_tasks(a.runner, 2));
    }
    for (std::uint32_t rank = 0; rank < ctx.size; ++rank)
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(self, ctx, a.channel, rank, 1, a.runner));
  }

 private:
  static BEELINE_HOST_DEVICE Status deliver(const Context& ctx, const CallerArguments& a, std::uint32_t rank,
                                            std::uint64_t round) {
    const Deliver::Arguments arguments{round};
    TaskPost post = task_of<List, Deliver>(arguments, rank, 1);
    post.payload_bytes = 8 * most_words;
    TaskSpace space{};
    const Status status = round % 2 == 0 ? reserve_task(ctx, a.channel, post, space, a.runner) : Status::unreachable;
    if (status != Status::ok && status != Status::unreachable) return status;
    auto* const words =
        status == Status::ok ? static_cast<std::uint64_t*>(space.payload) : a.payload + rank * most_words;
    for (std::uint64_t i = 0; i < words_of(round); ++i) words[i] = word_of(round, ctx.rank, i);
    post.payload_bytes = 8 * words_of(round);
    if (status == Status::ok) {
      post_reserved(ctx, a.channel, post, space);
      return Status::ok;
    }
    post.payload = words;
    return post_task(Thread{}, ctx, a.channel, post, a.runner);
  }
};

/// Queues of two cells for both kinds of tasks, and what they deliver. Made by all ranks together.
class Deliveries {
 public:
  Deliveries(RankTest& test, std::uint64_t rounds)
      : test_(test), rounds_(rounds), tasks_(test.world(), {.queues = 2, .depth = 2, .workers = 2}),
        received_(test.world(), size()), replies_(test.world(), size()), payload_(test.world(), size() * most_words),
        buffer_(test.world(), tasks_.payload_buffer_bytes(8 * most_words)) {
    tasks_.register_function<Deliver>({received_.data(), buffer_.data(), buffer_.bytes(), nullptr});
    tasks_.register_function<Reply>({.object = replies_.data()});
  }

  [[nodiscard]] TaskRunner<List> runner() const { return tasks_.runner(); }
  void post_all(std::string_view what) {
    test_.run(test_.shape(1, true), CallerKernel{},
              CallerArguments{tasks_.channel(), tasks_.runner(), payload_.data(), rounds_}, what);
  }
  /// Checks that each rank has posted to each.
  void check() {
    tasks_.quiet();
    std::uint64_t words = 0;
    for (std::uint64_t number = 0; number < rounds_; ++number) words += words_of(number);
    for (int poster = 0; poster < test_.size(); ++poster) {
      const Received mine = test_.read_value(received_.data() + poster);
      BEELINE_CHECK_EQ(rounds_, mine.tasks);
      BEELINE_CHECK_EQ(words, mine.words);
      BEELINE_CHECK_EQ(std::uint64_t{0}, mine.faults);
      BEELINE_CHECK_EQ(rounds_, test_.read_value(replies_.data() + poster).tasks);
    }
    test_.world().barrier();
  }

 private:
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(test_.size()); }

  RankTest& test_;
  const std::uint64_t rounds_;
  Tasks<List> tasks_;
  SymmetricArray<Received> received_, replies_;
  SymmetricArray<std::uint64_t> payload_;  ///< [ranks, most_words]
  SymmetricArray<std::byte> buffer_;
};

/// All ranks post to all, through queues of two cells, while their tasks post replies.
BEELINE_CASE(task, callers_run_tasks, 1) {
  need_one_kind(test);
  Deliveries deliveries(test, 120);
  deliveries.post_all("callers run tasks");
  deliveries.check();
}

struct CallsOnce {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, DeviceReport*, const TaskRunner<List>& runner) const {
    if (grid.thread_rank() == 0) static_cast<void>(run_tasks(runner));
  }
};

/// A rank that has called runs the tasks of others, too, when it only waits: its worker goes on.
BEELINE_CASE(task, a_worker_goes_on_when_calls_end, 2) {
  need_one_kind(test);
  Deliveries deliveries(test, 20);
  test.run(test.shape(1, true), CallsOnce{}, deliveries.runner(), "one call");
  for (int poster = 0; poster < test.size(); ++poster) {
    if (test.rank() == poster) deliveries.post_all("one rank posts");
    test.world().barrier();
  }
  deliveries.check();
}

}  // namespace

}  // namespace beeline_test::task_caller_cases
