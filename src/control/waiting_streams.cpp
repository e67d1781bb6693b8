// SPDX-License-Identifier: Apache-2.0
#include "control/waiting_streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <limits>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "control/trigger_table.hpp"
#include "core/thread.hpp"
#include "transport/checks.hpp"

namespace beeline {

namespace {

/// Period of the checks of deadlines and the abort word while operations are armed.
constexpr std::chrono::milliseconds watch_period(20);

bool is_store(Verb verb) { return has_shape<VerbShape::word>(verb); }

}  // namespace

WaitingStreams::WaitingStreams(WaitingStreamsClient client) : client_(std::move(client)), lanes_(client_.streams) {
  for (Lane& lane : lanes_) lane.stream = client_.make_stream();
  watcher_ = detail::start_thread_for("the waits of streams", [this] { watch(); });
}

WaitingStreams::~WaitingStreams() {
  // The watcher releases overdue operations, and the streams drain. On a GPU with a fault they do not: that is logged.
  try {
    if (!await_idle() && !client_.has_failed()) {
      client_.fail("operations that are armed, and that nobody has triggered, are left behind");
      static_cast<void>(await_idle());
    }
    drop_cancelled();
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("streams that wait for triggers do not drain: {}", error.what()));
  }
  {
    const std::lock_guard lock(mutex_);
    closing_ = has_changed_ = true;
  }
  changed_.notify_one();
  watcher_.join();
}

