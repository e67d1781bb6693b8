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
#include <cuda/atomic>
#include <exception>
#include <system_error>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/device/wait.hpp"
#include "control/command_check.hpp"
#include "control/thread_time.hpp"

namespace beeline {

namespace {

/// A thread without work looks for it so long before it sleeps.
constexpr std::uint64_t patience_ns = 200'000;
/// The same for a host rank's, which posters wake.
constexpr int woken_poll_us = 100'000;
/// Rounds over all rings from one look at the deadlines of triggered operations to the next, beside those before sleep.
constexpr std::uint32_t rounds_per_check = 4096;
/// Workers of a GPU rank's thread: streams that work side by side.
constexpr std::size_t gpu_batches = 4;

/// From here on either this thread sees what others have posted, or they see what it has stored. Posters need no fence
/// of their own then. False where the system has no such thing.
bool order_with_posters() {
  static const bool has_it = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return has_it && ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void store(std::uint64_t& word, std::uint64_t value) {
  detail::SystemAtomic<std::uint64_t>(word).store(value, cuda::memory_order_release);
}

/// Of a word that one thread changes.
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

EngineThread::EngineThread(const EngineClient& client, const Options& options)
    : client_(client), poll_us_(options.poll_us), is_timed_(options.is_timed) {
  for (std::size_t i = 0; i < (client.device.is_gpu() ? gpu_batches : 1); ++i) {
    batches_.push_back(std::make_unique<Batch>());
    batches_.back()->worker = make_worker(client_);
  }
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Error(Status::no_resource, fmt::format("an engine's thread: {}", error.what()));
  }
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

void EngineThread::add(CommandRing& ring, std::uint64_t* told) {
  change([&] {
    const std::uint64_t taken = ring.taken.value;
    served_.push_back(std::make_unique<Served>(
        Served{.ring = &ring, .told = told, .reader = CommandReader(ring), .taken = taken, .done_by_then = taken}));
    rings_ = served_.size();
  });
}

bool EngineThread::remove(CommandRing& ring) {
  return change([&] {
    const auto found = std::find_if(served_.begin(), served_.end(), [&](const auto& s) { return s->ring == &ring; });
    if (found == served_.end()) return false;
    end_now(**found);
    store(ring.asleep.value, 0);
    served_.erase(found);
    if (const auto refusal = refusals_.find(&ring); refusal != refusals_.end()) {
      untaken_ -= refusal->second.is_taken ? 0 : 1;
      refusals_.erase(refusal);
    }
    rings_ = served_.size();
    return true;
  });
}

void EngineThread::serve_triggers(CommandRing& ring, TriggerTable& table, std::uint32_t queue) {
  change([&] {
    for (const auto& served : served_)
      if (served->ring == &ring) served->table = &table, served->number = queue;
  });
}

void EngineThread::end_now(Served& served) {
  const std::uint64_t start = machine::clock_ns();
  try {
    while (served.batch != nullptr && !end_batch(*served.batch)) {
      require(machine::clock_ns() - start < client_.context.deadline_ns, Status::deadline,
              "the device has not ended them by the deadline");
      std::this_thread::yield();
    }
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("{} commands of a queue that ends are under way: {}", served.count, error.what()),
        client_.rank);
    std::erase(served.batch->rings, &served);  // the batch is never free again
  }
}

EngineStatistics EngineThread::statistics() const {
  EngineStatistics sum;
  sum.commands = commands_, sum.bytes = bytes_, sum.refused = refused_, sum.deepest = deepest_, sum.sleeps = sleeps_;
  sum.batches = batches_begun_;
  sum.begin_s = static_cast<double>(begin_ns_) * 1e-9, sum.work_s = static_cast<double>(work_ns_) * 1e-9;
  sum.cpu_s = cpu_seconds_of(thread_);
  return sum;
}

std::string EngineThread::refusal(const CommandRing& ring) const {
  return change([&] {
    const auto found = refusals_.find(&ring);
    return found == refusals_.end() ? std::string() : found->second.text;
  });
}

std::vector<std::string> EngineThread::take_refusals() {
  std::vector<std::string> all;
  if (untaken_ == 0) return all;  // as nearly always: the thread need not stop for it
  change([&] {
    for (auto& [ring, refusal] : refusals_)
      if (!std::exchange(refusal.is_taken, true)) all.push_back(refusal.text);
    untaken_ = 0;
  });
  return all;
}

void EngineThread::run() {
  std::unique_lock lock(mutex_);
  try {
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
  return was_busy || has_words || has_moves;
}

bool EngineThread::end_batches() {
  bool any = false;
  for (const auto& batch : batches_) {
    any |= batch->count > 0;
    end_batch(*batch);
  }
  return any;
}

EngineThread::Batch* EngineThread::free_batch() const {
  for (const auto& batch : batches_)
    if (batch->count == 0) return batch.get();
  return nullptr;
}

bool EngineThread::begin_words() {
  moving_.clear();
  Batch* batch = nullptr;
  bool any = false;
  const std::size_t first = turn_;
  for (std::size_t i = 0; i < served_.size(); ++i) {
    const std::size_t index = (first + i) % served_.size();
    Served& served = *served_[index];
    if (served.batch != nullptr || !has_work(served)) continue;
    if (!is_gathered(served)) {
      moving_.push_back(&served);
      continue;
    }
    if (batch == nullptr) batch = free_batch();
    if (batch == nullptr || batch->count == command_batch) {
      turn_ = index;
      break;
    }
    any |= begin_ring(served, *batch, client_.device.is_gpu());
  }
  if (batch != nullptr && batch->count > 0) submit(*batch);
  return any;
}

bool EngineThread::begin_moves() {
  bool any = false;
  for (Served* const served : moving_) {
    Batch* const batch = free_batch();
    if (batch == nullptr) break;
    any |= begin_ring(*served, *batch, false);
    if (batch->count > 0) submit(*batch);
  }
  return any;
}

bool EngineThread::begin_ring(Served& served, Batch& batch, bool words_only) {
  const std::uint64_t start = now_if_timed();
  served.first = batch.count;
  batch.worker->begin_ring();
  begin_commands(served, batch, words_only);
  served.count = batch.count - served.first;
  // A trigger is done when what it has fired is: the rest of that may have found no place in this batch.
  if (served.table == nullptr || !served.table->has_fired(served.number)) served.done_by_then = served.taken;
  if (served.count == 0) return false;
  count(commands_, served.count);
  // Of what triggers fire this thread keeps a table: their posters hear of the end when the table has.
  if (batch.worker->end_ring(served.table == nullptr ? served.told : nullptr, done_of(served).word)) {
    served.batch = &batch;
    batch.rings.push_back(&served);
  } else {
    end_ring(served, batch);
    batch.count = served.first;
    count(batches_begun_, 1);
  }
  count(begin_ns_, now_if_timed() - start);
  return true;
}

void EngineThread::begin_commands(Served& served, Batch& batch, bool words_only) {
  std::size_t bytes = 0;
  const std::size_t most_bytes = batch.worker->batch_bytes();
  const std::lock_guard in_use(memory_user_);
  while (batch.count < command_batch && bytes < most_bytes && (!words_only || is_gathered(served)) &&
         take(served, batch)) {
    const char* const reason = served.refused == 0 ? begin(served, batch, bytes) : "a command before it was refused";
    if (reason != nullptr) refuse(served, batch.commands[batch.count], reason);
    ++batch.count;
  }
  served.reader.release_slots();
  count(bytes_, bytes);
  const std::size_t taken = batch.count - served.first;
  if (taken > deepest_.load(std::memory_order_relaxed)) deepest_.store(taken, std::memory_order_relaxed);
}

void EngineThread::submit(Batch& batch) {
  const std::uint64_t start = now_if_timed();
  count(batches_begun_, 1);
  batch.worker->submit();
  batch.begun_at = now_if_timed();
  count(begin_ns_, batch.begun_at - start);
}

std::uint64_t EngineThread::now_if_timed() const { return is_timed_ ? machine::clock_ns() : 0; }

bool EngineThread::take(Served& served, Batch& batch) {
  Command& command = batch.commands[batch.count];
  FiredCommand& fired = batch.fired[batch.count];
  if (served.table != nullptr && served.table->take(served.number, command, fired)) return true;
  if (!served.reader.take(command)) return false;
  fired = {};
  served.taken = command.sequence;
  return true;
}

const char* EngineThread::begin(Served& served, Batch& batch, std::size_t& bytes) {
  const Command& command = batch.commands[batch.count];
  if (command.verb == Verb::trigger)
    return served.table != nullptr ? served.table->trigger(command.remote, command.local)
                                   : "its queue takes no triggers";
  const BegunCommand begun = begin_command(client_, memory_, *batch.worker, command, batch.count);
  bytes += begun.bytes;
  return begun.refused;
}

bool EngineThread::end_batch(Batch& batch) {
  if (batch.count == 0 || !batch.worker->over()) return false;
  count(work_ns_, now_if_timed() - batch.begun_at);
  for (Served* const served : batch.rings) {
    end_ring(*served, batch);
    served->batch = nullptr;
  }
  batch.rings.clear();
  batch.count = 0;
  return true;
}

void EngineThread::end_ring(Served& served, Batch& batch) {
  for (std::size_t i = served.first; i < served.first + served.count; ++i)
    if (batch.commands[i].answers) served.reader.answer(batch.commands[i], batch.worker->result(i));
  served.reader.end(done_of(served));
  if (served.table != nullptr) finish_fired(served, batch);
}

void EngineThread::finish_fired(Served& served, const Batch& batch) {
  for (std::size_t i = served.first; i < served.first + served.count; ++i)
    if (batch.fired[i].is_last) served.table->finish(batch.fired[i], served.refused == 0);
}

void EngineThread::check_triggers() const {
  for (const auto& served : served_)
    if (served->table != nullptr) served->table->check_deadlines(machine::clock_ns());
}

/// One text a queue: what is refused because of it would only repeat it.
void EngineThread::refuse(Served& served, const Command& command, const char* reason) {
  const std::string what =
      command.sequence == 0 ? "a triggered operation" : fmt::format("command {}", command.sequence);
  const std::string text =
      fmt::format("rank {}'s engine refused {} of a queue ({}): {}", client_.rank, what, text_of(command), reason);
  require(!command.answers, Status::invalid_argument, text);  // its poster would take the answer for a value
  count(refused_, 1);
  store(served.ring->refused.value, ++served.refused);
  if (served.refused > 1) return;
  log(LogLevel::error, text, client_.rank);
  refusals_[served.ring] = {text};
  ++untaken_;
  client_.note_refusal(text);
}

void EngineThread::rest(std::uint32_t idle, std::uint64_t idle_since) {
  if (poll_us_ == 0) return machine::back_off(idle, Polling(WaitPolicy::spin, 0));
  const Polling polling = client_.context.polling;
  const bool looks = idle % detail::polls_per_look == 0 || machine::backs_off(idle, polling);
  if (looks && machine::clock_ns() - idle_since > patience_ns) return sleep();
  machine::back_off(idle, polling.sleeps_at_once() ? Polling(WaitPolicy::yield, 0) : polling);
}

void EngineThread::sleep() {
  check_triggers();
  const auto bell = reinterpret_cast<std::uintptr_t>(static_cast<Waker*>(&bell_));
  for (const auto& served : served_) store(served->ring->asleep.value, bell);
  const bool is_woken = order_with_posters() && !client_.device.is_gpu();
  if (!has_posted()) {
    count(sleeps_, 1);
    bell_.wait(is_woken ? woken_poll_us : poll_us_);
  }
  for (const auto& served : served_) store(served->ring->asleep.value, 0);
}

bool EngineThread::has_posted() const {
  return changes_ > 0 || closing_ ||
         std::any_of(served_.begin(), served_.end(), [](const auto& served) { return has_work(*served); });
}

bool EngineThread::has_work(const Served& served) {
  return served.reader.has_next() || (served.table != nullptr && served.table->has_fired(served.number));
}

bool EngineThread::is_gathered(const Served& served) const {
  if (!client_.device.is_gpu()) return true;  // its commands are over at once
  if (served.table != nullptr || !served.reader.has_next()) return false;
  const Verb verb = served.reader.next_verb();
  return verb == Verb::store || verb == Verb::put_inline || verb == Verb::put_inline_signal;
}

}  // namespace beeline
