// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The service thread of a process. It joins the world, takes part in all collective calls on it, and goes on with the
/// other ranks after a failure. Application threads ask it by requests.
///
/// Rounds. A rank with a new request rings at the *coordinator*, the lowest healthy rank, by adding to a signal there.
/// The coordinator starts a round by setting a signal of each rank to the round's number. In a round the ranks gather
/// their requests over the bootstrap, compute the same plan, execute it, and gather once more, so that all ranks know
/// that all have executed it. A round without requests has the first gathering only. Each rank also enters a round by
/// itself when the last one is some time ago; so a process that is stopped misses the gathering's deadline and counts
/// as failed.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gaspi/failure.hpp"
#include "gaspi/objects.hpp"
#include "gaspi/request.hpp"
#include "gaspi/waiting.hpp"

namespace beeline::gaspi {

class Process;

/// Queue of Beeline for the service's signals; the data plane uses lower numbers.
inline constexpr std::uint32_t service_queue = 31;

class Service {
 public:
  /// Starts the thread, which joins the world.
  explicit Service(Process& process);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  /// Ends the thread without leaving the world, unless it has left.
  ~Service();

  // --- For application threads ----------------------------------------------------------------------------------

  /// Waits until the world is joined and the group of all ranks exists.
  [[nodiscard]] Result join(std::uint64_t timeout_ms);
  /// Does a request: waits until the service threads have done it. After a time-out the same request continues it.
  ///   awaited  ranks that are needed: if one fails, the request is withdrawn, and Failure thrown
  [[nodiscard]] Result perform(const Request& request, const Awaited& awaited, std::uint64_t timeout_ms);
  /// Whether a call for this object has timed out and was not called again until its end.
  [[nodiscard]] bool is_pending(Action action, std::uint32_t id) const { return book_.contains(action, id); }
  /// Makes a request that no call waits for.
  void post(const Request& request);
  /// At the termination: fails the calls of `perform` in which other threads are, and waits until they have returned,
  /// at most for twice the world's deadline; whether they have.
  [[nodiscard]] bool end_calls();

  /// Number of times that the world went on without lost ranks.
  [[nodiscard]] std::uint64_t recoveries() const { return recoveries_.load(); }
  /// Waits until the world is not aborted, at most `limit_ns`. Whether it is not. Throws Failure if it cannot go on.
  [[nodiscard]] bool await_recovery(std::uint64_t limit_ns);
  /// Why this rank takes no part in the world any more; empty: it does.
  [[nodiscard]] std::string end_reason() const;
  /// A word that the service thread of `rank` keeps changing. Sets `beats` unless the rank cannot be read now.
  [[nodiscard]] bool read_heartbeat(int rank, std::uint64_t& beats) const;

 private:
  enum class State { joining, running, left, ended };
  /// Signals of a rank, in host memory.
  enum Word : std::size_t { doorbell, round_number, heartbeat, words };

  void serve() noexcept;
  void join_world();
  [[nodiscard]] beeline_status create_world();
  void loop();
  void sleep();
  [[nodiscard]] bool is_round_due();
  void round();
  /// Notes for each of this rank's requests which ranks have not made it yet.
  void note_missing(const std::vector<std::vector<Item>>& items, const std::vector<Item>& mine);
  void await_deaths(const Plan& plan);
  void finish(const std::vector<RequestBook::Numbered>& requests, const std::vector<Outcome>& outcomes);
  void recover();
  void agree_after_failure();
  void note_failures();
  void leave();
  void ring();
  void start_round_elsewhere();
  void end(const std::string& reason, std::int32_t value = static_cast<std::int32_t>(Result::error));
  void set_state(State state);
  [[nodiscard]] int coordinator() const;
  [[nodiscard]] std::uint64_t word(Word which) const;
  /// Collective over the members. Their bytes, by world rank.
  [[nodiscard]] std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) const;

  Process& process_;
  RequestBook book_;
  Objects objects_;
  std::uint64_t* signals_ = nullptr;                    ///< [words] symmetric
  std::vector<int> members_;                            ///< the ranks that agreed to go on, ascending
  std::uint64_t begun_ = 0, completed_ = 0, rung_ = 0;  ///< rounds; doorbells that a round has answered
  bool must_meet_ = false;                              ///< a round follows at once, on all ranks
  std::uint64_t last_round_ns_ = 0, idle_since_ns_ = 0;
  std::vector<RequestBook::Numbered> requests_;  ///< of the round that is executed
  std::atomic<std::uint64_t> recoveries_{0};

  std::mutex ringing_;    ///< held while a doorbell is rung
  bool may_ring_ = true;  ///< false: the world is being closed; under `ringing_`
  mutable std::mutex mutex_;
  std::condition_variable changed_;  ///< state_, recoveries_, is_woken_
  State state_ = State::joining;
  bool is_recovering_ = false, is_woken_ = false, must_stop_ = false;
  std::string end_reason_;
  std::int32_t end_value_ = 0;  ///< what `join` fails with
  std::thread thread_;
};

}  // namespace beeline::gaspi
