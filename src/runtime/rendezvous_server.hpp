// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// State of the rendezvous server. Only its thread touches it, except what `mutex_` guards.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "beeline/core/status.hpp"
#include "beeline/runtime/health.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "core/fork.hpp"
#include "runtime/served_world.hpp"
#include "runtime/socket.hpp"

namespace beeline {

class RendezvousServer::Implementation {
 public:
  explicit Implementation(Options options);
  ~Implementation();

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] int failure_descriptor() const noexcept { return failed_.descriptor(); }
  void close();
  void await_departure(std::int64_t nanoseconds);
  /// Reports a failure in all worlds, later ones included.
  void fail(const WorldFailure& failure);
  [[nodiscard]] std::optional<WorldFailure> failure() const;
  [[nodiscard]] std::vector<WorldFailure> take_failures();
  void expect_no_more(int rank);
  [[nodiscard]] bool is_missed(int rank) const;

 private:
  struct Rank {
    std::uint64_t process = 0;    ///< the process that joined last
    std::uint64_t worlds = 0;     ///< worlds that the rank has joined
    std::size_t connections = 0;  ///< open connections
    bool ended = false;           ///< the rank's process joins no further world
  };

  void serve();
  void close_in_child() const;
  [[nodiscard]] int poll_milliseconds() const;
  void accept();
  [[nodiscard]] std::size_t strangers() const;
  [[nodiscard]] bool drop_oldest_stranger();
  void pause_accepting(int error);
  void note_ended_ranks();
  void receive(detail::Connection& connection);
  void dispatch(detail::Connection& connection, detail::Frame frame);
  [[nodiscard]] std::string why_refuse(const detail::Connection& connection, const detail::Frame& hello) const;
  void greet(detail::Connection& connection, const detail::Frame& hello);
  void refuse(detail::Connection& connection, const std::string& why);
  void contribute(detail::Connection& connection, detail::Frame frame);
  void complete_round(detail::ServedWorld& world);
  void fail_waiting(detail::Connection& connection, Status status, const std::string& message);
  void fail_if_impossible(detail::ServedWorld& world);
  void fail_world(detail::ServedWorld& world, const WorldFailure& failure);
  void call_survivors(detail::Connection& connection, const detail::Frame& frame);
  void settle_survivors(detail::ServedWorld& world);
  void vacate(detail::Connection& connection);
  void leave(detail::Connection& connection);
  void end_departures();
  void push_ends();
  void expire();
  void expire_allgather(detail::ServedWorld& world);
  void expire_survivors(detail::ServedWorld& world);
  void drop_broken();

  Options options_;
  FileDescriptor listener_;
  std::string address_;
  detail::Event wake_, failed_;
  std::vector<std::unique_ptr<detail::Connection>> connections_;
  std::vector<Rank> ranks_;
  std::map<std::uint64_t, detail::ServedWorld> worlds_;  ///< by number of worlds that the ranks joined before
  std::optional<detail::Deadline> pause_;  ///< no connection is accepted until then, for lack of descriptors
  bool has_said_pause_ = false;
  std::atomic<bool> stopping_{false}, closing_{false};
  mutable std::mutex mutex_;  ///< guards the next eight members
  std::condition_variable departed_;
  std::vector<WorldFailure> failures_;  ///< failures of any world
  std::size_t taken_ = 0;               ///< failures that the launcher has taken
  std::vector<WorldFailure> ends_;      ///< failures in all worlds
  std::size_t members_ = 0;             ///< connections with a rank
  std::vector<int> ended_;              ///< ranks named by expect_no_more() that the server's thread has not handled
  std::vector<int> missed_;             ///< ranks that ended before they joined a world
  bool reported_ = false;               ///< a failure was reported to ranks that have not continued after it
  std::mutex round_mutex_;              ///< held by the server's thread, except while it waits
  std::thread thread_;
  std::optional<detail::ForkHandler> fork_handler_;
};

}  // namespace beeline
