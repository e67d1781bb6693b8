// SPDX-License-Identifier: Apache-2.0
#include "common/device_threads.hpp"

#include <fmt/format.h>

#include <exception>
#include <thread>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"

namespace apps {

void Semaphore::post() {
  const std::lock_guard lock(mutex_);
  ++count_;
  posted_.notify_one();
}

void Semaphore::wait(const std::string& what) {
  static const std::chrono::nanoseconds deadline(beeline::Config::from_environment().deadline_ns);
  std::unique_lock lock(mutex_);
  if (!posted_.wait_for(lock, deadline, [this] { return count_ > 0; }))
    throw beeline::Error(beeline::Status::deadline,
                         fmt::format("waiting for {}: it was not posted within {:g} s (BEELINE_DEADLINE_S)", what,
                                     std::chrono::duration<double>(deadline).count()));
  --count_;
}

void on_device_threads(std::size_t parts, const std::function<void(std::size_t part)>& work) {
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (std::size_t part = 0; part < parts; ++part)
      threads.emplace_back([&, part] {
        try {
          work(part);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
      });
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace apps
