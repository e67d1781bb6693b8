// SPDX-License-Identifier: Apache-2.0
#include "hpe/files/on_gpu_stream.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "hpe/awaited_word.hpp"
#include "hpe/files/copies_in_turn.hpp"
#include "hpe/files/file_threads.hpp"
#include "hpe/files/lane.hpp"
#include "runtime/deadline.hpp"

namespace beeline::hpe::detail {

/// Calls and buffers of a stream's transfers, which follow one another. It goes back when the last of them has ended.
struct LaneOfStream {
  LaneOfStream(std::size_t size, bool is_pinned)
      : files(&taken.get()), buffers(files->buffers(size, is_pinned)), bytes(size) {}
  TakenLane taken;
  FileLane* const files;
  std::byte* const buffers;
  const std::size_t bytes;
  std::atomic<bool> is_left{false};  ///< the operating system may use the buffers for ever
};

namespace {

/// The stream, its transfer and the thread share this.
class HeldTransfer {
 public:
  HeldTransfer(std::shared_ptr<FileTransfer> transfer, const StreamState& stream)
      : transfer_(std::move(transfer)), device_(stream.device()), begun_(device_.device().is_gpu()),
        done_(device_.device().is_gpu()), begun_value_(begun_.next_value()), done_value_(done_.next_value()) {}

  /// Makes buffers, and what the stream's copies need.
  void prepare(FilesOfStream& files) {
    const bool is_pinned = device_.device().is_gpu();
    how_.emplace(transfer_->in_turn());
    const std::size_t bytes = how_->slots * how_->buffer_bytes;
    lane_ = files.lane.lock();
    if (lane_ == nullptr || lane_->bytes < bytes || lane_->is_left)
      lane_ = std::make_shared<LaneOfStream>(bytes, is_pinned);
    files.lane = lane_;
    copies_.emplace(*transfer_, *how_, lane_->buffers, is_pinned, is_abandoned_);
  }
  /// `run` may go on meanwhile. If it throws, `abandon` must follow.
  void enqueue(StreamState& stream, const std::shared_ptr<HeldTransfer>& self) {
    stream.enqueue_own([&](beeline::Stream& own) { own.write_signal(begun_.address(), begun_value_); });
    if (copies_) copies_->enqueue(stream);
    stream.hold_until(done_.address(), done_value_);
    keep_until_passed(stream, self);
  }
  /// Ends the transfer. The stream may use the buffers until it has passed the part that it has taken.
  void abandon(StreamState& stream, const std::shared_ptr<HeldTransfer>& self) noexcept {
    is_abandoned_ = true;
    auto kept = std::make_unique<std::shared_ptr<HeldTransfer>>(self);
    try {
      keep_until_passed(stream, self);
    } catch (const std::exception& error) {
      static_cast<void>(kept.release());  // kept for ever
      log(LogLevel::warning, std::string("buffers of a transfer with a file stay: ") + error.what());
    }
  }
  /// By a thread, which calls nothing of a device before the stream's waits have ended.
  void run() {
    try {
      await_earlier();
      move();
    } catch (...) {
      failure_ = std::current_exception();
    }
    transfer_.reset();
    // After a failure the stream may still copy.
    const std::shared_ptr<LaneOfStream> unused = failure_ ? nullptr : std::move(lane_);
    if (copies_) copies_->release();
    done_.store(done_value_);
    kept_.reset();
  }
  void report() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static void keep_until_passed(StreamState& stream, const std::shared_ptr<HeldTransfer>& self) {
    stream.enqueue_own([&](beeline::Stream& own) { own.enqueue([self] {}); });
  }
  void await_earlier() const {
    const beeline::detail::Deadline deadline(Runtime::get().config().stream_deadline_ns);
    while (!begun_.has(begun_value_)) {
      device_.require_working();
      require(!is_abandoned_, Status::aborted, "the stream has not taken a transfer with a file");
      if (deadline.passed())
        throw Error(Status::deadline,
                    fmt::format("{}: work of a stream of {} before the transfer did not end within {} s",
                                transfer_->text(), device_.device().name(), deadline.total_seconds()));
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  void move() {
    if (!copies_) return transfer_->run();
    if (lane_->is_left)
      throw Error(Status::unavailable, transfer_->text() +
                                           ": the operating system still uses the stream's buffers for "
                                           "an earlier transfer, which it did not end");
    transfer_->run_in_turn(*how_, *lane_->files, *copies_, [this] {
      lane_->is_left = true;
      lane_->taken.leave();
    });
  }

  std::unique_ptr<UnusedBuffers::Kept> kept_ = std::make_unique<UnusedBuffers::Kept>();  ///< while the stream waits
  std::shared_ptr<FileTransfer> transfer_;
  DeviceState& device_;
  AwaitedWord begun_, done_;  ///< stored by the stream, and by the thread
  const std::uint64_t begun_value_, done_value_;
  std::optional<Proceeding> how_;
  std::shared_ptr<LaneOfStream> lane_;
  std::optional<CopiesInTurn> copies_;
  std::atomic<bool> is_abandoned_{false};
  std::exception_ptr failure_;  ///< written before the word `done_`, read behind it
};

}  // namespace

std::function<void()> run_on_gpu_stream(std::shared_ptr<FileTransfer> transfer, StreamState& stream, bool stages,
                                        StreamState* before) {
  const std::lock_guard lock(stream.files().mutex);
  std::shared_ptr<HeldTransfer> held;
  stream.on_device([&] {
    held = std::make_shared<HeldTransfer>(std::move(transfer), stream);
    if (stages) held->prepare(stream.files());
  });
  if (before != nullptr) stream.wait_for(*before);
  run_on_file_thread([held] { held->run(); });
  try {
    held->enqueue(stream, held);
  } catch (...) {
    held->abandon(stream, held);
    throw;
  }
  return [held] { held->report(); };
}

}  // namespace beeline::hpe::detail
