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

template <class Begin>
const char* DeviceLane::add(StagedBytes bytes, End end, const Begin& begin) {
  if (count_ == 0) worker_->begin_ring(false, nullptr);
  if (const char* const refused = begin(*worker_)) return refused;
  begun_[count_++] = {std::move(bytes), std::move(end)};
  return nullptr;
}

const char* DeviceLane::begin(const Command& command, std::byte* remote, End end) {
  return add({}, std::move(end), [&](CommandWorker& worker) { return worker.begin(command, remote, count_); });
}

const char* DeviceLane::begin(const RowMove& rows, StagedBytes bytes, End end) {
  return add(std::move(bytes), std::move(end), [&](CommandWorker& worker) { return worker.begin(rows); });
}

bool DeviceLane::turn() {
  if (count_ == 0) return false;
  if (submitted_ != count_) {
    if (worker_->end_ring(nullptr, 0)) submission_ = worker_->submit();
    submitted_ = count_;
  }
  if (!worker_->over(submission_)) return true;
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
