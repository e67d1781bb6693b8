// SPDX-License-Identifier: Apache-2.0
#include "hpe/files/lane.hpp"

#include <mutex>
#include <utility>

#include "core/fork.hpp"

namespace beeline::hpe::detail {

namespace {

/// Lanes that no transfer uses. A forked process leaves its parent's lanes alone: the kernel works for the parent.
struct IdleLanes {
  static constexpr std::size_t most = 8;
  std::mutex mutex;
  beeline::detail::ForkHandler fork_handler{[] {}, &mutex};  ///< a child finds the mutex free, and the list whole
  std::uint32_t depth = beeline::detail::fork_depth();
  std::vector<std::unique_ptr<FileLane>> lanes;

  static IdleLanes& of_process() {
    static constinit beeline::detail::ProcessValue<IdleLanes> idle;
    return idle.get([] { return IdleLanes(); });
  }
  /// The caller holds the mutex.
  void leave_to_parent() {
    if (depth == beeline::detail::fork_depth()) return;
    depth = beeline::detail::fork_depth();
    for (auto& lane : lanes) static_cast<void>(lane.release());
    lanes.clear();
  }
};

}  // namespace

namespace {

struct Unused {
  std::mutex mutex;
  std::size_t waits = 0;  ///< streams that may wait for transfers
  std::vector<std::shared_ptr<void>> buffers;

  static Unused& of_process() {
    static constinit beeline::detail::ProcessValue<Unused> unused;
    return unused.get([] { return Unused(); });
  }
  /// What the caller frees, without the mutex, for which other calls would wait as long as CUDA does.
  [[nodiscard]] std::vector<std::shared_ptr<void>> take_if_possible() {
    return waits == 0 ? std::exchange(buffers, {}) : std::vector<std::shared_ptr<void>>();
  }
};

}  // namespace

void UnusedBuffers::add(std::shared_ptr<void> buffers) {
  Unused& unused = Unused::of_process();
  std::vector<std::shared_ptr<void>> freed;
  const std::lock_guard lock(unused.mutex);
  unused.buffers.push_back(std::move(buffers));
  freed = unused.take_if_possible();
}

UnusedBuffers::Kept::Kept() {
  Unused& unused = Unused::of_process();
  const std::lock_guard lock(unused.mutex);
  ++unused.waits;
}

UnusedBuffers::Kept::~Kept() {
  Unused& unused = Unused::of_process();
  std::vector<std::shared_ptr<void>> freed;
  const std::lock_guard lock(unused.mutex);
  --unused.waits;
  freed = unused.take_if_possible();
}

void FileLane::leave_pinned() {
  if (pinned_) UnusedBuffers::add(std::make_shared<PinnedMemory>(std::move(*pinned_)));
  pinned_.reset();
}

BlockIo& FileLane::io_by_threads() {
  if (io_by_threads_ == nullptr) io_by_threads_ = make_thread_io(most_calls);
  return *io_by_threads_;
}

std::byte* FileLane::buffers(std::size_t bytes, bool is_pinned) {
  if (is_pinned) {
    if (!pinned_ || pinned_->bytes() < bytes) leave_pinned(), pinned_.emplace(bytes);
    return pinned_->data();
  }
  if (!pageable_ || pageable_->bytes() < bytes) pageable_.reset(), pageable_.emplace(bytes, false, "for files");
  return pageable_->data();
}

Stream& FileLane::stream(Device device) {
  for (const auto& each : streams_)
    if (each->device() == device) return *each;
  streams_.push_back(std::make_unique<Stream>(device));
  return *streams_.back();
}

TakenLane::TakenLane() : is_kept_(true) {
  IdleLanes& idle = IdleLanes::of_process();
  {
    const std::lock_guard lock(idle.mutex);
    idle.leave_to_parent();
    if (!idle.lanes.empty()) {
      lane_ = std::move(idle.lanes.back());
      idle.lanes.pop_back();
      return;
    }
  }
  lane_ = std::make_unique<FileLane>(make_block_io(FileLane::most_calls));
}

TakenLane::~TakenLane() {
  if (!is_kept_) return;
  IdleLanes& idle = IdleLanes::of_process();
  const std::lock_guard lock(idle.mutex);
  idle.leave_to_parent();
  if (lane_ != nullptr) idle.lanes.push_back(std::move(lane_));  // CUDA's threads, which may not free it, end here, too
}

void TakenLane::free_surplus() {
  std::vector<std::unique_ptr<FileLane>> surplus;
  IdleLanes& idle = IdleLanes::of_process();
  const std::lock_guard lock(idle.mutex);
  idle.leave_to_parent();
  for (; idle.lanes.size() > IdleLanes::most; idle.lanes.pop_back()) surplus.push_back(std::move(idle.lanes.back()));
}

}  // namespace beeline::hpe::detail
