// SPDX-License-Identifier: Apache-2.0
/// @file
/// Requests in the RMA-style format (docs/adapters.md): ping-pong, message after message one way, and the cost of a
/// post and of a poll. Four placements: a kernel posts to a resident block (resident), or to threads of the host
/// (proxy); CPU threads post (host), or do so when a kernel asks them to (assisted). Two protocols: the units of the
/// adapter notify both ranks (notification), or a second put sets a flag, which the receiver polls (flag).

#include "beeline/control/rma.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "beeline/host/rma_ports.hpp"
#include "cases/adapter_placements.hpp"
#include "cases/cases.hpp"
#include "harness/call_cost.hpp"
#include "harness/message_buffers.hpp"
#include "peers/bare_ping_pong.hpp"

namespace beeline::bench::rma_cases {

namespace {

enum class Protocol { notification, flag };

struct Message {
  std::byte* destination;
  const std::byte* source;
  std::uint64_t bytes;
  std::uint64_t *flag, *flag_source;  ///< in memory that the receiver polls
  RmaPort port;
  Protocol protocol;
};

/// Reads notifications up to one of `kind`, and frees their entries.
BEELINE_HOST_DEVICE bool await_notification(const Context& ctx, const RmaPort& port, RmaUnit kind) {
  for (RmaNotification notification{}; rma_wait(ctx, port, notification) == Status::ok;) {
    rma_free(port);
    if (notification.error() != RmaError::none) return false;
    if (notification.kind() == kind) return true;
  }
  return false;
}

BEELINE_HOST_DEVICE bool send(const Context& ctx, const Message& m, std::uint64_t sequence, std::uint32_t peer) {
  const bool notifies = m.protocol == Protocol::notification;
  const RmaTo to{peer, notifies ? rma_requester | rma_completer : rma_none};
  if (rma_put(Thread{}, ctx, m.port, m.destination, m.source, m.bytes, to) != Status::ok) return false;
  if (notifies) return true;
  *m.flag_source = sequence;  // the flag's last put is complete, since the data's put was posted after it
  return rma_put(Thread{}, ctx, m.port, m.flag, m.flag_source, 1, to) == Status::ok;
}

BEELINE_HOST_DEVICE bool receive(const Context& ctx, const Message& m, std::uint64_t sequence, std::uint32_t peer) {
  if (m.protocol == Protocol::notification) return await_notification(ctx, m.port, rma_completer);
  return wait(Thread{}, ctx, m.flag, Compare::greater_equal, sequence, peer) == Status::ok;
}

/// Puts and waits until the put is complete: the adapter of the source has one request in flight.
BEELINE_HOST_DEVICE bool put_and_wait(const Context& ctx, const Message& m, std::uint32_t peer) {
  const bool notifies = m.protocol == Protocol::notification;
  const RmaTo to{peer, notifies ? rma_requester : rma_none};
  if (rma_put(Thread{}, ctx, m.port, m.destination, m.source, m.bytes, to) != Status::ok) return false;
  return notifies ? await_notification(ctx, m.port, rma_requester) : rma_quiet(ctx, m.port) == Status::ok;
}

/// The actions of a placement: `adapter_placements.hpp`.
struct Actions {
  Message message;
  std::uint32_t peer;

  BEELINE_HOST_DEVICE bool send(const Context& ctx, std::uint64_t sequence) const {
    return rma_cases::send(ctx, message, sequence, peer);
  }
  BEELINE_HOST_DEVICE bool receive(const Context& ctx, std::uint64_t sequence) const {
    return rma_cases::receive(ctx, message, sequence, peer);
  }
  BEELINE_HOST_DEVICE bool put(const Context& ctx, std::uint64_t) const { return put_and_wait(ctx, message, peer); }
};

std::string method_of(Placement placement, Protocol protocol) {
  return fmt::format("{}/rma/{}", name_of(placement), protocol == Protocol::notification ? "notification" : "flag");
}

/// One message size by one placement.
class Rma {
 public:
  Rma(Bench& bench, std::uint64_t bytes, Placement placement, Protocol protocol)
      : buffers_(std::make_shared<MessageBuffers>(bench, bytes)), flags_(bench.world(), 2, heap_of(placement)),
        ports_(with_room(bench, placement).world(), {.engine = engine_of(placement), .depth = 8}),
        placed_(bench, placement), protocol_(protocol) {}

  [[nodiscard]] const std::shared_ptr<MessageBuffers>& buffers() const { return buffers_; }
  [[nodiscard]] Actions actions(const Bench& bench) const {
    return {{buffers_->destination(), buffers_->source(), buffers_->bytes(), &flags_.data()[0].value,
             &flags_.data()[1].value, ports_.view().port(0), protocol_},
            bench.peer()};
  }
  [[nodiscard]] Placed& placed() { return placed_; }

