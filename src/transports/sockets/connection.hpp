// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The TCP connection of two ranks. Messages with payloads of up to `most_eager_bytes` are sent at once. A longer
/// payload is announced, and sent when its receiver fetches it, straight to its destination: neither end needs a buffer
/// for it.

#include <array>
#include <asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transports/sockets/faults.hpp"
#include "transports/worker.hpp"

namespace beeline {

inline constexpr std::size_t most_eager_bytes = std::size_t{64} << 10;

enum class FrameKind : std::uint32_t {
  message,       ///< a NetworkMessage and its payload
  announcement,  ///< a NetworkMessage; its payload waits
  fetch,         ///< asks for an announced payload
  drop,          ///< an announced payload is not wanted
  payload        ///< answers `fetch`
};

/// Precedes everything on a connection. Little-endian.
struct Frame {
  FrameKind kind;
  std::uint32_t unused;
  std::uint64_t parcel;  ///< number that its sender has given an announced payload
  std::uint64_t bytes;   ///< of the payload
};

/// An announced payload, at its receiver.
struct Parcel {
  int peer;
  std::uint64_t parcel, bytes;
  std::uint64_t number = 0;      ///< of the message, once it is fetched
  std::span<std::byte> to = {};  ///< once it is fetched
};

/// Used by one thread at a time.
class Connection {
 public:
  using Socket = asio::ip::tcp::socket;

  Connection(int peer, WorkerEvents& events, SocketFaults& faults) : peer_(peer), events_(events), faults_(faults) {}

  /// Takes a socket that is connected, and sends what waits.
  ///   first  bytes that are sent before everything else
  void open(Socket socket, std::vector<std::byte> first);
  [[nodiscard]] bool is_open() const { return socket_.has_value(); }
  [[nodiscard]] bool is_lost() const { return is_lost_; }
  [[nodiscard]] int descriptor() { return socket_->native_handle(); }
  /// Whether it waits until the socket takes more.
  [[nodiscard]] bool is_blocked() const { return is_blocked_; }
  [[nodiscard]] bool has_delayed() const { return !delayed_.empty(); }

  // As in TransportWorker.
  bool send(const NetworkMessage& message, std::span<const std::byte> payload, std::uint64_t token, StagedBytes staged);
  void fetch(Parcel& parcel, std::span<std::byte> to, std::uint64_t number);
  void drop(Parcel& parcel);

  /// Reads what has arrived, up to a buffer of it. Whether there was anything.
  bool read();
  /// Sends what waits, as far as the socket takes it.
  void write();
  /// Sends delayed messages whose time has come. Whether there were any.
  bool release_delayed();
  /// Ends the connection at once: sources are free, fetches are over.
  void lose(const std::string& reason);
  /// Ends it without a report.
  void close() { socket_.reset(); }

 private:
  struct Outgoing {
    std::array<std::byte, sizeof(Frame) + sizeof(NetworkMessage)> head;
    std::size_t head_bytes;
    std::span<const std::byte> payload;
    StagedBytes staged;       ///< owns the payload; may be empty
    std::uint64_t token = 0;  ///< `sent` reports it, if `borrows`
    bool borrows = false;
    std::size_t written = 0;

    [[nodiscard]] bool is_written() const { return written == head_bytes + payload.size(); }
  };

  static Outgoing make_outgoing(const Frame& frame, const NetworkMessage* message);
  /// Queues it, and writes what it can. Whether all of it is written.
  bool push(Outgoing outgoing);
  void send_frame(FrameKind kind, std::uint64_t parcel) { push(make_outgoing({kind, 0, parcel, 0}, nullptr)); }
  /// Writes part of it. False: the socket takes no more, or the connection is lost.
  bool write_some(Outgoing& outgoing);
  void end(Outgoing& outgoing);
  /// Whether a whole frame was there, which has been dealt with.
  bool take_frame();
  void take_message(const Frame& frame, std::span<const std::byte> all);
  void take_request(const Frame& frame);
  /// Reads the payload of a parcel into its destination. Whether anything has come.
  bool read_parcel();
  void take_parcel_bytes(std::size_t bytes);
  /// Reads into `to`. Returns the bytes; 0: there are none, or the connection is lost.
  std::size_t read_some(std::span<std::byte> to);

  const int peer_;
  WorkerEvents& events_;
  SocketFaults& faults_;
  std::optional<Socket> socket_;
  bool is_lost_ = false, is_blocked_ = false;
  std::deque<Outgoing> queue_;
  std::multimap<std::uint64_t, Outgoing> delayed_;  ///< by their departure
  std::uint64_t last_departure_ns_ = 0;
  std::map<std::uint64_t, Outgoing> announced_;  ///< payloads that wait here, by parcel
  std::uint64_t last_parcel_ = 0;
  std::map<std::uint64_t, Parcel> parcels_;  ///< payloads that wait at the peer
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< of what was read into the buffer and not dealt with
  Parcel* arriving_ = nullptr;       ///< whose payload is being read
  std::size_t arrived_ = 0;
};

}  // namespace beeline
