// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// State of the rendezvous server. Only its thread touches it, except what `mutex_` guards.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "beeline/core/status.hpp"
#include "beeline/runtime/rendezvous.hpp"
#include "runtime/rendezvous_protocol.hpp"
#include "runtime/socket.hpp"

namespace beeline {

namespace detail {

/// What a rank brought to the allgather that it waits in.
struct Contribution {
  std::uint64_t sequence;
  Deadline deadline;
  std::vector<std::byte> bytes;
};

/// One client: a stranger (rank -1) until its hello is accepted.
class Connection {
 public:
  explicit Connection(FileDescriptor descriptor) : socket(std::move(descriptor)) {}
  void send(EncodedFrame frame);
  void flush();
  [[nodiscard]] bool sending() const { return !queue_.empty(); }

  FileDescriptor socket;
  FrameReader reader{max_hello_bytes};
  int rank = -1;
  bool refused = false;               ///< the reason is on its way; what arrives is ignored
  bool broken = false;                ///< to be dropped
  Deadline patience{10'000'000'000};  ///< a stranger's time to say hello, or to read why it was refused
  std::optional<Contribution> waiting;

 private:
  std::deque<EncodedFrame> queue_;
  std::size_t sent_ = 0;
};

}  // namespace detail

class RendezvousServer::Implementation {
 public:
  explicit Implementation(Options options);
  ~Implementation();

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] int failure_descriptor() const noexcept { return failed_.descriptor(); }
  void fail(WorldFailure failure);
  [[nodiscard]] std::optional<WorldFailure> failure() const;

 private:
  /// A rank's place. A rank may leave and join again, for the next world of the same program.
  struct Seat {
    detail::Connection* connection = nullptr;
    std::uint64_t joined = 0;  ///< how often
  };

  void serve();
  [[nodiscard]] int poll_milliseconds() const;
  void accept();
  void receive(detail::Connection& connection);
  void dispatch(detail::Connection& connection, detail::Frame frame);
  [[nodiscard]] std::string why_refuse(const detail::Frame& hello) const;
  void greet(detail::Connection& connection, const detail::Frame& hello);
  void refuse(detail::Connection& connection, const std::string& why);
  void contribute(detail::Connection& connection, detail::Frame frame);
  void complete_round();
  void fail_waiting(detail::Connection& connection, Status status, const std::string& message);
  void fail_if_impossible();
  void vacate(detail::Connection& connection);
  void leave(detail::Connection& connection);
  void push_failure();
  void expire();
  void drop_broken();

  Options options_;
  FileDescriptor listener_;
  std::string address_;
  detail::Event wake_, failed_;
  std::vector<std::unique_ptr<detail::Connection>> connections_;
  std::vector<Seat> seats_;
  detail::EncodedFrame failure_frame_;  ///< set once the ranks have been told
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::optional<WorldFailure> failure_;  ///< guarded by mutex_
  std::thread thread_;
};

}  // namespace beeline
