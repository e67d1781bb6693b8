// SPDX-License-Identifier: Apache-2.0
// Active messages: each runs once at its target, with its arguments and its payload, in the order of its queue. Its
// poster sees what the function has stored.
#include <algorithm>
#include <vector>

#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/queue_cases.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::task_cases {

namespace {

using namespace beeline;

/// What a target records about one poster.
struct Seen {
  std::uint64_t tasks, sum, faults;
};

/// Counts the tasks that arrive at the target; checks their order, and each payload against its task's number.
struct Note {
  static constexpr const char* name = "note";
  struct Arguments {
    std::uint64_t number;
    std::uint32_t poster, queue;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, const Task& task) const {
    const Arguments& it = task.as<Arguments>();
    const auto* const bytes = static_cast<const std::uint8_t*>(task.payload);
    bool is_wrong = false;
    for (std::size_t i = group.thread_rank(); i < task.payload_bytes; i += group.size())
      is_wrong |= bytes[i] != static_cast<std::uint8_t>(it.number + i + it.poster);
    const bool any = group.any(is_wrong);
    if (group.thread_rank() != 0) return;
    Seen& seen = static_cast<Seen*>(task.object)[it.queue * ctx.size + it.poster];
    if (any || seen.tasks != it.number || task.poster != it.poster) ++seen.faults;
    ++seen.tasks, seen.sum += task.payload_bytes;
  }
};

/// Sends the value back by a task of the previous queue; that post may wait for a free cell.
struct Echo;
struct Back {
  static constexpr const char* name = "back";
  struct Arguments {
    std::uint64_t value;
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const Task& task) const {
    if (group.thread_rank() == 0) static_cast<Seen*>(task.object)->sum += task.as<Arguments>().value;
  }
};
using List = TaskList<Note, Echo, Back>;
struct Echo {
  static constexpr const char* name = "echo";
  struct Arguments {
    std::uint64_t value;
    std::byte rest[max_task_arguments - sizeof(std::uint64_t)];
  };
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context& ctx, const Task& task) const {
    const Back::Arguments back{task.as<Arguments>().value};
    static_cast<void>(post_task(group, ctx, task.channel, task_of<List, Back>(back, task.poster, 0)));
  }
};

/// Payload bytes of a task, between 0 and `most`.
BEELINE_HOST_DEVICE inline std::size_t payload_of(std::uint64_t number, std::size_t most) {
  return static_cast<std::size_t>(number * 37) % (most + 1);
}

struct NoteArguments {
  TaskChannel channel;
  std::uint8_t* payloads;  ///< [groups, most]
  std::size_t most;
  std::uint64_t first, count;
};

/// Starts a block for each queue; it posts to all ranks.
template <GroupKind kind>
struct PostNotes {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, NoteArguments a) const {
    if (place_of<kind>(grid).index % (place_of<kind>(grid).count / grid.blocks()) != 0) return;
    const auto group = group_of<kind>(grid);
    const std::uint32_t queue = grid.block_rank();
    std::uint8_t* const payload = a.payloads + queue * a.most;
    for (std::uint64_t number = a.first; number < a.first + a.count; ++number) {
      for (std::size_t i = group.thread_rank(); i < a.most; i += group.size())
        payload[i] = static_cast<std::uint8_t>(number + i + ctx.rank);
      group.sync();
      const Note::Arguments note{number, ctx.rank, queue};
      for (std::uint32_t rank = 0; rank < ctx.size; ++rank) {
        TaskPost post = task_of<List, Note>(note, rank, queue);
        post.payload = payload, post.payload_bytes = payload_of(number, a.most);
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_task(group, ctx, a.channel, post));
      }
    }
    for (std::uint32_t rank = 0; rank < ctx.size; ++rank)
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, quiet(group, ctx, a.channel, rank, queue));
  }
};

/// Posts notes from all ranks, and checks the records that they leave on this rank.
class NoteBook {
 public:
  NoteBook(RankTest& test, Team& team, const TaskOptions& options, std::size_t most)
      : test_(test), team_(team), queues_(options.queues), most_(most), tasks_(team, options),
        seen_(team, std::size_t{options.queues} * static_cast<std::size_t>(team.size())),
        payloads_(team, most == 0 ? 1 : options.queues * most),
        buffer_(team, std::max<std::size_t>(16, tasks_.payload_buffer_bytes(most))) {
    tasks_.register_function<Note>(
        {seen_.data(), most == 0 ? nullptr : buffer_.data(), most == 0 ? 0 : buffer_.bytes(), nullptr});
    tasks_.register_function<Echo>({});
    tasks_.register_function<Back>({seen_.data(), nullptr, 0, nullptr});
  }
  [[nodiscard]] Tasks<List>& tasks() { return tasks_; }
  [[nodiscard]] Seen* seen() { return seen_.data(); }
  [[nodiscard]] std::uint64_t posted() const { return posted_; }

