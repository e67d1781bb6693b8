// SPDX-License-Identifier: Apache-2.0
#include "control/engine_thread.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/device/wait.hpp"
#include "control/command_check.hpp"
#include "control/thread_time.hpp"
#include "core/thread.hpp"

namespace beeline {

namespace {

/// Time for which a thread without work looks for some before it sleeps.
constexpr std::uint64_t engine_spin_ns = 200'000;
/// Longest sleep of a host rank's thread, which posters wake.
constexpr int woken_engine_poll_us = 100'000;
/// Rounds over all rings between two checks of the deadlines of triggered operations; each sleep checks them, too.
constexpr std::uint32_t rounds_per_check = 4096;
/// Workers of a GPU rank's thread: streams that work concurrently.
constexpr std::size_t gpu_lanes = 4;

/// After this call either this thread sees commands that others have posted, or they see its earlier stores. So posters
/// need no fence of their own. Returns false if the system does not offer it (membarrier).
bool order_with_posters() {
  static const bool has_it = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return has_it && ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/// Adds to a word that only one thread changes.
void count(std::atomic<std::uint64_t>& word, std::uint64_t value) {
  word.store(word.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

void bind(std::thread& thread, const std::vector<int>& cores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int core : cores)
    if (core < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(core), &mask);
  const int error = ::pthread_setaffinity_np(thread.native_handle(), sizeof mask, &mask);
  require(error == 0, Status::invalid_argument,
          fmt::format("an engine's thread cannot be bound to core {} (BEELINE_ENGINE_CORES): {}", fmt::join(cores, ","),
                      std::generic_category().message(error)));
}

}  // namespace

Bell::Bell() { ::sem_init(&semaphore_, 0, 0); }
Bell::~Bell() { ::sem_destroy(&semaphore_); }
void Bell::wake() noexcept { ::sem_post(&semaphore_); }
void Bell::wait(int us) noexcept {
  timespec until{};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  const long ns = until.tv_nsec + long{us} * 1'000;
  until.tv_sec += ns / 1'000'000'000, until.tv_nsec = ns % 1'000'000'000;
  ::sem_clockwait(&semaphore_, CLOCK_MONOTONIC, &until);
  while (::sem_trywait(&semaphore_) == 0) {
  }
}

EngineThread::EngineThread(const EngineClient& client, Refusals& refusals, const Options& options)
    : client_(client), refusals_(refusals), poll_us_(options.poll_us), is_timed_(options.is_timed) {
  for (std::size_t i = 0; i < (client.device.is_gpu() ? gpu_lanes : 1); ++i) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->worker = options.make(client_);
  }
  thread_ = detail::start_thread_for("an engine", [this] { run(); });
  if (options.cores.empty()) return;
  try {
    bind(thread_, options.cores);
  } catch (...) {
    closing_ = true;
    thread_.join();
    throw;
  }
}

EngineThread::~EngineThread() {
  closing_ = true;
  bell_.wake();
  thread_.join();
}

template <class Change>
auto EngineThread::change(Change change) const {
  ++changes_;
  bell_.wake();
  const std::lock_guard lock(mutex_);
  --changes_;
  return change();
}

void EngineThread::add(CommandSource& source, std::uint64_t* mirror) {
  change([&] {
    const std::uint64_t taken = source.taken();
    served_.push_back(std::make_unique<Served>(
        Served{.source = &source, .mirror = mirror, .taken = taken, .done_by_then = taken, .done = taken}));
    sources_ = served_.size();
  });
}

bool EngineThread::remove(const CommandSource& source) {
  return change([&] {
    const auto found =
        std::find_if(served_.begin(), served_.end(), [&](const auto& s) { return s->source == &source; });
    if (found == served_.end()) return false;
    end_now(**found);
    (*found)->source->set_waker(nullptr);
    served_.erase(found);
    refusals_.forget(&source);
    sources_ = served_.size();
    return true;
  });
}

void EngineThread::serve_triggers(const CommandSource& source, HostTriggers& table, std::uint32_t queue) {
  change([&] {
    for (const auto& served : served_)
      if (served->source == &source) served->table = &table, served->number = queue;
  });
}

void EngineThread::end_now(Served& served) {
  const std::uint64_t start = machine::clock_ns();
  try {
    const auto is_carried = [&] {
      return served.remote != nullptr && !served.remote->is_idle() && detail::read_abort_word(client_.context) == 0;
    };
    for (end_batches(); served.under_way > 0 || is_carried(); end_batches()) {
      require(machine::clock_ns() - start < client_.context.deadline_ns, Status::deadline,
              "the device has not ended them by the deadline");
      std::this_thread::yield();
    }
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("commands of a queue that ends are under way: {}", error.what()), client_.rank);
    if (served.lane == nullptr) return;
    for (Batch& batch : served.lane->batches)
      std::erase_if(batch.parts, [&](const Part& part) { return part.ring == &served; });
  }
}

EngineStatistics EngineThread::statistics() const {
  EngineStatistics sum;
  sum.commands = counters_.commands, sum.bytes = counters_.bytes, sum.refused = counters_.refused;
  sum.deepest = counters_.deepest, sum.sleeps = counters_.sleeps, sum.batches = counters_.batches;
  sum.begin_s = static_cast<double>(counters_.begin_ns) * 1e-9;
  sum.work_s = static_cast<double>(counters_.work_ns) * 1e-9;
  sum.cpu_s = cpu_seconds_of(thread_);
  for (const auto& lane : lanes_) sum.cpu_stores += lane->worker->cpu_stores();
  return sum;
}

void EngineThread::run() {
  std::unique_lock lock(mutex_);
  try {
    for (const auto& lane : lanes_) lane->worker->enter_thread();
    std::uint64_t idle_since = 0;
    for (std::uint32_t idle = 0, rounds = 0; !closing_;) {
      if (changes_ > 0) {
        lock.unlock();
        while (changes_ > 0) std::this_thread::yield();
        lock.lock();
      }
      idle = serve_all() ? 0 : idle + 1;
      if (++rounds % rounds_per_check == 0) check_triggers();
      if (idle == 1) idle_since = machine::clock_ns();
      if (idle > 0) rest(idle, idle_since);
    }
  } catch (const std::exception& error) {
    client_.fail(error.what());
  }
}

bool EngineThread::serve_all() {
  const bool was_busy = end_batches();
  const bool has_words = begin_words(), has_moves = begin_moves();
  if (has_words || has_moves)
    for (const auto& lane : lanes_) lane->worker->publish_counts();
  return was_busy || has_words || has_moves;
}

bool EngineThread::end_batches() {
  bool any = false;
  for (const auto& lane : lanes_) {
    any |= lane->under_way > 0;
    while (lane->under_way > 0 && lane->worker->over(lane->batches[lane->oldest].submission)) end_batch(*lane);
  }
  for (const auto& served : served_)
    if (served->remote != nullptr) any |= end_remote(*served);
  return any;
}

bool EngineThread::end_remote(Served& served) {
  if (!served.remote->has_news()) return false;
  RemoteQueue::Handed handed;
  std::string refusal;
  while (served.remote->take_over(handed, refusal)) {
    if (!refusal.empty()) refuse(served, handed.command, refusal.c_str());
    if (handed.fired.is_last) served.table->finish(handed.fired, served.refused == 0);
  }
  publish(served);
  return true;
}

void EngineThread::publish(Served& served) {
  const auto done = [&](std::uint64_t commands) { return DoneCount::of(commands, served.refused != 0); };
  served.source->release_sources(done(served.remote == nullptr ? served.done : served.remote->reusable(served.done)));
  served.source->complete(done(served.remote == nullptr ? served.done : served.remote->completed(served.done)));
}

EngineThread::Lane* EngineThread::lane_of(const Served& served, bool words_only) const {
  if (served.under_way > 0) return served.lane->has_room() ? served.lane : nullptr;
  // Words of all rings share a lane, if possible one that moves no bytes; rings that move bytes have a lane each while
  // there are enough lanes.
  const auto load = [&](const Lane& lane) {
    return !lane.has_room() ? 2 * batches_under_way : words_only ? lane.moving : lane.under_way;
  };
  Lane* best = lanes_.front().get();
  for (const auto& lane : lanes_)
    if (load(*lane) < load(*best) || (!words_only && load(*lane) == load(*best))) best = lane.get();
  return best->has_room() ? best : nullptr;
}

bool EngineThread::begin_words() {
  moving_.clear();
  bool any = false, has_room = true;
  const std::size_t first = turn_;
  for (std::size_t i = 0; i < served_.size(); ++i) {
    const std::size_t index = (first + i) % served_.size();
    Served& served = *served_[index];
    if (!has_work(served)) continue;
    if (!is_gathered(served)) {
      moving_.push_back(index);
      continue;
    }
    Lane* const lane = served.by_stream && word_batches_ >= most_word_batches ? nullptr : lane_of(served, true);
    if (lane != nullptr && lane->next().count < command_batch)
      any |= begin_ring(served, *lane, client_.device.is_gpu());
    else if (std::exchange(has_room, false))
      turn_ = index;
  }
  for (const auto& lane : lanes_) submit(*lane, false);
  return any;
}

bool EngineThread::begin_moves() {
  bool any = false, has_room = true;
  for (const std::size_t index : moving_) {
    Lane* const lane = lane_of(*served_[index], false);
    if (lane != nullptr) {
      any |= begin_ring(*served_[index], *lane, false);
      submit(*lane, true);
    } else if (std::exchange(has_room, false)) {
      turn_ = index;
    }
  }
  return any;
}

bool EngineThread::begin_ring(Served& served, Lane& lane, bool words_only) {
  const std::uint64_t start = now_if_timed();
  Batch& batch = lane.next();
  Part part{&served, batch.count, 0, 0};
  lane.worker->begin_ring(served.under_way > 0, &served.own_is_under_way);
  begin_commands(served, lane, words_only);
  if (served.remote != nullptr) served.remote->submit();
  part.count = batch.count - part.first;
  // A trigger is complete when its operations are; those that did not fit into this batch follow in the next one.
  if (served.table == nullptr || !served.table->has_fired(served.number)) served.done_by_then = served.taken;
  part.done_by_then = served.done_by_then;
  if (part.count == 0) {  // a source may have worked without a command
    const std::uint64_t taken = served.source->taken();
    return std::exchange(served.seen, taken) != taken;
  }
  count(counters_.commands, part.count);
  // This thread keeps the table of triggered operations: their posters are notified once it has updated the table. A
  // stream does not know of commands on other nodes. A store for posters after copies would delay the next copies: if
  // other batches are in flight, the posters read the count that this thread publishes.
  const bool uses_mirror = served.table == nullptr && served.remote == nullptr && (words_only || batches_ == 0);
  const DoneCount done = DoneCount::of(part.done_by_then, served.refused != 0);
  served.by_stream = lane.worker->end_ring(uses_mirror ? served.mirror : nullptr, done.word);
  if (served.by_stream) {
    batch.parts.push_back(part);
    served.lane = &lane;
    ++served.under_way;
  } else {
    end_part(part, lane, batch);
    batch.count = part.first;
    count(counters_.batches, 1);
  }
  count(counters_.begin_ns, now_if_timed() - start);
  return true;
}

void EngineThread::begin_commands(Served& served, Lane& lane, bool words_only) {
  Batch& batch = lane.next();
  const std::size_t first = batch.count, most_bytes = lane.worker->batch_bytes();
  std::size_t bytes = 0;
  const std::lock_guard in_use(memory_user_);
  while (batch.count < command_batch && bytes < most_bytes && (!words_only || is_gathered(served)) &&
         (served.remote == nullptr || served.remote->has_room()) && take(served, batch)) {
    const char* const reason =
        served.refused == 0 ? begin(served, lane, batch, bytes) : "a command before it was refused";
    if (reason != nullptr) refuse(served, batch.commands[batch.count], reason);
    ++batch.count;
  }
  served.source->release_slots();
  count(counters_.bytes, bytes);
  const std::size_t taken = batch.count - first;
  if (taken > counters_.deepest.load(std::memory_order_relaxed))
    counters_.deepest.store(taken, std::memory_order_relaxed);
}

void EngineThread::submit(Lane& lane, bool moves) {
  Batch& batch = lane.next();
  if (!lane.has_room() || batch.count == 0) return;
  const std::uint64_t start = now_if_timed();
  count(counters_.batches, 1);
  batch.submission = lane.worker->submit();
  batch.moves = moves;
  ++lane.under_way;
  ++batches_;
  ++(moves ? lane.moving : word_batches_);
  batch.begun_at = now_if_timed();
  count(counters_.begin_ns, batch.begun_at - start);
}

std::uint64_t EngineThread::now_if_timed() const { return is_timed_ ? machine::clock_ns() : 0; }

bool EngineThread::take(Served& served, Batch& batch) {
  Command& command = batch.commands[batch.count];
  FiredCommand& fired = batch.fired[batch.count];
  if (served.table != nullptr && served.table->take(served.number, command, fired)) return true;
  if (!served.source->take(command)) return false;
  fired = {};
  served.taken = command.sequence;
  return true;
}

const char* EngineThread::begin(Served& served, Lane& lane, Batch& batch, std::size_t& bytes) {
  const Command& command = batch.commands[batch.count];
  if (has_shape<VerbShape::count>(command.verb))
    return served.table != nullptr ? served.table->trigger(command.remote, command.local)
                                   : refuse_trigger(command.remote, command.local, 0);
  if (is_for_other_node(client_, command)) return hand_over(served, batch, bytes);
  const BegunCommand begun = begin_command(client_, memory_, *lane.worker, command, lane.slot(batch, batch.count));
  bytes += begun.bytes;
  return begun.refused;
}

const char* EngineThread::hand_over(Served& served, Batch& batch, std::size_t& bytes) {
  const Command& command = batch.commands[batch.count];
  const CommandTarget target = checked_for_far(client_, command);
  if (target.refused != nullptr) return target.refused;
  if (served.remote == nullptr)
    served.remote = std::make_unique<RemoteQueue>(*client_.network, [source = served.source] { source->wake(); });
  const std::uint64_t number = command.sequence != 0 ? command.sequence : std::max<std::uint64_t>(1, served.taken);
  served.remote->hand_over(command, std::exchange(batch.fired[batch.count], {}), number - 1);
  bytes += target.bytes;
  return nullptr;
}

void EngineThread::end_batch(Lane& lane) {
  Batch& batch = lane.batches[lane.oldest];
  count(counters_.work_ns, now_if_timed() - batch.begun_at);
  for (const Part& part : batch.parts) {
    end_part(part, lane, batch);
    --part.ring->under_way;
  }
  --batches_;
  --(batch.moves ? lane.moving : word_batches_);
  batch.parts.clear();
  batch.count = 0;
  lane.oldest = (lane.oldest + 1) % batches_under_way;
  --lane.under_way;
}

void EngineThread::end_part(const Part& part, const Lane& lane, const Batch& batch) {
  Served& served = *part.ring;
  for (std::size_t i = part.first; i < part.first + part.count; ++i)
    if (batch.commands[i].answers) served.source->answer(batch.commands[i], lane.worker->result(lane.slot(batch, i)));
  served.done = part.done_by_then;
  publish(served);
  if (served.table != nullptr) finish_fired(part, batch);
}

void EngineThread::finish_fired(const Part& part, const Batch& batch) {
  Served& served = *part.ring;
  for (std::size_t i = part.first; i < part.first + part.count; ++i)
    if (batch.fired[i].is_last) served.table->finish(batch.fired[i], served.refused == 0);
}

void EngineThread::check_triggers() const {
  for (const auto& served : served_)
    if (served->table != nullptr) served->table->check_deadlines(machine::clock_ns());
}

void EngineThread::refuse(Served& served, const Command& command, const char* reason) {
  if (served.source->report_refusal(command, reason)) return count(counters_.refused, 1);
  const std::string text = refusal_of(client_.rank, command, reason);
  require(!command.answers, Status::invalid_argument, text);  // its poster would mistake the answer for a value
  count(counters_.refused, 1);
  served.source->refuse(++served.refused);
  if (served.refused > 1) return;
  log(LogLevel::error, text, client_.rank);
  refusals_.add(served.source, text);
  client_.note_refusal(text);
}

void EngineThread::rest(std::uint32_t idle, std::uint64_t idle_since) {
  if (poll_us_ == 0) return machine::back_off(idle, Polling(WaitPolicy::spin, 0));
  const Polling polling = client_.context.polling;
  const bool looks = idle % detail::polls_per_look == 0 || machine::backs_off(idle, polling);
  if (looks && machine::clock_ns() - idle_since > engine_spin_ns) return sleep();
  machine::back_off(idle, polling.sleeps_at_once() ? Polling(WaitPolicy::yield, 0) : polling);
}

void EngineThread::sleep() {
  check_triggers();
  for (const auto& served : served_) served->source->set_waker(&bell_);
  const bool is_woken =
      order_with_posters() && !client_.device.is_gpu() &&
      std::all_of(served_.begin(), served_.end(), [](const auto& served) { return served->source->is_woken(); });
  if (!has_posted()) {
    count(counters_.sleeps, 1);
    bell_.wait(is_woken ? woken_engine_poll_us : poll_us_);
  }
  for (const auto& served : served_) served->source->set_waker(nullptr);
}

bool EngineThread::has_posted() const {
  return changes_ > 0 || closing_ || std::any_of(served_.begin(), served_.end(), [](const auto& served) {
           return has_work(*served) || (served->remote != nullptr && served->remote->has_news());
         });
}

bool EngineThread::has_work(const Served& served) {
  return served.source->has_next() || (served.table != nullptr && served.table->has_fired(served.number));
}

bool EngineThread::is_gathered(const Served& served) const {
  if (!client_.device.is_gpu()) return true;  // a host rank's commands are over at once
  if (served.table != nullptr || !served.source->has_next()) return false;
  return has_shape<VerbShape::word, VerbShape::payload>(served.source->next_verb());
}

}  // namespace beeline