bool WaitingStreams::await_idle() {
  const std::uint64_t end = machine::clock_ns() + client_.deadline_ns;
  while (!is_idle()) {
    if (machine::clock_ns() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

/// Releases the waits of cancelled operations, which are the only ones left: their kernels move nothing.
void WaitingStreams::drop_cancelled() {
  const std::uint64_t end = machine::clock_ns() + client_.deadline_ns;
  const auto is_empty = [this] {
    static_cast<void>(any_armed());
    return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.armed.empty(); });
  };
  for (std::unique_lock lock(mutex_); !is_empty();) {
    if (!released_) release_all();
    for (const Lane& lane : lanes_)  // on a host rank only an abort releases the waits
      if (!lane.armed.empty() && !lane.stream->device().is_gpu())
        detail::SystemAtomic<std::uint64_t>(client_.counters[lane.tag])
            .store(lane.armed.back().threshold, std::memory_order_release);
    require(machine::clock_ns() < end, Status::deadline, "cancelled operations do not end");
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    lock.lock();
  }
}

ArmedOperation WaitingStreams::arm(const TriggeredCommands& what) {
  for (std::uint32_t i = 0; i < what.count; ++i) {
    const Verb verb = what.commands[i].verb;
    require((has_shape<VerbShape::to_peer, VerbShape::from_peer, VerbShape::between>(verb)) || is_store(verb),
            Status::unavailable,
            "streams that wait carry out puts and signals only: for atomics use TriggeredBy::engine");
  }
  require(what.then == no_chain, Status::unavailable,
          "streams that wait trigger no other tag: for chains use TriggeredBy::engine");
  const std::lock_guard lock(mutex_);
  require(!released_, Status::aborted, "the team of these triggers is aborted");
  Lane& lane = lane_for(what);
  const auto number = static_cast<std::uint32_t>(&lane - lanes_.data());
  has_changed_ = true;
  changed_.notify_one();  // also where `enqueue` throws: then the operation waits for its deadline
  enqueue(lane, what, &client_.completed[number]);
  return {number, static_cast<std::uint32_t>(lane.numbered)};
}

WaitingStreams::Lane& WaitingStreams::lane_for(const TriggeredCommands& what) {
  const std::uint64_t now = machine::clock_ns();
  Lane* free = nullptr;
  for (Lane& lane : lanes_) {
    look(lane, now);
    if (lane.tag == what.tag && !lane.armed.empty()) {
      require(what.threshold >= lane.armed.back().threshold, Status::invalid_argument,
              fmt::format("threshold {} of tag {} behind {}: those of a stream that waits rise", what.threshold,
                          what.tag, lane.armed.back().threshold));
      require(lane.armed.size() < most_armed, Status::no_resource,
              fmt::format("{} operations of tag {} are armed on its stream: as many as are possible", most_armed,
                          what.tag));
      return lane;
    }
    if (lane.armed.empty() && (free == nullptr || lane.tag == what.tag)) free = &lane;
  }
  require(free != nullptr, Status::no_resource,
          fmt::format("operations of {} tags are armed, each on a stream of its own that waits "
                      "(TriggerOptions::streams)",
                      lanes_.size()));
  free->tag = what.tag;
  return *free;
}

StreamMove WaitingStreams::move_of(const Command& command) const {
  auto* const local = reinterpret_cast<std::byte*>(command.local);
  auto* const remote = has_shape<VerbShape::between>(command.verb) ? reinterpret_cast<std::byte*>(command.remote)
                                                                   : client_.address_of(command.peer, command.remote);
  StreamMove move;
  if (is_store(command.verb)) {
    move.signal = reinterpret_cast<std::uint64_t*>(remote), move.value = command.local;
  } else {
    const RowMove rows = rows_of(command, remote);
    move = {rows.to, rows.from, rows.row_bytes};
  }
  if (move.to != nullptr) static_cast<void>(moves_anything(move.to, move.from, move.bytes));
  if (client_.move_guarded) find_carrier(move);
  return move;
}

void WaitingStreams::find_carrier(StreamMove& move) const {
  const std::uint32_t from = move.from == nullptr ? no_peer : client_.carried_to(move.from);
  const std::uint32_t to = client_.carried_to(move.signal != nullptr ? move.signal : move.to);
  require(from == no_peer || to == no_peer, Status::unreachable,
          "a guarded stream copies from no rank to another that only its engine reaches: use TriggeredBy::engine");
  move.puts = from == no_peer, move.peer = move.puts ? to : from;
}

/// If enqueuing fails after the wait, the wait stays on the stream: the operation moves nothing; its deadline holds.
void WaitingStreams::enqueue(Lane& lane, const TriggeredCommands& what, std::uint64_t* completed) {
  std::array<StreamMove, 2> moves;
  for (std::uint32_t i = 0; i < what.count; ++i) moves[i] = move_of(what.commands[i]);
  Stream& stream = *lane.stream;
  stream.wait_signal(&client_.counters[what.tag], what.threshold);
  const std::uint64_t deadline_ns = what.deadline_ns != 0 ? what.deadline_ns : client_.deadline_ns;
  lane.armed.push_back({what.threshold, machine::clock_ns(), deadline_ns, what.commands[0]});
  ++lane.numbered;
  const SignalWrite over{completed, lane.numbered};
  bool is_published = false;
  std::exception_ptr failure;
  try {
    if (client_.move_guarded) client_.move_guarded(stream, moves[0], moves[1], guard_of(lane, lane.numbered));
    for (std::uint32_t i = 0; i < what.count && !client_.move_guarded; ++i)
      if (moves[i].signal == nullptr)
        stream.copy(moves[i].to, moves[i].from, moves[i].bytes);
      else if (i + 1 < what.count)
        stream.write_signal(moves[i].signal, moves[i].value);
      else
        stream.write_signals({moves[i].signal, moves[i].value}, over), is_published = true;
  } catch (const Error&) {
    failure = std::current_exception();
  }
  if (!is_published) stream.write_signal(over.signal, over.value);
  if (failure) std::rethrow_exception(failure);
}

/// Removes operations that are over.
void WaitingStreams::look(Lane& lane, std::uint64_t now_ns) {
  const auto index = static_cast<std::size_t>(&lane - lanes_.data());
  const std::uint64_t over = detail::load_acquired(client_.completed[index]);
  bool any = false;
  for (; !lane.armed.empty() && lane.numbered - lane.armed.size() < over; any = true) lane.armed.pop_front();
  if (any) lane.latest_ns = now_ns;
  if (any && lane.armed.empty()) static_cast<void>(lane.stream->idle());  // forgets its waits, or reports a failure
  if (released_ && lane.stream->drained()) lane.armed.clear();
}

const WaitingStreams::Armed* WaitingStreams::Lane::first() const {
  const auto found = std::find_if(armed.begin(), armed.end(), [](const Armed& each) { return !each.is_cancelled; });
  return found == armed.end() ? nullptr : &*found;
}

MoveGuard WaitingStreams::guard_of(const Lane& lane, std::uint64_t number) const {
  const auto index = static_cast<std::size_t>(&lane - lanes_.data());
  return {client_.released, &client_.guards[index * most_armed + number % most_armed], &client_.verdicts[index],
          number};
}

WaitingStreams::Armed* WaitingStreams::find(ArmedOperation operation) {
  if (operation.entry >= lanes_.size()) return nullptr;
  Lane& lane = lanes_[operation.entry];
  look(lane, machine::clock_ns());
  const std::uint64_t over = lane.numbered - lane.armed.size();
  return operation.turn > over && operation.turn <= lane.numbered ? &lane.armed[operation.turn - over - 1] : nullptr;
}

bool WaitingStreams::cancel(ArmedOperation operation) {
  require(client_.guards != nullptr, Status::unavailable,
          "a stream's wait cannot be cancelled: operations of TriggeredBy::engine and of guarded streams can");
  const std::lock_guard lock(mutex_);
  Armed* const armed = find(operation);
  if (armed == nullptr || armed->is_cancelled) return false;
  armed->is_cancelled = is_skipped(guard_of(lanes_[operation.entry], operation.turn));
  return armed->is_cancelled;
}

bool WaitingStreams::is_skipped(const MoveGuard& guard) const {
  detail::SystemAtomic<std::uint64_t>(guard.words->cancelled).store(guard.number, std::memory_order_release);
  machine::fence_system();
  const std::uint64_t end = machine::clock_ns() + client_.deadline_ns;
  std::uint64_t decided = detail::load_acquired(guard.words->decided);
  for (; decided == GuardWords::decision(guard.number, GuardWords::looks);
       decided = detail::load_acquired(guard.words->decided))
    require(machine::clock_ns() < end, Status::deadline, "the operation's kernel does not decide whether it moves");
  return decided != GuardWords::decision(guard.number, GuardWords::moves);
}

bool WaitingStreams::is_over(ArmedOperation operation) {
  const std::lock_guard lock(mutex_);
  const Armed* const armed = find(operation);
  return armed == nullptr || armed->is_cancelled;
}

std::string WaitingStreams::describe(ArmedOperation operation) {
  const std::lock_guard lock(mutex_);
  const Armed* const armed = find(operation);
  if (armed == nullptr) return {};
  const std::uint32_t tag = lanes_[operation.entry].tag;
  return text_of_armed(tag, count(tag), armed->threshold, armed->first);
}

bool WaitingStreams::is_idle() {
  const std::lock_guard lock(mutex_);
  return !any_armed();
}

bool WaitingStreams::any_armed() {
  const std::uint64_t now = machine::clock_ns();
  bool any = false;
  for (Lane& lane : lanes_) {
    look(lane, now);
    any = any || lane.first() != nullptr;
  }
  return any;
}

std::uint64_t WaitingStreams::count(std::uint32_t tag) const { return client_.read(&client_.counters[tag]); }

std::uint32_t WaitingStreams::armed() {
  const std::lock_guard lock(mutex_);
  static_cast<void>(any_armed());
  std::size_t sum = 0;
  for (const Lane& lane : lanes_)
    sum += static_cast<std::size_t>(
        std::count_if(lane.armed.begin(), lane.armed.end(), [](const Armed& each) { return !each.is_cancelled; }));
  return static_cast<std::uint32_t>(sum);
}

const char* WaitingStreams::trigger(std::uint64_t tag, std::uint64_t count) {
  if (lanes_.front().stream->device().is_gpu()) return "its count lies in GPU memory, where kernels count";
  detail::SystemAtomic<std::uint64_t>(client_.counters[tag]).fetch_add(count, std::memory_order_release);
  return nullptr;
}

std::uint64_t WaitingStreams::overdue_ns(const Lane& lane) const {
  const Armed* const first = lane.first();
  return first == nullptr ? std::numeric_limits<std::uint64_t>::max()
                          : std::max(lane.latest_ns, first->since_ns) + first->deadline_ns;
}

/// Releases all waits, so that the streams drain. On a GPU, copies without a guard run then: their targets stay mapped.
void WaitingStreams::release_all() {
  released_ = true;
  if (client_.released != nullptr)
    detail::SystemAtomic<std::uint64_t>(*client_.released).store(1, std::memory_order_release);
  for (Lane& lane : lanes_) try {
      lane.stream->release_waits();
    } catch (const Error& error) {
      log(LogLevel::error, fmt::format("a stream's waits for triggers cannot be released: {}", error.what()));
    }
}

void WaitingStreams::watch() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    std::string reason;
    bool is_armed = true;
    has_changed_ = false;
    try {
      const Device& device = lanes_.front().stream->device();
      if (device.is_gpu()) use_gpu(device.index);  // CUDA gives other threads a context on GPU 0
      is_armed = any_armed();
      reason = find_overdue();
    } catch (const Error& error) {
      reason = error.what();
    }
    if (!reason.empty()) {
      lock.unlock();
      client_.fail(reason);
      lock.lock();
    }
    if (!released_ && client_.has_failed()) {
      lock.unlock();
      client_.end_team();
      lock.lock();
      release_all();
    }
    if (is_armed)
      changed_.wait_for(lock, watch_period, [this] { return closing_; });
    else
      changed_.wait(lock, [this] { return has_changed_; });
  }
}

/// Describes an overdue operation; empty if there is none.
std::string WaitingStreams::find_overdue() const {
  const std::uint64_t now = machine::clock_ns();
  for (const Lane& lane : lanes_) {
    if (released_ || overdue_ns(lane) > now) continue;
    const Armed& first = *lane.first();
    return text_of_unreached(lane.tag, count(lane.tag), first.threshold, first.first);
  }
  return {};
}

}  // namespace beeline