  template <GroupKind kind>
  void post(std::uint64_t count) {
    test_.run(team_, test_.shape(queues_, true), PostNotes<kind>{},
              NoteArguments{tasks_.channel(), payloads_.data(), most_, posted_, count}, "notes");
    posted_ += count;
  }
  void check() {
    std::uint64_t bytes = 0;
    for (std::uint64_t number = 0; number < posted_; ++number) bytes += payload_of(number, most_);
    for (std::size_t i = 0; i < seen_.count(); ++i) {
      const Seen seen = test_.read_value(&seen_.data()[i]);
      BEELINE_CHECK_EQ(posted_, seen.tasks);
      BEELINE_CHECK_EQ(bytes, seen.sum);
      BEELINE_CHECK_EQ(std::uint64_t{0}, seen.faults);
    }
  }

 private:
  RankTest& test_;
  Team& team_;
  std::uint32_t queues_;
  std::size_t most_;
  Tasks<List> tasks_;
  SymmetricArray<Seen> seen_;
  SymmetricArray<std::uint8_t> payloads_;
  SymmetricArray<std::byte> buffer_;
  std::uint64_t posted_ = 0;
};

BEELINE_CASE(task, tasks_with_payloads, 1) {
  need_one_kind(test);
  World& world = test.world();
  for (const std::uint32_t workers : {2u, 4u})
    for (const std::size_t most : {std::size_t{0}, std::size_t{700}}) {
      NoteBook book(test, world, {.queues = 2, .depth = 8, .workers = workers}, most);
      for_each_group_kind(world, [&]<GroupKind kind>() { book.post<kind>(50); });
      world.barrier();  // each rank has seen its own tasks complete
      book.check();
      world.barrier();
    }
}

BEELINE_CASE(task, tasks_of_a_team, 2) {
  need_one_kind(test);
  const std::unique_ptr<Team> team = test.world().make_team(test.alternate_ranks());
  NoteBook book(test, *team, {.queues = 1, .depth = 4, .workers = 1}, 100);
  book.post<GroupKind::block>(20);
  book.tasks().quiet();
  book.check();
  team->barrier();
}

/// Destroying queues waits for their posted tasks; their memory is not touched afterwards.
BEELINE_CASE(task, queues_that_end_under_load, 1) {
  need_one_kind(test);
  World& world = test.world();
  const SymmetricArray<Seen> seen(world, 1);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    {
      Tasks<List> tasks(world, {.queues = 2, .depth = 64, .workers = 2});
      tasks.register_function<Note>({});
      tasks.register_function<Echo>({});
      tasks.register_function<Back>({seen.data(), nullptr, 0, nullptr});
      for (int i = 0; i < 20; ++i) tasks.post<Echo>({1, {}}, test.ahead(1), 1);
      world.synchronize();
    }
    BEELINE_CHECK_EQ(20 * round, test.read_value(&seen.data()->sum));
    world.barrier();
  }
}

struct EchoArguments {
  TaskChannel channel;
  std::uint32_t count;
};
struct EchoKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, EchoArguments a) const {
    for (std::uint32_t i = 1; i <= a.count; ++i)
      for (std::uint32_t rank = 0; rank < ctx.size; ++rank) {
        const Echo::Arguments echo{i, {}};
        BEELINE_DEVICE_CHECK_EQ(report, Status::ok,
                                post_task(grid.block(), ctx, a.channel, task_of<List, Echo>(echo, rank, 1)));
      }
  }
};

/// Every rank fills the queues of all ranks. Their tasks wait for free cells in the other ranks' queues.
BEELINE_CASE(task, places_exhausted_both_ways, 1) {
  need_one_kind(test);
  World& world = test.world();
  NoteBook book(test, world, {.queues = 2, .depth = 2, .workers = 2}, 0);
  constexpr std::uint32_t count = 60;
  test.run(test.shape(1, true), EchoKernel{}, EchoArguments{book.tasks().channel(), count}, "echoes");
  book.tasks().quiet();
  const std::uint64_t expected = std::uint64_t{count} * (count + 1) / 2 * static_cast<std::uint64_t>(test.size());
  BEELINE_CHECK_EQ(expected, test.read_value(&book.seen()->sum));
  world.barrier();
}

