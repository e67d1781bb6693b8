// SPDX-License-Identifier: Apache-2.0
#include "transports/device_lane.hpp"

#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace beeline {

namespace {

constexpr std::chrono::seconds longest_end{1};

}  // namespace

DeviceLane::~DeviceLane() {
  const auto end = std::chrono::steady_clock::now() + longest_end;
  try {
    while (count_ != 0 && !worker_->over() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  } catch (const std::exception&) {
    // A device with a fault does no further work.
  }
}

const char* DeviceLane::begin(const Command& command, std::byte* remote, StagedBytes bytes, End end) {
  if (count_ == 0) worker_->begin_ring(false, nullptr);
  Begun& next = begun_[count_];
  next.command = command;
  const char* const refused = worker_->begin(next.command, remote, count_);
  if (refused != nullptr) return refused;
  next.bytes = std::move(bytes);
  next.end = std::move(end);
  ++count_;
  return nullptr;
}

bool DeviceLane::turn() {
  if (count_ == 0) return false;
  if (submitted_ != count_) {
    if (worker_->end_ring(nullptr, 0)) static_cast<void>(worker_->submit());
    submitted_ = count_;
  }
  if (!worker_->over()) return true;
  struct Over {
    End end;
    StagedBytes bytes;
    std::uint64_t result;
  };
  std::vector<Over> over;  // copied first, since `end` may begin further commands
  for (std::size_t slot = 0; slot < count_; ++slot) {
    Begun& each = begun_[slot];
    over.push_back({std::exchange(each.end, nullptr), std::move(each.bytes), worker_->result(slot)});
  }
  count_ = submitted_ = 0;
  for (Over& each : over) each.end(each.result, std::move(each.bytes));
  return true;
}

}  // namespace beeline
