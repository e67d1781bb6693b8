// SPDX-License-Identifier: Apache-2.0
/// @file
/// The cost of a post to a verbs-style queue pair and of a poll, by each step of optimisation (seed 000, tables 5.2 to
/// 5.4), beside the costs of a command queue in the same placement: time, accesses to rings and queues, instructions.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "beeline/control/post.hpp"
#include "cases/cases.hpp"
#include "cases/verbs_pairs.hpp"
#include "harness/call_cost.hpp"

namespace beeline::bench::verbs_calls_cases {

namespace {

using namespace verbs_pairs;

/// Posts and polls by a step of optimisation. A request writes eight bytes to the peer, and holds them itself, as the
/// commands of a queue do.
template <VerbsSteps steps>
struct VerbsCalls {
  VerbsQueuesView queues;
  Actions actions;

  template <class Access>
  BEELINE_HOST_DEVICE bool post(const Context&) const {
    return post_send<steps, Access>(Thread{}, queues, 0, actions.write()) == Status::ok;
  }
  template <class Access>
  BEELINE_HOST_DEVICE bool poll(const Context&) const {
    VerbsCompletion done;
    return poll_completion<steps, Access>(Thread{}, queues, 0, done) == Status::ok && done.status == VerbsStatus::ok;
  }
  /// Waits until a poll finds the completion.
  BEELINE_HOST_DEVICE bool await(const Context& ctx) const {
    const beeline::detail::VerbsPoller<steps, beeline::detail::DirectAccess> poller(queues, 0);
    if (poller.wait(Thread{}, ctx, Timeout::none()) != Status::ok) return false;
    // Polls of step 4 do not free entries, and polls of other steps use the same queue pair.
    if constexpr (!steps.checks) queues.posted[0].sends_done = queues.posted[0].sends;
    return true;
  }
  /// Waits for the completion, and takes it.
  BEELINE_HOST_DEVICE bool finish(const Context& ctx) const {
    VerbsCompletion done;
    if (wait_completion<steps>(Thread{}, ctx, queues, 0, done) != Status::ok) return false;
    if constexpr (!steps.checks) queues.posted[0].sends_done = queues.posted[0].sends;
    return done.status == VerbsStatus::ok;
  }
};

/// The calls of a kernel that asks a CPU thread to post. Its accesses are not counted.
struct AssistedCalls {
  VerbsAssistedView queues;
  VerbsSegment to, from;

  template <class Access>
  BEELINE_HOST_DEVICE bool post(const Context&) const {
    return post_assisted(Thread{}, queues, 0, write_request(to, from)) == Status::ok;
  }
  template <class Access>
  BEELINE_HOST_DEVICE bool poll(const Context& ctx) const {
    VerbsCompletion done;
    return wait_assisted(Thread{}, ctx, queues, 0, false, done) == Status::ok && done.status == VerbsStatus::ok;
  }
  BEELINE_HOST_DEVICE bool await(const Context& ctx) const {
    const std::uint64_t ticket = queues.asked[0].answered;
    const VerbsMailbox& mailbox = queues.mailboxes[ticket & (queues.depth - 1)];
    return beeline::detail::await_engine(
               ctx, {}, [&] { return beeline::detail::load_acquired(mailbox.answered) == ticket + 1; }) == Status::ok;
  }
  BEELINE_HOST_DEVICE bool finish(const Context& ctx) const { return poll<beeline::detail::DirectAccess>(ctx); }
};

/// The calls of a command queue: a put of eight bytes in the command, and `quiet`.
struct CommandCalls {
  CommandQueuesView channel;
  std::byte *to, *from;
  std::uint32_t peer;