struct ReplyArguments {
  TaskChannel channel;
  std::uint64_t* reply;
};
/// A reply comes after the function has run. A post to a full queue returns a status.
struct ReplyKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, ReplyArguments a) const {
    const std::uint32_t peer = (ctx.rank + 1) % ctx.size;
    const Back::Arguments back{5};
    for (std::uint64_t value = 1; value <= 10; ++value) {
      TaskPost post = task_of<List, Back>(back, peer, 1);
      post.reply = a.reply, post.reply_value = value;
      Status status = Status::timeout;
      while (status == Status::timeout) status = post_task(grid.block(), ctx, a.channel, post, Timeout::test());
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(grid.block(), ctx, a.reply, Compare::equal, value, peer));
    }
  }
};

BEELINE_CASE(task, replies_and_completions, 1) {
  need_one_kind(test);
  World& world = test.world();
  Tasks<List> tasks(world, {.queues = 2, .depth = 4, .workers = 2});
  const SymmetricArray<Seen> seen(world, 1);
  const Signals words(world, 2);
  tasks.register_function<Back>({seen.data(), nullptr, 0, words.data() + 1});
  test.run(test.shape(1, true), ReplyKernel{}, ReplyArguments{tasks.channel(), words.data()}, "replies");
  tasks.quiet();
  BEELINE_CHECK_EQ(std::uint64_t{50}, test.read_value(&seen.data()->sum));
  BEELINE_CHECK_EQ(std::uint64_t{10}, test.read_value(words.data() + 1));
  world.barrier();
}

/// Posts a task with a reply to the next rank.
struct OneTaskKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, ReplyArguments a) const {
    if (grid.block().thread_rank() != 0) return;
    const std::uint32_t peer = (ctx.rank + 1) % ctx.size;
    const Back::Arguments one{1};
    TaskPost post = task_of<List, Back>(one, peer);
    post.reply = a.reply, post.reply_value = 1;
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_task(Thread{}, ctx, a.channel, post));
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(Thread{}, ctx, a.reply, Compare::equal, 1, peer));
  }
};

/// A task for a rank of another node is one command, on a GPU with one more that asks for workers; its reply and the
/// report that it has run are one, too.
BEELINE_CASE(task, one_command_each_way, 2) {
  need_one_kind(test);
  World& world = test.world();
  Tasks<List> tasks(world, {.queues = 1, .workers = 1});
  const SymmetricArray<Seen> seen(world, 1);
  const Signals reply(world, 1);
  tasks.register_function<Back>({seen.data(), nullptr, 0, nullptr});
  const Context& ctx = world.context();
  const auto posted = [&] {
    return ctx.has_routes == 0 ? std::uint64_t{0} : test.read_value(&ctx.routes->tickets[0].next);
  };
  const auto is_remote = [&](int rank) {
    return ctx.access_to(static_cast<std::uint32_t>(rank)).access == PeerAccess::engine;
  };
  const std::uint64_t before = posted(), of_task = world.device().is_gpu() ? 2 : 1;
  world.barrier();  // no rank has answered yet
  test.run(test.shape(1, true), OneTaskKernel{}, ReplyArguments{tasks.channel(), reply.data()}, "one task");
  tasks.quiet();
  BEELINE_CHECK_EQ((is_remote(test.ahead(1)) ? of_task : 0) + (is_remote(test.behind(1)) ? 1u : 0u), posted() - before);
  BEELINE_CHECK_EQ(std::uint64_t{1}, test.read_value(&seen.data()->sum));
  world.barrier();
}

constexpr std::uint64_t looks = 200;
struct Looked {
  std::uint64_t next;  ///< the function's
  std::uint64_t words[looks];
};
/// Answers with the next word of its object.
struct Look {
  static constexpr const char* name = "look";
  struct Arguments {};
  template <class Group>
  BEELINE_HOST_DEVICE void operator()(const Group& group, const Context&, const Task& task) const {
    if (group.thread_rank() != 0) return;
    auto& looked = *static_cast<Looked*>(task.object);
    task.answer(looked.words[looked.next++]);
  }
};
using Looks = TaskList<Look>;

