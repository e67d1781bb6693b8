// SPDX-License-Identifier: Apache-2.0
#include "control/host_engine.hpp"

#include <algorithm>
#include <utility>

#include "control/engine_thread.hpp"

namespace beeline {

std::atomic<int> HostEngine::of_gpus_{0};

HostEngine::HostEngine(EngineOptions options) : options_(std::move(options)) {}

HostEngine::HostEngine(const EngineClient& client, EngineOptions options) : HostEngine(std::move(options)) {
  serve(client);
}

HostEngine::~HostEngine() {
  threads_.clear();
  of_gpus_ -= is_of_gpu_ ? 1 : 0;
}

void HostEngine::serve(const EngineClient& client) {
  const auto make = [windows = options_.windows.get()](const EngineClient& each) { return make_worker(each, windows); };
  for (int i = 0; i < options_.threads; ++i) {
    const auto number = static_cast<std::size_t>(client.rank * options_.threads + i);
    const std::vector<int> cores =
        options_.cores.empty() ? options_.near : std::vector{options_.cores[number % options_.cores.size()]};
    threads_.push_back(std::make_unique<EngineThread>(
        client, refusals_,
        EngineThread::Options{
            .poll_us = options_.poll_us, .is_timed = options_.is_timed, .cores = cores, .make = make}));
  }
  for (CommandRing* ring : client.rings) add(own_.emplace_back(*ring));
  is_of_gpu_ = client.device.is_gpu();
  of_gpus_ += is_of_gpu_ ? 1 : 0;
}

void HostEngine::add(CommandSource& source, std::uint64_t* mirror) {
  const std::lock_guard lock(mutex_);
  (*std::min_element(threads_.begin(), threads_.end(), [](const auto& a, const auto& b) {
    return a->sources() < b->sources();
  }))->add(source, mirror);
}

void HostEngine::remove(const CommandSource& source) {
  const std::lock_guard lock(mutex_);
  for (const auto& thread : threads_)
    if (thread->remove(source)) return;
}

void HostEngine::serve_triggers(const CommandSource& source, HostTriggers& table, std::uint32_t queue) {
  const std::lock_guard lock(mutex_);
  for (const auto& thread : threads_) thread->serve_triggers(source, table, queue);
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

std::unique_ptr<Engine> HostEngines::make(int, const std::vector<Device>&) const {
  return std::make_unique<HostEngine>(options_);
}

}  // namespace beeline