 private:
  std::shared_ptr<MessageBuffers> buffers_;
  SymmetricArray<PaddedWord> flags_;
  RmaPorts ports_;
  Placed placed_;
  const Protocol protocol_;
};

std::vector<Measurement> prepare_messages(Bench& bench, std::uint64_t bytes, Placement placement, Protocol protocol) {
  bench.require_reach_of_engines(true);
  const auto rma = std::make_shared<Rma>(bench, bytes, placement, protocol);
  std::vector<Measurement> all;
  const bool is_one_word = bytes == sizeof(std::uint64_t);
  if (is_one_word) all.push_back(bare_put_signal(bench, rma->buffers()));
  all.push_back(
      message_measurement(bench, rma->buffers(), Receivers::both, method_of(placement, protocol),
                          [=, &bench](Rounds rounds) { return rma->placed().ping_pong(rounds, rma->actions(bench)); }));
  if (!is_one_word) return all;
  all[0].peer_of = all[1].method;
  all[1].baseline = 0;
  return all;
}

std::vector<Measurement> prepare_puts(Bench& bench, std::uint64_t bytes, Placement placement, Protocol protocol) {
  const auto rma = std::make_shared<Rma>(bench, bytes, placement, protocol);
  return {message_measurement(bench, rma->buffers(), Receivers::second, method_of(placement, protocol),
                              [=, &bench](Rounds rounds) { return rma->placed().flood(rounds, rma->actions(bench)); })};
}

/// Adds 1 to a lock of the peer, and waits for its old value, which only these calls have changed.
struct LockActions {
  RmaPort port;
  std::uint32_t peer;

  BEELINE_HOST_DEVICE bool put(const Context& ctx, std::uint64_t sequence) const {
    const auto before = static_cast<std::uint32_t>(sequence - 1);
    RmaNotification notification{};
    if (rma_lock(ctx, port, 0, before, 1, {peer, rma_completer}) != Status::ok) return false;
    if (rma_wait(ctx, port, notification) != Status::ok) return false;
    rma_free(port);
    return notification.error() == RmaError::none && notification.lock_value() == before;
  }
};

std::vector<Measurement> prepare_locks(Bench& bench, Placement placement) {
  const auto rma = std::make_shared<Rma>(bench, sizeof(std::uint64_t), placement, Protocol::notification);
  const LockActions actions{rma->actions(bench).message.port, bench.peer()};
  Measurement measurement{
      .operation = "lock", .method = method_of(placement, Protocol::notification), .bytes = rma_lock_bytes};
  const auto time = [=](Rounds rounds) { return rma->placed().flood(rounds, actions); };
  measurement.time = time;
  measurement.verify = [=](std::uint64_t) { return static_cast<void>(time({})), true; };  // throws for a wrong value
  return {std::move(measurement)};
}

/// A part of a put of eight bytes: its post to a free page; the same post without checks of its arguments; or its poll,
/// which takes a notification that has arrived, and frees the entry.
enum class Part { post, unchecked_post, poll };

template <class Access>
BEELINE_HOST_DEVICE bool do_part(const Context& ctx, const Message& m, std::uint32_t peer, Part part) {
  const RmaTo to{peer, rma_requester};
  if (part == Part::post)
    return rma_put<Access>(Thread{}, ctx, m.port, m.destination, m.source, m.bytes, to) == Status::ok;
  if (part == Part::unchecked_post)
    return beeline::detail::post_pieces<Access>(ctx, m.port, {RmaCommand::put, m.destination, m.source, m.bytes}, to,
                                                Timeout::none()) == Status::ok;
  RmaNotification notification{};
  const Status status = rma_wait<Access>(ctx, m.port, notification);
  rma_free<Access>(m.port);
  return status == Status::ok;
}

/// Nanoseconds of one part, plus 1; 0 if it failed. The other part and the end of the request come before or after it.
BEELINE_HOST_DEVICE inline std::uint64_t time_part(const Context& ctx, const Message& m, std::uint32_t peer,
                                                   Part part) {
  using beeline::detail::DirectAccess;
  bool is_done = part != Part::poll || do_part<DirectAccess>(ctx, m, peer, Part::post);
  is_done = is_done && rma_quiet(ctx, m.port) == Status::ok;
  const std::uint64_t start = machine::clock_ns();
  is_done = is_done && do_part<DirectAccess>(ctx, m, peer, part);
  const std::uint64_t ns = machine::clock_ns() - start;
  if (part != Part::poll) is_done = is_done && do_part<DirectAccess>(ctx, m, peer, Part::poll);
  return is_done ? ns + 1 : 0;
}
struct TimedPart {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, Message m, Part part) const {
    if (grid.block().thread_rank() != 0) return;
    time_parts(loop, [&](std::uint64_t) { return time_part(ctx, m, loop.peer, part); });
  }
};

/// Calls `call()` for the part, and does the other part before or after it.
template <class Call>
BEELINE_HOST_DEVICE auto count_part(const Context& ctx, const Message& m, std::uint32_t peer, Part part, Call call) {
  using beeline::detail::DirectAccess;
  if (part == Part::poll) static_cast<void>(do_part<DirectAccess>(ctx, m, peer, Part::post));
  static_cast<void>(rma_quiet(ctx, m.port));
  const auto found = call();
  if (part != Part::poll) static_cast<void>(do_part<DirectAccess>(ctx, m, peer, Part::poll));
  return found;
}
/// The least of several counts of the part, since some include waking an engine that sleeps.
BEELINE_HOST_DEVICE inline CallCost least_cost(const Context& ctx, const Message& m, std::uint32_t peer, Part part) {
  CallCost least{};
  for (int i = 0; i < 8; ++i) {
    CallCost found = count_part(ctx, m, peer, part, [&] {
      return accesses_of([&] { static_cast<void>(do_part<CountingAccess>(ctx, m, peer, part)); });
    });
    found.instructions = count_part(ctx, m, peer, part, [&] {
      return instructions_of([&] { static_cast<void>(do_part<beeline::detail::DirectAccess>(ctx, m, peer, part)); });
    });
    if (i == 0 || found.instructions < least.instructions) least = found;
  }
  return least;
}
struct CountedPart {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, CallCost* cost, Message m, std::uint32_t peer,
                                      Part part) const {
    if (grid.block().thread_rank() == 0) *cost = least_cost(ctx, m, peer, part);
  }
};