struct LookArguments {
  TaskChannel channel;
  Looked* looked;
  std::uint64_t* reply;
};
/// A function sees what its poster stored before the post, although earlier functions have read words beside it.
struct LookKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, LookArguments a) const {
    if (grid.block().thread_rank() != 0) return;
    const std::uint32_t peer = (ctx.rank + 1) % ctx.size;
    const Look::Arguments none{};
    for (std::uint64_t value = 1; value <= looks; ++value) {
      if (ctx.access_to(peer).access == PeerAccess::direct)
        ctx.at(a.looked, peer)->words[value - 1] = value;
      else
        put_value(ctx, &a.looked->words[value - 1], value, peer);
      TaskPost post = task_of<Looks, Look>(none, peer);
      post.reply = a.reply, post.reply_value = 0;
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, post_task(Thread{}, ctx, a.channel, post));
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(Thread{}, ctx, a.reply, Compare::not_equal, value - 1, peer));
      BEELINE_DEVICE_CHECK_EQ(report, value, load_value(a.reply));  // an answer orders nothing
    }
  }
};

BEELINE_CASE(task, stores_before_a_post, 1) {
  need_one_kind(test);
  World& world = test.world();
  Tasks<Looks> tasks(world, {.queues = 1, .workers = 1});
  const SymmetricArray<Looked> looked(world, 1);
  const Signals reply(world, 1);
  tasks.register_function<Look>({looked.data(), nullptr, 0, nullptr});
  test.run(test.shape(1, true), LookKernel{}, LookArguments{tasks.channel(), looked.data(), reply.data()}, "looks");
  tasks.quiet();
  world.barrier();
}

/// A function that is registered again while workers poll their queues replaces the earlier one for all later tasks.
BEELINE_CASE(task, functions_registered_again, 1) {
  need_one_kind(test);
  World& world = test.world();
  constexpr std::int64_t lease_ns = 50'000'000;  // workers still run when the function is registered again
  Tasks<List> tasks(world, {.queues = 1, .workers = 1, .lease_ns = lease_ns, .idle_ns = lease_ns});
  const SymmetricArray<Seen> seen(world, 3);
  for (std::uint64_t round = 0; round < seen.count(); ++round) {
    tasks.register_function<Back>({seen.data() + round, nullptr, 0, nullptr});
    tasks.post<Back>({round + 1}, test.ahead(1), 0);
    world.synchronize();
    tasks.quiet();
  }
  for (std::uint64_t round = 0; round < seen.count(); ++round)
    BEELINE_CHECK_EQ(round + 1, test.read_value(&seen.data()[round].sum));
  world.barrier();
}

/// Tasks complete without any CPU and without a new lease of the target. A lease ends early only when a second passes
/// without a task, so that a busy machine does not fail the case.
BEELINE_CASE(task, ten_thousand_tasks_in_one_lease, 1) {
  need_one_kind(test);
  World& world = test.world();
  constexpr std::uint64_t count = under_thread_sanitizer ? 1'000 : 10'000;
  NoteBook book(test, world,
                {.queues = 1, .depth = 64, .workers = 1, .lease_ns = 60'000'000'000, .idle_ns = 1'000'000'000}, 0);
  book.post<GroupKind::thread>(1);
  world.barrier();
  const std::uint64_t before = book.tasks().leases();
  book.post<GroupKind::thread>(count);
  BEELINE_CHECK_EQ(before, book.tasks().leases());
  BEELINE_CHECK_EQ(test.on_gpu() ? std::uint64_t{2} : 0, before);  // the first lease loads the code
  world.barrier();
  book.check();
  world.barrier();
}

/// Kernels that fill the device, allocations, and calls that wait for all of the device's work complete beside tasks.
BEELINE_CASE(task, whole_devices_beside_tasks, 1) {
  need_one_kind(test);
  World& world = test.world();
  NoteBook book(test, world, {.queues = 1, .depth = 16, .workers = 1}, 64);
  FullDevice full(test);
  for (int round = 0; round < 10; ++round) {
    full.launch();
    book.post<GroupKind::block>(30);
    const SymmetricArray<std::byte> memory(world, 4096);
    full.synchronize();
  }
  book.tasks().quiet();
  book.check();
  world.barrier();
}

BEELINE_CASE(task, both_kinds_of_rank_are_refused, 2) {
  World& world = test.world();
  test.skip_if(!world.mixed(), "ranks of one kind");
  check_error(Status::unavailable, {"GPU ranks and host ranks"}, [&] { const Tasks<List> tasks(world); });
  world.barrier();
}

}  // namespace

}  // namespace beeline_test::task_cases
