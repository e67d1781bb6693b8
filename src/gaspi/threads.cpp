// SPDX-License-Identifier: Apache-2.0
// Threads of a rank (GASPI_Threads.h).
#include <fmt/format.h>
#include <sched.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gaspi/call.hpp"

namespace beeline::gaspi {

namespace {

/// A set of threads: the one that made it, and those that it has started.
struct Threads {
  Threads(std::uint64_t number_in, int wanted) : number(number_in), count(wanted), meeting(wanted) {}
  const std::uint64_t number;  ///< of the set, from 1
  const int count;
  std::barrier<> meeting;
  std::atomic<int> registered{0};
  std::vector<std::thread> started;                   ///< changed with `changing` locked
  std::atomic<gaspi_return_t> result{GASPI_SUCCESS};  ///< of the barrier of `gaspi_threads_sync_all`
};

std::mutex changing;
std::shared_ptr<Threads> current;
std::uint64_t made = 0;  ///< number of sets
/// The set in which the calling thread is registered, and its number there.
thread_local struct {
  std::uint64_t set = 0;
  int number = 0;
} membership;

std::shared_ptr<Threads> require_threads() {
  const std::lock_guard lock(changing);
  if (current == nullptr) throw Failure("gaspi_threads_init has not been called, or gaspi_threads_term has");
  return current;
}

/// The calling thread's number in the set.
int require_registered(const Threads& threads) {
  if (membership.set != threads.number) throw Failure("the calling thread is not registered");
  return membership.number;
}

/// A started thread would wait for its own end.
void require_other(const std::vector<std::thread>& started) {
  for (const std::thread& thread : started)
    if (thread.get_id() == std::this_thread::get_id())
      throw Failure("a thread that gaspi_threads_run has started cannot end the set");
}

int processors() {
  cpu_set_t own;
  CPU_ZERO(&own);
  return ::sched_getaffinity(0, sizeof own, &own) == 0 ? CPU_COUNT(&own) : 1;
}

void make(int count) {
  const std::lock_guard lock(changing);
  if (current != nullptr) throw Failure("the threads exist already");
  current = std::make_shared<Threads>(++made, count);
}

}  // namespace

}  // namespace beeline::gaspi

using namespace beeline::gaspi;

gaspi_return_t pgaspi_threads_init(gaspi_int* num) {
  return call_any_time("gaspi_threads_init", [&] {
    require_pointer(num, "num");
    make(processors());
    *num = processors();
  });
}
GASPI_EXPORT(threads_init);

gaspi_return_t pgaspi_threads_init_user(unsigned int use_nr_of_threads) {
  return call_any_time("gaspi_threads_init_user", [&] {
    constexpr unsigned int most = 65536;
    if (use_nr_of_threads == 0 || use_nr_of_threads > most)
      refuse(GASPI_ERR_INV_NUM, fmt::format("{} threads, where 1 to {} are possible", use_nr_of_threads, most));
    make(static_cast<int>(use_nr_of_threads));
  });
}
GASPI_EXPORT(threads_init_user);

gaspi_return_t pgaspi_threads_term(void) {
  return call_any_time("gaspi_threads_term", [] {
    const std::shared_ptr<Threads> ended = require_threads();
    std::vector<std::thread> started;
    {
      const std::lock_guard lock(changing);
      require_other(ended->started);
      current = nullptr;
      started = std::move(ended->started);
    }
    for (std::thread& thread : started) thread.join();
  });
}
GASPI_EXPORT(threads_term);

gaspi_return_t pgaspi_threads_run(void* (*function)(void*), void* arg) {
  return call_any_time("gaspi_threads_run", [&] {
    require_pointer(reinterpret_cast<const void*>(function), "function");
    const std::shared_ptr<Threads> threads = require_threads();
    const std::lock_guard lock(changing);
    if (static_cast<int>(threads->started.size()) + 1 >= threads->count)
      throw Failure(fmt::format("all {} threads run", threads->count));
    threads->started.emplace_back([=] { static_cast<void>(function(arg)); });
  });
}
GASPI_EXPORT(threads_run);

gaspi_return_t pgaspi_threads_register(gaspi_int* tid) {
  return call_any_time("gaspi_threads_register", [&] {
    require_pointer(tid, "tid");
    const std::shared_ptr<Threads> threads = require_threads();
    if (membership.set == threads->number) throw Failure("the calling thread is registered already");
    const int number = threads->registered.fetch_add(1);
    if (number >= threads->count) {
      threads->registered.fetch_sub(1);
      throw Failure(fmt::format("all {} threads are registered", threads->count));
    }
    membership = {threads->number, number};
    *tid = number;
  });
}
GASPI_EXPORT(threads_register);

gaspi_return_t pgaspi_threads_get_tid(gaspi_int* tid) {
  return call_any_time("gaspi_threads_get_tid", [&] {
    require_pointer(tid, "tid");
    *tid = require_registered(*require_threads());
  });
}
GASPI_EXPORT(threads_get_tid);

gaspi_return_t pgaspi_threads_get_total(gaspi_int* num) {
  return call_any_time("gaspi_threads_get_total", [&] {
    require_pointer(num, "num");
    *num = require_threads()->count;
  });
}
GASPI_EXPORT(threads_get_total);

gaspi_return_t pgaspi_threads_get_num_cores(gaspi_int* cores) {
  return call_any_time("gaspi_threads_get_num_cores", [&] {
    require_pointer(cores, "cores");
    *cores = processors();
  });
}
GASPI_EXPORT(threads_get_num_cores);

void pgaspi_threads_sync(void) {
  static_cast<void>(call_any_time("gaspi_threads_sync", [] {
    const std::shared_ptr<Threads> threads = require_threads();
    static_cast<void>(require_registered(*threads));
    threads->meeting.arrive_and_wait();
  }));
}
GASPI_EXPORT(threads_sync);

gaspi_return_t pgaspi_threads_sync_all(gaspi_group_t group, gaspi_timeout_t timeout_ms) {
  return call_any_time("gaspi_threads_sync_all", [&] {
    const std::shared_ptr<Threads> threads = require_threads();
    const int number = require_registered(*threads);
    threads->meeting.arrive_and_wait();
    if (number == 0) threads->result = pgaspi_barrier(group, timeout_ms);
    threads->meeting.arrive_and_wait();
    return threads->result.load();
  });
}
GASPI_EXPORT(threads_sync_all);
