// SPDX-License-Identifier: Apache-2.0
#include "host/world/engines.hpp"

#include <fmt/format.h>

#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/runtime/gpu_place.hpp"
#include "control/gpu_windows.hpp"

namespace beeline {

std::unique_ptr<HostEngine> Engines::make_host_engine(int threads, bool is_timed) {
  require(threads >= 1 && threads <= 8 && config_.engine_poll_us >= 0, Status::invalid_argument,
          fmt::format("an engine of {} threads that look every {} us; valid: 1 to 8 threads, 0 us or more", threads,
                      config_.engine_poll_us));
  open_windows();
  EngineClient served = client();
  EngineOptions options{threads, config_.engine_poll_us, config_.engine_cores, {}, is_timed, windows_};
  if (device_.is_gpu() && options.cores.empty()) {
    NearCores near = cores_near_gpu(device_.index);
    if (near.cores.empty())
      log(LogLevel::info, "the engine's threads run anywhere: " + near.reason, served.rank);
    else
      options.near = std::move(near.cores);
  }
  return std::make_unique<HostEngine>(std::move(served), options);
}

void Engines::open_windows() {
  if (!device_.is_gpu() || !config_.cpu_stores) return;
  std::call_once(windows_are_open_, [this] {
    const EngineClient served = client();
    auto opened = std::make_shared<const GpuWindows>(served);
    for (const std::string& reason : opened->reasons())
      log(LogLevel::info, "words for GPU memory are left to streams, not stored by the engine's threads: " + reason,
          served.rank);
    if (!opened->empty()) windows_ = std::move(opened);
  });
}

HostEngine& Engines::of_queues() {
  const std::lock_guard lock(mutex_);
  if (of_queues_ == nullptr) of_queues_ = make_host_engine(config_.engine_threads, false);
  return *of_queues_;
}

std::vector<std::string> Engines::take_refusals() {
  std::vector<std::string> texts;
  {
    const std::lock_guard lock(mutex_);
    if (of_queues_ != nullptr) texts = of_queues_->refusals().take();
  }
  for (std::string& text : device_refusals_.take()) texts.push_back(std::move(text));
  return texts;
}

void Engines::abandon(std::vector<std::byte> buffer) {
  const std::lock_guard lock(mutex_);
  abandoned_.push_back(std::move(buffer));
}

void Engines::end() {
  of_queues_.reset();
  of_peers_.reset();
}

}  // namespace beeline