  template <class Access>
  BEELINE_HOST_DEVICE bool post(const Context& ctx) const {
    return post_put(Thread{}, ctx, to, from, sizeof(std::uint64_t), peer, channel.queue(0)) == Status::ok;
  }
  template <class Access>
  BEELINE_HOST_DEVICE bool poll(const Context& ctx) const {
    return quiet(Thread{}, ctx, channel.queue(0)) == Status::ok;
  }
  BEELINE_HOST_DEVICE bool await(const Context& ctx) const {
    return quiet(Thread{}, ctx, channel.queue(0)) == Status::ok;
  }
  BEELINE_HOST_DEVICE bool finish(const Context& ctx) const { return await(ctx); }
};

enum class Part { post, poll, both };
constexpr const char* names[] = {"post", "poll", "post_poll"};

/// Makes one post, waits for the end of its request, and polls once. Returns `cost(call)` of the part.
template <class Calls, class Cost>
BEELINE_HOST_DEVICE std::uint64_t cost_of_part(const Context& ctx, const Calls& calls, Part part, const Cost& cost) {
  using Access = typename Cost::Access;
  std::uint64_t sum = 0;
  bool is_done = true;
  const auto post = [&] { is_done &= calls.template post<Access>(ctx); };
  const auto poll = [&] { is_done &= calls.template poll<Access>(ctx); };
  if (part == Part::post)
    sum = cost(post);
  else
    post();
  is_done = is_done && calls.await(ctx);
  if (part == Part::poll)
    sum = cost(poll);
  else
    poll();
  return is_done ? sum : ~std::uint64_t{0};
}

struct TimeOf {
  using Access = beeline::detail::DirectAccess;
  template <class Call>
  BEELINE_HOST_DEVICE std::uint64_t operator()(Call call) const {
    const std::uint64_t start = machine::clock_ns();
    call();
    return machine::clock_ns() - start;
  }
};
struct AccessesOf {
  using Access = CountingAccess;
  CallCost* cost;
  template <class Call>
  BEELINE_HOST_DEVICE std::uint64_t operator()(Call call) const {
    *cost = accesses_of(call);
    return 0;
  }
};
struct InstructionsOf {
  using Access = beeline::detail::DirectAccess;
  template <class Call>
  BEELINE_HOST_DEVICE std::uint64_t operator()(Call call) const {
    return instructions_of(call);
  }
};

/// Times a post, its request and the wait for its completion, together or one part alone.
struct TimedCalls {
  static constexpr bool has_sound_copies = true;  ///< it takes references
  Part part;

  template <class Grid, class Calls>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, const Calls& calls) const {
    using Access = beeline::detail::DirectAccess;
    if (grid.block().thread_rank() != 0) return;
    if (part == Part::both)
      time_rounds(Thread{}, loop, [&](std::uint64_t) { return calls.template post<Access>(ctx) && calls.finish(ctx); });
    else
      time_parts(loop, [&](std::uint64_t) { return cost_of_part(ctx, calls, part, TimeOf{}) + 1; });
  }
};
/// The least of several counts, since some include waking an engine that sleeps.
template <class Calls>
BEELINE_HOST_DEVICE CallCost least_cost(const Context& ctx, const Calls& calls, Part part) {
  CallCost least{};
  for (int i = 0; i < 8; ++i) {
    CallCost found{};
    static_cast<void>(cost_of_part(ctx, calls, part, AccessesOf{&found}));
    found.instructions = cost_of_part(ctx, calls, part, InstructionsOf{});
    if (i == 0 || found.instructions < least.instructions) least = found;
  }
  return least;
}
struct CountedCalls {
  static constexpr bool has_sound_copies = true;  ///< it takes references
  Part part;

  template <class Grid, class Calls>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CallCost* cost, const Calls& calls) const {
    if (grid.block().thread_rank() == 0) *cost = least_cost(ctx, calls, part);
  }
};
/// Collective. The cost of a part in a kernel of rank 0, or on its CPU thread.
template <class Calls>
CallCost cost_of_calls(Bench& bench, Placement placement, Part part, const Calls& calls) {
  World& world = bench.world();
  const SymmetricArray<CallCost> cost(world, 1);
  CallCost found{};
  if (bench.leads() && placement == Placement::host) {
    found = least_cost(world.host_context(), calls, part);
  } else if (bench.leads()) {
    launch(world, {.waits = true}, CountedCalls{part}, cost.data(), calls);
    world.synchronize();
    world.copy(&found, cost.data(), sizeof found);
  }
  world.barrier();
  return found;
}
template <class Calls>
std::vector<double> time_by_cpu(Bench& bench, Rounds rounds, Part part, const Calls& calls) {
  const Context& ctx = bench.world().host_context();
  using Access = beeline::detail::DirectAccess;
  return time_parts_on_host(bench, rounds, [&] {
    const std::uint64_t start = machine::clock_ns();
    std::uint64_t ns = 0;
    if (part != Part::both) {
      ns = cost_of_part(ctx, calls, part, TimeOf{});
    } else {
      const bool is_done = calls.template post<Access>(ctx) && calls.finish(ctx);
      ns = is_done ? machine::clock_ns() - start : ~std::uint64_t{0};
    }
    require(ns != ~std::uint64_t{0}, Status::internal, "a request to an adapter failed");
    return static_cast<double>(ns);
  });
}

