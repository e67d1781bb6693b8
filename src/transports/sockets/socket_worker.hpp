// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The transport `sockets`: a TCP connection for each pair of ranks. The lower rank opens the connection and introduces
/// itself by a secret of the higher rank, which only ranks of the world know. Without this introduction a connection is
/// closed before anything else is read from it.

#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <deque>
#include <list>

#include "beeline/runtime/file_descriptor.hpp"
#include "transports/network_plan.hpp"
#include "transports/sockets/connection.hpp"

namespace beeline {

/// Used by one thread at a time.
class SocketWorker final : public TransportWorker {
 public:
  /// Throws unavailable, invalid_argument.
  SocketWorker(const NetworkPlan& plan, const SocketFaults& faults, WorkerEvents& events);

  [[nodiscard]] std::vector<std::byte> address() const override;
  void connect(int peer, std::span<const std::byte> address, const std::string& remark) override;
  bool send(int peer, const NetworkMessage& message, std::span<const std::byte> payload, std::uint64_t token,
            StagedBytes staged, DeviceKind kind) override;
  bool fetch(int peer, void* parcel, std::span<std::byte> to, std::uint64_t number, DeviceKind kind) override;
  void drop(void* parcel) override;
  void close() override;
  void disconnect(int peer) override;
  bool progress() override;
  [[nodiscard]] bool arm() override;
  [[nodiscard]] int descriptor() const override { return ready_.get(); }

 private:
  using Tcp = asio::ip::tcp;
  using Secret = std::array<std::byte, 16>;
  /// The first bytes on a connection.
  struct Introduction {
    Secret secret;  ///< published by the rank that accepts, to the ranks of its world
    std::uint32_t from, to;
  };
  /// An attempt to reach a rank.
  struct Dial {
    int peer;
    Secret secret;
    std::deque<Tcp::endpoint> left;  ///< addresses that have not been tried
    std::optional<Tcp::socket> socket;
  };
  /// A connection whose other end has not introduced itself.
  struct Visitor {
    Tcp::socket socket;
    std::uint64_t deadline_ns;
    std::array<std::byte, sizeof(Introduction)> introduction{};
    std::size_t bytes = 0;
  };

  void listen();
  /// Tries the next address of a rank; the rank is lost if there is none left.
  void dial_next(Dial& dial, const std::string& why_not);
  void end_dials();
  void accept();
  /// Reads from all visitors. Returns whether any visitor has introduced itself or was closed.
  bool read_introductions();
  [[nodiscard]] bool is_over(Visitor& visitor);
  void open(int peer, Tcp::socket socket, std::vector<std::byte> first);
  /// Adds a descriptor to `ready_`.
  void watch(int descriptor, std::uint32_t events, std::uint64_t what);
  void watch_blocked(int peer);
  [[nodiscard]] Connection& to(int peer) { return connections_[static_cast<std::size_t>(peer)]; }

  const NetworkPlan plan_;
  SocketFaults faults_;
  WorkerEvents& events_;
  asio::io_context context_;  ///< owns sockets; runs nothing
  Secret secret_;
  FileDescriptor ready_;  ///< the set (epoll) of all sockets
  Tcp::acceptor acceptor_;
  std::deque<Connection> connections_;  ///< [ranks]
  std::vector<bool> waits_to_write_;    ///< [ranks] whether `ready_` watches for room to write
  std::list<Dial> dials_;
  std::list<Visitor> visitors_;
};

}  // namespace beeline
