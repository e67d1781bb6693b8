// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Operations that another node answers (reads, atomics), for calls with a time-out. Beeline's functions for them block
/// until the answer is there. So a call with a time-out leaves the operation to a thread, and waits for that thread.
/// After a time-out the same call finds the operation again, and waits on. Calls with GASPI_BLOCK need none of this.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gaspi/waiting.hpp"

namespace beeline::gaspi {

/// First numbers of keys.
inline constexpr std::uint64_t reads_key = 0, atomics_key = 1;

class TimedOperations final : public Extension {
 public:
  /// The kind of a call and its arguments, by which it finds its operation again.
  using Key = std::vector<std::uint64_t>;
  struct Call {
    Key key;
    std::uint64_t timeout_ms;
    bool repeats;  ///< an operation that ended because ranks were lost is begun again; otherwise the call fails
  };
  /// Does the operation, and may set `answer`. Keeps the memory that it touches mapped.
  using Operation = std::function<beeline_status(std::uint64_t& answer)>;

  TimedOperations() = default;
  /// Waits for the operations that no call has waited for to the end.
  ~TimedOperations() override;
  void close(Process&) override;

  /// Begins the operation, or continues to wait for that of an earlier call with this key, which timed out; as
  /// `wait_for` does.
  [[nodiscard]] Result perform(const Process& process, const Awaited& awaited, const Call& call,
                               const Operation& operation, std::uint64_t& answer);

 private:
  /// An operation, and the thread that does it.
  struct Pending {
    Key key;
    std::mutex mutex;
    std::condition_variable done;
    bool is_done = false;
    bool has_caller = true;  ///< under the mutex of TimedOperations
    beeline_status status = BEELINE_OK;
    std::string error;
    std::uint64_t answer = 0;
    std::thread thread;

    void run(const Operation& operation);
    [[nodiscard]] bool await(std::uint64_t limit_ns);
  };

  /// The operation of an earlier call, or a new one.
  [[nodiscard]] std::shared_ptr<Pending> find_or_begin(const Key& key, const Operation& operation);
  /// After a time-out: another call may continue the operation.
  void leave(const std::shared_ptr<Pending>& pending);
  void remove(const std::shared_ptr<Pending>& pending);
  void end_all();

  std::mutex mutex_;
  std::list<std::shared_ptr<Pending>> all_;
};

/// The operations of the process that is running.
[[nodiscard]] TimedOperations& timed_operations(const Process& process);

}  // namespace beeline::gaspi
