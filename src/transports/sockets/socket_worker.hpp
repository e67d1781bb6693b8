// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The transport `sockets`: a TCP connection for each pair of ranks. The lower rank opens the connection and introduces
/// itself by a secret of the higher rank, which only ranks of the world know. Without this introduction a connection is
/// closed before anything else is read from it. In a secure world TLS precedes the introduction: see
/// connection_keys.hpp.

// Not options of the compiler: GCC would take no precompiled headers that were made without them.
#define ASIO_STANDALONE
#define ASIO_NO_DEPRECATED

#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <deque>
#include <list>

#include "beeline/runtime/file_descriptor.hpp"
#include "transports/network_plan.hpp"
#include "transports/sockets/socket_connection.hpp"

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
  [[nodiscard]] bool copy_sources(int peer) override { return to(peer).copy_sources(most_copied_bytes); }
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
    detail::TcpStream stream;
    std::uint64_t deadline_ns;
    std::array<std::byte, sizeof(Introduction)> introduction{};
    std::size_t bytes = 0;
  };

  void listen();
  void listen_at(const Tcp::endpoint& endpoint);
  /// Tries the next address of a rank; the rank is lost if there is none left.
  void dial_next(Dial& dial, const std::string& why_not);
  void end_dials();
  void accept(Tcp::acceptor& acceptor);
  /// Reads from all visitors. Returns whether any visitor has introduced itself or was closed.
  bool read_introductions();
  [[nodiscard]] bool is_over(Visitor& visitor);
  /// Whether a visitor has shown the key of rank `from`, where connections have keys.
  [[nodiscard]] bool is_own_key(const detail::TcpStream& stream, int from) const;
  void open(int peer, detail::TcpStream stream, std::vector<std::byte> first);
  /// Adds a descriptor to `ready_`.
  void watch(int descriptor, std::uint32_t events, std::uint64_t what);
  /// Watches a connection for room to write while it has none.
  void watch_blocked(int peer);
  bool release_delayed();
  [[nodiscard]] SocketConnection& to(int peer) { return connections_[static_cast<std::size_t>(peer)]; }

  const NetworkPlan plan_;
  SocketFaults faults_;
  WorkerEvents& events_;
  asio::io_context context_;  ///< owns sockets; runs nothing
  Secret secret_;
  FileDescriptor ready_;                      ///< the set (epoll) of all sockets
  std::list<Tcp::acceptor> acceptors_;        ///< one for each address that other ranks may connect to
  std::deque<SocketConnection> connections_;  ///< [ranks]
  std::vector<bool> waits_to_write_;          ///< [ranks] whether `ready_` watches for room to write
  std::list<Dial> dials_;
  std::list<Visitor> visitors_;
};

}  // namespace beeline
