// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One GASPI process: one rank of one world of Beeline.
///
/// Concurrency. Everything that is collective over the world is done by the service threads of all ranks, one action
/// after the other; application threads never call collective functions of the world's team. They may call, at any time
/// and from any thread:
/// - one-sided operations on `world_team()`, whose peers are world ranks;
/// - the barrier of a group's team, in the thread that has set `Group::is_in_barrier`.
/// The death of a rank aborts the world's team, and the teams of which the rank was a member. Operations on the world's
/// team then return BEELINE_ABORTED or BEELINE_PEER_DIED until the service threads have gone on without the rank
/// (`World::survivors`); `Waiting::go_on` waits for that.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "beeline/beeline.h"
#include "gaspi/connections.hpp"
#include "gaspi/failure.hpp"
#include "gaspi/group.hpp"
#include "gaspi/health.hpp"
#include "gaspi/remote_calls.hpp"
#include "gaspi/segment_table.hpp"

namespace beeline::gaspi {

class Process;
class Service;

/// Something that needs collective calls of its own, such as the buffers of passive messages. The service threads of
/// all ranks call these functions in the same order, while the application's threads wait or do other things.
class Extension {
 public:
  virtual ~Extension() = default;
  /// Once, when all ranks have joined, before the initialization ends: may make memory of the world.
  virtual void open(Process&) {}
  /// Before memory of segments is unmapped, on every rank: returns when no transfer that this rank has begun is in
  /// flight, or when it has failed. Not longer than the world's deadline.
  virtual void drain(Process&) {}
  /// Between rounds, every 50 us to 10 ms: does what other ranks have asked for. Returns whether there was anything.
  [[nodiscard]] virtual bool serve(Process&) { return false; }
  /// After ranks have failed and the world goes on without them.
  virtual void recovered(Process&) {}
  /// Before the world is left. Memory of the world ends with it.
  virtual void close(Process&) {}
};
/// Makes all extensions of a process, in an order that is the same on all ranks. Defined in extensions.cpp.
[[nodiscard]] std::vector<std::unique_ptr<Extension>> make_extensions();

/// The process between the beginning of its initialization and the end of its termination.
class Process {
 public:
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();
  /// The process if it is initialized; nullptr before and after.
  [[nodiscard]] static Process* running() { return running_.load(std::memory_order_acquire); }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] beeline_world* world() const { return world_; }
  /// The team of the world, for one-sided operations.
  [[nodiscard]] beeline_team* world_team() const { return world_team_; }
  /// Whether this rank runs on a GPU.
  [[nodiscard]] bool has_gpu() const { return has_gpu_; }
  /// The longest time without a sign of life after which a rank counts as failed: the world's deadline.
  [[nodiscard]] std::uint64_t deadline_ns() const { return deadline_ns_; }
  [[nodiscard]] const SegmentTable& segments() const { return *segments_; }
  [[nodiscard]] const HealthTable& health() const { return *health_; }
  [[nodiscard]] Connections& connections() const { return *connections_; }
  /// Calls `operation()`, which asks `rank` of another node and returns a beeline_status. BEELINE_ABORTED: ranks were
  /// lost; the operation may not have been done. Operations themselves return it if their answer is not to be used.
  template <class Operation>
  [[nodiscard]] beeline_status ask(int rank, const Operation& operation) const {
    const RemoteCalls::Call call(remote_calls_);
    if (!call.may_go_on() || !health_->is_healthy(rank) || beeline_team_failed(world_team_) != 0)
      return BEELINE_ABORTED;
    return operation();
  }
  [[nodiscard]] GroupTable& groups() { return groups_; }
  [[nodiscard]] Service& service() { return *service_; }
  /// Number of times that the world went on without lost ranks.
  [[nodiscard]] std::uint64_t recoveries() const;
  /// Waits until the world is not aborted, at most `limit_ns`. Returns whether it is not.
  [[nodiscard]] bool await_recovery(std::uint64_t limit_ns) const;
  /// An extension by its type; nullptr if there is none.
  template <class Type>
  [[nodiscard]] Type* extension() const {
    for (const std::unique_ptr<Extension>& each : extensions_)
      if (auto* const found = dynamic_cast<Type*>(each.get())) return found;
    return nullptr;
  }
  /// Writes one line to standard error, with the rank before it.
  void log(const std::string& text) const;

 private:
  friend class Service;
  friend class Objects;
  friend class Life;
  explicit Process(std::vector<std::unique_ptr<Extension>> extensions);

  static inline constinit std::atomic<Process*> running_{nullptr};  ///< set by Life

  // Set by the service thread before the initialization ends.
  int rank_ = 0, size_ = 1;
  beeline_world* world_ = nullptr;
  beeline_team* world_team_ = nullptr;
  bool has_gpu_ = false;
  std::uint64_t deadline_ns_ = 0;
  std::unique_ptr<SegmentTable> segments_;
  std::unique_ptr<HealthTable> health_;
  std::unique_ptr<Connections> connections_;
  mutable RemoteCalls remote_calls_;
  GroupTable groups_;
  const std::vector<std::unique_ptr<Extension>> extensions_;
  std::unique_ptr<Service> service_;  ///< last, so that its thread ends first
};

}  // namespace beeline::gaspi
