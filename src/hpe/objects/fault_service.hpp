// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A thread that makes blocks current for threads that cannot do so themselves: inside a signal handler, which must not
/// call CUDA, or inside the kernel (userfaultfd).

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "beeline/runtime/file_descriptor.hpp"
#include "hpe/objects/fault_handler.hpp"

namespace beeline::hpe::detail {

class Userfaults;

/// Started at its first use, and runs as long as the process.
class FaultService {
 public:
  static FaultService& get();

  /// Asks the thread for `BlockObject::resolve`, and waits for its result. Signal handlers may call it. The caller
  /// holds a pin.
  [[nodiscard]] FaultResult resolve(BlockObject& object, const HostFault& fault) noexcept;

 private:
  FaultService();
  /// A request of a thread in a signal handler.
  struct Request {
    std::atomic<std::uint32_t> state{is_free};
    BlockObject* object = nullptr;
    HostFault fault{};
    FaultResult result = FaultResult::failed;
  };
  /// A thread that waits inside the kernel.
  struct Waiting {
    PinnedObject object;
    HostFault fault;
    std::int64_t until_ns;
  };
  /// `is_awaited`: posted, and its thread sleeps.
  static constexpr std::uint32_t is_free = 0, is_taken = 1, is_posted = 2, is_awaited = 3, is_done = 4;

  [[nodiscard]] Request* take() noexcept;
  void serve();
  /// Whether a request or an event comes while the thread stays awake after the latest one.
  [[nodiscard]] bool is_asked_soon();
  void await(bool is_polling);
  void take_events();
  /// Returns whether threads wait for kernels.
  [[nodiscard]] bool serve_events();
  void serve_requests();

  FileDescriptor wakeups_;  ///< an eventfd
  Userfaults* const faults_;
  std::array<Request, 256> requests_;
  std::atomic<std::uint32_t> posted_{0};  ///< number of requests so far
  std::uint32_t seen_ = 0;                ///< value of `posted_` before the latest look at `requests_`
  std::int64_t latest_request_ns_ = 0, latest_event_ns_ = 0;
  std::atomic<bool> is_asleep_{false};  ///< the thread needs a wake-up
  std::vector<Waiting> waiting_;
  std::thread thread_;
};

}  // namespace beeline::hpe::detail
