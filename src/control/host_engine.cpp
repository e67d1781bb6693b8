// SPDX-License-Identifier: Apache-2.0
#include "control/host_engine.hpp"

#include <algorithm>

#include "control/engine_thread.hpp"

namespace beeline {

std::atomic<int> HostEngine::of_gpus_{0};

HostEngine::HostEngine(const EngineClient& client, const EngineOptions& options)
    : is_of_gpu_(client.device.is_gpu()), windows_(options.windows) {
  const auto make = [windows = windows_.get()](const EngineClient& each) { return make_worker(each, windows); };
  for (int i = 0; i < options.threads; ++i) {
    const auto number = static_cast<std::size_t>(client.rank * options.threads + i);
    const std::vector<int> own =
        options.cores.empty() ? options.near : std::vector{options.cores[number % options.cores.size()]};
    threads_.push_back(std::make_unique<EngineThread>(
        client,
        EngineThread::Options{.poll_us = options.poll_us, .is_timed = options.is_timed, .cores = own, .make = make}));
  }
  of_gpus_ += is_of_gpu_ ? 1 : 0;
}

HostEngine::~HostEngine() { of_gpus_ -= is_of_gpu_ ? 1 : 0; }

void HostEngine::add(CommandRing& ring, std::uint64_t* told) {
  const std::lock_guard lock(mutex_);
  (*std::min_element(threads_.begin(), threads_.end(), [](const auto& a, const auto& b) {
    return a->rings() < b->rings();
  }))->add(ring, told);
}

void HostEngine::remove(CommandRing& ring) {
  const std::lock_guard lock(mutex_);
  for (const auto& thread : threads_)
    if (thread->remove(ring)) return;
}

void HostEngine::serve_triggers(CommandRing& ring, TriggerTable& table, std::uint32_t queue) {
  const std::lock_guard lock(mutex_);
  for (const auto& thread : threads_) thread->serve_triggers(ring, table, queue);
}

EngineStatistics HostEngine::statistics() const {
  EngineStatistics sum;
  for (const auto& thread : threads_) {
    const EngineStatistics one = thread->statistics();
    sum.commands += one.commands, sum.bytes += one.bytes, sum.refused += one.refused, sum.sleeps += one.sleeps;
    sum.deepest = std::max(sum.deepest, one.deepest);
    sum.cpu_s += one.cpu_s, sum.begin_s += one.begin_s, sum.work_s += one.work_s, sum.batches += one.batches;
    sum.cpu_stores += one.cpu_stores;
  }
  return sum;
}

std::string HostEngine::refusal(const CommandRing& ring) const {
  for (const auto& thread : threads_)
    if (std::string found = thread->refusal(ring); !found.empty()) return found;
  return {};
}

std::vector<std::string> HostEngine::take_refusals() {
  std::vector<std::string> all;
  for (const auto& thread : threads_)
    for (std::string& text : thread->take_refusals()) all.push_back(std::move(text));
  return all;
}

}  // namespace beeline
