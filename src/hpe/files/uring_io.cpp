// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "beeline/core/error.hpp"
#include "hpe/files/block_io.hpp"
#include "hpe/files/liburing.hpp"
#include "runtime/deadline.hpp"

namespace beeline::hpe::detail {

namespace {

/// Tag of cancellations, whose results do not matter.
constexpr std::uint64_t uring_cancellation = ~std::uint64_t{0};

__kernel_timespec uring_time(std::int64_t ns) { return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000}; }

class UringIo final : public BlockIo {
 public:
  explicit UringIo(unsigned depth) {
    // Twice the depth: cancellations have entries of their own.
    const int result = uring().io_uring_queue_init(2 * depth, &ring_, 0);
    require(result == 0, Status::unavailable,
            fmt::format("the system refuses io_uring ({})", std::generic_category().message(-result)));
  }
  ~UringIo() override { uring().io_uring_queue_exit(&ring_); }

  void start(const BlockCall& call) override {
    io_uring_sqe* const entry = next_entry();
    const auto bytes = static_cast<unsigned>(call.bytes);
    switch (call.kind) {
      case BlockCall::Kind::read:
        io_uring_prep_read(entry, call.descriptor, call.memory, bytes, call.offset);
        break;
      case BlockCall::Kind::write:
        io_uring_prep_write(entry, call.descriptor, call.memory, bytes, call.offset);
        break;
      case BlockCall::Kind::sync_data:
        io_uring_prep_fsync(entry, call.descriptor, IORING_FSYNC_DATASYNC);
        break;
      case BlockCall::Kind::sync:
        io_uring_prep_fsync(entry, call.descriptor, 0);
        break;
    }
    // By threads of the kernel: otherwise the submitting thread would copy one block after the other.
    if (call.is_aside && call.bytes >= least_copied_aside) io_uring_sqe_set_flags(entry, IOSQE_ASYNC);
    io_uring_sqe_set_data64(entry, call.tag);
    ++in_flight_;
  }

  void submit() override { check(uring().io_uring_submit(&ring_)); }

  bool await(BlockResult& result, std::int64_t longest_ns, unsigned wanted) override {
    if (next_ == ready_) take_results(longest_ns, wanted);
    if (next_ == ready_) return false;
    result = results_[next_++];
    --in_flight_;
    return true;
  }

  bool cancel(std::int64_t longest_ns) override {
    const beeline::detail::Deadline deadline(longest_ns);
    if (in_flight_ > ready_ - next_) {
      io_uring_sqe* const entry = next_entry();
      io_uring_prep_cancel64(entry, 0, IORING_ASYNC_CANCEL_ANY);
      io_uring_sqe_set_data64(entry, uring_cancellation);
    }
    BlockResult ignored;
    while (in_flight_ > 0 && !deadline.passed()) static_cast<void>(await(ignored, deadline.remaining_ns(), 1));
    return in_flight_ == 0;
  }

 private:
  static constexpr std::size_t least_copied_aside = std::size_t{128} << 10;

  io_uring_sqe* next_entry() {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) {
      static_cast<void>(uring().io_uring_submit(&ring_));
      entry = io_uring_get_sqe(&ring_);
    }
    require(entry != nullptr, Status::internal, "io_uring takes no more calls");
    return entry;
  }

  static void check(int submitted) {
    const bool is_fine =
        submitted >= 0 || submitted == -ETIME || submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY;
    require(is_fine, Status::internal, fmt::format("io_uring failed: {}", std::generic_category().message(-submitted)));
  }

  void take_results(std::int64_t longest_ns, unsigned wanted) {
    next_ = ready_ = 0;
    io_uring_cqe* first = nullptr;
    __kernel_timespec limit = uring_time(longest_ns);
    check(longest_ns > 0 ? uring().io_uring_submit_and_wait_timeout(&ring_, &first, wanted, &limit, nullptr)
                         : uring().io_uring_submit(&ring_));
    std::array<io_uring_cqe*, 64> found{};
    const unsigned count = uring().io_uring_peek_batch_cqe(&ring_, found.data(), found.size());
    for (unsigned i = 0; i < count; ++i)
      if (found[i]->user_data != uring_cancellation)
        results_[ready_++] = {static_cast<unsigned>(found[i]->user_data), found[i]->res};
    io_uring_cq_advance(&ring_, count);
  }

  io_uring ring_{};
  std::array<BlockResult, 64> results_{};
  std::size_t next_ = 0, ready_ = 0;  ///< results_[next_, ready_) have not been returned
  std::size_t in_flight_ = 0;         ///< calls whose results have not been returned
};

}  // namespace

std::unique_ptr<BlockIo> make_uring_io(unsigned depth) { return std::make_unique<UringIo>(depth); }

}  // namespace beeline::hpe::detail
