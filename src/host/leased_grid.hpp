// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A grid that serves others from a rank's device, by leases.

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

namespace beeline {

/// Starts a grid for as long as there is work for it. The grid ends by itself after a lease, or when it has been idle,
/// and leaves in memory all that the next one goes on from: so calls that wait for the whole device, and kernels that
/// fill it, get through. Its room on the device is booked while this lives.
///
/// What a kernel does that serves: it leaves `Lease::asleep_mark` in the words that posters exchange, then looks once
/// more, and asks for the next lease itself where it finds work (`falls_asleep`, core/command_protocol.hpp). Whoever
/// posts, then finds a mark, asks (`Lease::ask`), and on a CPU calls `detail::wake_engine` with it.
class LeasedGrid {
 public:
  struct Work {
    std::string name;  ///< for errors
    double share;      ///< of what is resident on the device at once
    /// Launches the grid on a stream. Nothing is unmapped until it has ended; before, anything may have been.
    std::function<void(Stream&, const Lease&)> start;
    std::function<void()> after = {};      ///< what the host has to do when a lease is over
    std::function<void()> meanwhile = {};  ///< and now and then during one
    std::function<void()> between = {};    ///< and now and then while there is none
    /// Whether the grid itself has ended, where a lease does not wait for what the grid has started; the grid is then
    /// not launched on the stream that `start` is given.
    std::function<bool()> is_over = {};
    bool goes_on = false;  ///< `meanwhile` looks at what goes on from one lease to the next
    std::uint64_t lease_ns = 2'000'000, idle_ns = 200'000;
  };
  /// The share of a grid of small blocks, of which `resident` are resident at once: its part of one multiprocessor,
  /// taken on each of them, and `blocks` multiprocessors more. Blocks of a waiting grid are spread evenly: less would
  /// leave holes on many multiprocessors, none of which holds a block.
  [[nodiscard]] static double share_of(World& world, unsigned resident, unsigned blocks);
  /// Collective. Runs a first lease, which ends at once, so that the code is loaded. Throws no_resource where what
  /// waits on the device leaves no room.
  LeasedGrid(Team& team, Work work);
  /// Collective. Ends after the lease that runs.
  ~LeasedGrid();

  [[nodiscard]] const Lease& terms() const { return lease_; }
  /// Calls `change` while no lease runs: waits for the end of the one that does.
  void between_leases(const std::function<void()>& change);
  /// Asks for a lease.
  void want();
  [[nodiscard]] std::uint64_t leases() const { return leases_; }
  /// Times that the host's thread has found nothing to start.
  [[nodiscard]] std::uint64_t sleeps() const { return sleeps_; }
  [[nodiscard]] double cpu_s() const;

 private:
  void book();
  void run();
  void rest();
  void lease(const Lease& terms);
  /// Until the grid has begun and ended: behind whatever fills the device, as any work of a stream.
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
  std::uint64_t looked_ns_ = 0;  ///< when `meanwhile` looked last
  std::mutex leased_;            ///< held during a lease
  std::atomic<int> changes_{0};  ///< that wait for it: they go before the next lease
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace beeline
