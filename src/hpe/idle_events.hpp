// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Events for reuse: making one takes microseconds on a GPU.

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "beeline/transport/stream.hpp"

namespace beeline::hpe::detail {

/// Events of one stream that no call uses. Any thread may use it.
class IdleEvents {
 public:
  /// An event of `stream` for one record. It goes back to `idle` when its last owner is destroyed.
  [[nodiscard]] static std::shared_ptr<Event> take(const std::shared_ptr<IdleEvents>& idle, beeline::Stream& stream) {
    std::unique_ptr<Event> event = idle->last();
    if (event == nullptr) event = stream.make_event();
    return {event.release(), [idle](Event* used) { idle->add(std::unique_ptr<Event>(used)); }};
  }

 private:
  [[nodiscard]] std::unique_ptr<Event> last() {
    const std::lock_guard lock(mutex_);
    if (events_.empty()) return nullptr;
    std::unique_ptr<Event> event = std::move(events_.back());
    events_.pop_back();
    return event;
  }
  void add(std::unique_ptr<Event> event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Event>> events_;
};

}  // namespace beeline::hpe::detail
