// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A resident grid that serves other kernels and ranks from a rank's device, by leases.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "beeline/control/impl/lease.hpp"
#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"
#include "control/engine_thread.hpp"
#include "memory/memory_users.hpp"
#include "runtime/residency.hpp"

namespace beeline {

/// Starts a grid while there is work for it. The grid ends by itself after a lease, or when it has been idle, and
/// leaves its state in memory for the next lease. So calls that wait for the whole device, and kernels that fill it,
/// can proceed. The grid's residency on the device is booked for the lifetime of this object.
///
/// Before it ends, the kernel leaves `Lease::asleep_mark` in the words that posters exchange, polls once more, and asks
/// for the next lease itself if it finds work (`falls_asleep`, core/command_protocol.hpp). A poster that finds the mark
/// asks for a lease (`Lease::ask`); a CPU thread then calls `detail::wake_engine` with the lease.
class LeasedGrid {
 public:
  struct Work {
    std::string name;  ///< for errors
    ReservedRoom room;
    /// Launches the grid on a stream. No memory is unmapped from the launch to the end of the grid; memory may have
    /// been unmapped before.
    std::function<void(Stream&, const Lease&)> start;
    std::function<void()> after = {};      ///< called by the host's thread when a lease is over
    std::function<void()> meanwhile = {};  ///< called from time to time during a lease
    std::function<void()> between = {};    ///< called from time to time between leases
    /// Whether the grid has ended. Set if a lease does not wait for kernels that the grid has started; then the grid is
    /// not launched on the stream passed to `start`.
    std::function<bool()> is_over = {};
    bool goes_on = false;  ///< `meanwhile` observes state that spans leases
    std::uint64_t lease_ns = 2'000'000, idle_ns = 200'000;
  };
  /// Collective. Runs a first lease, which ends at once, so that the code is loaded. Throws no_resource if waiting
  /// grids on the device leave too little room.
  LeasedGrid(Team& team, Work work);
  /// Collective. Ends after the lease that runs.
  ~LeasedGrid();

  [[nodiscard]] const Lease& terms() const { return lease_; }
  /// Calls `change` while no lease runs: waits for the end of the current lease.
  void between_leases(const std::function<void()>& change);
  /// Asks for a lease.
  void want();
  [[nodiscard]] std::uint64_t leases() const { return leases_; }
  /// Number of times that the host's thread has found nothing to start.
  [[nodiscard]] std::uint64_t sleeps() const { return sleeps_; }
  [[nodiscard]] double cpu_s() const;

 private:
  void book();
  void run();
  void rest();
  void lease(const Lease& terms);
  /// Waits until the grid has begun and ended. As any work of a stream, it may first wait for other work that fills the
  /// device.
  void await_end();

  World& world_;
  const Work work_;
  const int poll_us_;
  SymmetricArray<std::uint64_t> wanted_;
  const std::unique_ptr<Stream> stream_;
  MemoryUser memory_user_;
  Bell bell_;
  const Lease lease_;
  std::atomic<std::uint64_t> leases_{0}, sleeps_{0};
  std::uint64_t looked_ns_ = 0;  ///< time of the last `meanwhile`
  std::mutex leased_;            ///< held during a lease
  std::atomic<int> changes_{0};  ///< changes that wait for `leased_`; they precede the next lease
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace beeline