///   owner  has the queues, and source and destination of the calls in its `buffers()`
template <class Calls, class Owner>
Measurement measurement_of(Bench& bench, const std::string& method, Placement placement, Part part, Calls calls,
                           const std::shared_ptr<Owner>& owner) {
  const auto timed = std::make_shared<TimedKernel>(bench);
  Measurement measurement =
      message_measurement(bench, owner->buffers(), Receivers::second, method, [=, &bench](Rounds rounds) {
        static_cast<void>(owner);
        if (placement == Placement::host) return time_by_cpu(bench, rounds, part, calls);
        return timed->run(single_thread(bench).threads, bench.leads(), rounds, TimedCalls{part}, calls);
      });
  measurement.operation = names[static_cast<int>(part)];
  measurement.unit = Unit::microseconds;
  if (part != Part::both) {
    measurement.most_iterations = 500;  // the rest of each request takes longer than the part
    if constexpr (!std::is_same_v<Calls, AssistedCalls>)
      for (auto& each : cost_of_calls(bench, placement, part, calls).settings()) measurement.settings.push_back(each);
  }
  return measurement;
}

/// The measurements of a part for all steps, which share the queue pairs.
template <std::size_t... rows>
std::vector<Measurement> prepare_steps(Bench& bench, Part part, Placement placement, std::index_sequence<rows...>) {
  const auto verbs = std::make_shared<Verbs>(bench, sizeof(std::uint64_t), placement);
  const Actions actions = verbs->actions(Protocol::flag);
  std::vector<Measurement> all = {measurement_of(bench, method_of(placement, completion), placement, part,
                                                 VerbsCalls<verbs_steps[rows]>{verbs->queues().view, actions},
                                                 verbs)...};
  for (std::size_t step = 0; step < all.size(); ++step)
    all[step].settings.insert(all[step].settings.begin(), {"step", std::uint64_t{step}});
  return all;
}

/// The command queue of the same placement.
class Commands {
 public:
  Commands(Bench& bench, Placement placement)
      : queues_(with_room(bench, placement).world(), 1, {.engine = engine_of(placement)}),
        buffers_(std::make_shared<MessageBuffers>(bench, sizeof(std::uint64_t))) {}
  [[nodiscard]] const std::shared_ptr<MessageBuffers>& buffers() const { return buffers_; }
  [[nodiscard]] CommandCalls calls(std::uint32_t peer) const {
    return {queues_.channel(), buffers_->destination(), buffers_->source(), peer};
  }

 private:
  CommandQueues queues_;
  std::shared_ptr<MessageBuffers> buffers_;
};

Case of_verbs(Placement placement, const char* operation, Part part) {
  return {operation, method_of(placement, completion), false, [=](Bench& bench, std::uint64_t) {
            return prepare_steps(bench, part, placement, std::make_index_sequence<std::size(verbs_steps)>());
          }};
}
Case of_commands(Placement placement, const char* operation, Part part) {
  const std::string method = std::string(name_of(placement)) + "/command/quiet";
  return {operation, method, false, [=](Bench& bench, std::uint64_t) -> std::vector<Measurement> {
            const auto commands = std::make_shared<Commands>(bench, placement);
            return {measurement_of(bench, method, placement, part, commands->calls(bench.peer()), commands)};
          }};
}
Case of_assisted(const char* operation, Part part) {
  constexpr Placement placement = Placement::assisted;
  return {operation, method_of(placement, completion), false,
          [=](Bench& bench, std::uint64_t) -> std::vector<Measurement> {
            const auto verbs = std::make_shared<Verbs>(bench, sizeof(std::uint64_t), placement);
            const Actions actions = verbs->actions(Protocol::flag);
            const AssistedCalls calls{verbs->queues().mailboxes, actions.to, actions.from};
            return {measurement_of(bench, method_of(placement, completion), placement, part, calls, verbs)};
          }};
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const Part part : {Part::post, Part::poll, Part::both}) {
    const char* const name = names[static_cast<int>(part)];
    for (const Placement placement : {Placement::resident, Placement::proxy, Placement::host})
      all.push_back(of_verbs(placement, name, part));
    for (const Placement placement : {Placement::resident, Placement::proxy})
      all.push_back(of_commands(placement, name, part));
    all.push_back(of_assisted(name, part));
  }
  return all;
}

const ListedCases cases(Command::adapters, all_cases());

}  // namespace

}  // namespace beeline::bench::verbs_calls_cases