/// Collective. The cost of a part in a kernel of rank 0, or on its CPU thread.
CallCost cost_of(Bench& bench, Placement placement, const Message& message, Part part) {
  const SymmetricArray<CallCost> cost(bench.world(), 1);
  World& world = bench.world();
  CallCost found{};
  if (bench.leads() && placement == Placement::host) {
    found = least_cost(world.host_context(), message, bench.peer(), part);
  } else if (bench.leads()) {
    launch(world, {.waits = true}, CountedPart{}, cost.data(), message, bench.peer(), part);
    world.synchronize();
    world.copy(&found, cost.data(), sizeof found);
  }
  world.barrier();
  return found;
}

Measurement measurement_of(Bench& bench, const std::shared_ptr<Rma>& rma, Placement placement, Part part) {
  const Message message = rma->actions(bench).message;
  const std::string method = method_of(placement, Protocol::notification);
  Measurement measurement =
      message_measurement(bench, rma->buffers(), Receivers::second, method, [=, &bench](Rounds rounds) {
        if (placement == Placement::host)
          return time_parts_on_host(bench, rounds, [&] {
            const std::uint64_t ns = time_part(bench.world().host_context(), message, bench.peer(), part);
            require(ns != 0, Status::internal, "a request to an adapter failed");
            return static_cast<double>(ns - 1);
          });
        return rma->placed().timed().run(single_thread(bench).threads, bench.leads(), rounds, TimedPart{}, message,
                                         part);
      });
  measurement.operation = part == Part::poll ? "poll" : "post";
  measurement.unit = Unit::microseconds;
  measurement.most_iterations = 500;  // the rest of each request takes longer than the part
  measurement.settings = cost_of(bench, placement, message, part).settings();
  if (part != Part::poll) measurement.settings.emplace_back("checks", part == Part::post ? "yes" : "no");
  return measurement;
}

std::vector<Measurement> prepare_posts(Bench& bench, Placement placement) {
  const auto rma = std::make_shared<Rma>(bench, sizeof(std::uint64_t), placement, Protocol::notification);
  return {measurement_of(bench, rma, placement, Part::post),
          measurement_of(bench, rma, placement, Part::unchecked_post)};
}
std::vector<Measurement> prepare_polls(Bench& bench, Placement placement) {
  const auto rma = std::make_shared<Rma>(bench, sizeof(std::uint64_t), placement, Protocol::notification);
  return {measurement_of(bench, rma, placement, Part::poll)};
}

void add_messages(std::vector<Case>& all, Placement placement, Protocol protocol) {
  const std::string method = method_of(placement, protocol);
  all.push_back({"message",
                 method,
                 true,
                 [=](Bench& bench, std::uint64_t bytes) { return prepare_messages(bench, bytes, placement, protocol); },
                 {0, 256 << 10}});
  all.push_back({"put",
                 method,
                 true,
                 [=](Bench& bench, std::uint64_t bytes) { return prepare_puts(bench, bytes, placement, protocol); },
                 {4 << 10}});
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const Placement placement : {Placement::resident, Placement::proxy, Placement::host, Placement::assisted}) {
    add_messages(all, placement, Protocol::notification);
    add_messages(all, placement, Protocol::flag);
    const auto add = [&](const char* operation, auto prepare) {
      all.push_back({operation, method_of(placement, Protocol::notification), false,
                     [=](Bench& bench, std::uint64_t) { return prepare(bench, placement); }});
    };
    add("lock", prepare_locks);
    if (placement == Placement::assisted) continue;  // the CPU thread's calls are those of `host`
    add("post", prepare_posts);
    add("poll", prepare_polls);
  }
  return all;
}

const ListedCases rma_cases(Command::adapters, all_cases());

}  // namespace

}  // namespace beeline::bench::rma_cases
