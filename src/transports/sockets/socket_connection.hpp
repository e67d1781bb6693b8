// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The TCP connection of two ranks. Messages with payloads of up to `most_eager_bytes` are sent at once. A longer
/// payload is announced. It is sent when its receiver fetches it, straight to its destination, so neither end needs a
/// buffer.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/tcp_stream.hpp"
#include "transports/sockets/faults.hpp"
#include "transports/worker.hpp"

namespace beeline {

inline constexpr std::size_t most_eager_bytes = std::size_t{64} << 10;

enum class FrameKind : std::uint32_t {
  message,       ///< a NetworkMessage and its payload
  announcement,  ///< a NetworkMessage whose payload waits at the sender
  fetch,         ///< asks for an announced payload
  drop,          ///< says that an announced payload is not wanted
  payload        ///< answers `fetch`
};

/// The header of everything that is sent on a connection. Little-endian.
struct SocketFrame {
  FrameKind kind;
  std::uint32_t unused;
  std::uint64_t parcel;  ///< number of an announced payload, given by its sender
  std::uint64_t bytes;   ///< length of the payload
};

/// An announced payload, at its receiver.
struct Parcel {
  int peer;
  std::uint64_t parcel, bytes;
  std::uint64_t number = 0;      ///< number of the message, once the payload is fetched
  std::span<std::byte> to = {};  ///< destination, once the payload is fetched
};

/// Used by one thread at a time.
class SocketConnection {
 public:
  SocketConnection(int peer, WorkerEvents& events, SocketFaults& faults)
      : peer_(peer), events_(events), faults_(faults) {}

  /// Takes a connection, sends the queued frames, and reads the bytes that have been received.
  ///   first  bytes that are sent before everything else
  void open(detail::TcpStream stream, std::vector<std::byte> first);
  [[nodiscard]] bool is_open() const { return static_cast<bool>(stream_); }
  [[nodiscard]] bool is_lost() const { return is_lost_; }
  [[nodiscard]] int descriptor() const { return stream_.descriptor(); }
  /// Whether the connection waits until the socket accepts more bytes.
  [[nodiscard]] bool is_blocked() const { return is_open() && stream_.is_blocked(); }
  [[nodiscard]] bool has_delayed() const { return !delayed_.empty(); }

  // These are as in TransportWorker.
  bool send(const NetworkMessage& message, std::span<const std::byte> payload, std::uint64_t token, StagedBytes staged);
  void fetch(Parcel& parcel, std::span<std::byte> to, std::uint64_t number);
  void drop(Parcel& parcel);

  /// Reads bytes that have arrived, received at once. Returns whether there were any.
  bool read();
  /// Sends queued frames until the socket accepts no more.
  void write();
  /// Sends delayed messages that are due. Returns whether there were any.
  bool release_delayed();
  /// See TransportWorker::copy_sources.
  [[nodiscard]] bool copy_sources(std::size_t most_bytes);
  /// Ends the connection at once: sources may be reused, and fetches end.
  void lose(const std::string& reason);
  /// Ends the connection without a report.
  void close() { stream_.close(); }

 private:
  struct Outgoing {
    std::array<std::byte, sizeof(SocketFrame) + sizeof(NetworkMessage)> head;
    std::size_t head_bytes;
    std::span<const std::byte> payload;
    StagedBytes staged;       ///< owns the payload; may be empty
    std::uint64_t token = 0;  ///< `sent` reports it, if `borrows`
    bool borrows = false;
    std::size_t written = 0;

    [[nodiscard]] bool is_written() const { return written == head_bytes + payload.size(); }
  };

  static Outgoing make_outgoing(const SocketFrame& frame, const NetworkMessage* message);
  /// Queues a frame, and writes as much as the socket accepts. Returns whether all of the frame is written.
  bool push(Outgoing outgoing);
  void send_frame(FrameKind kind, std::uint64_t parcel) { push(make_outgoing({kind, 0, parcel, 0}, nullptr)); }
  /// Writes part of a frame. Returns false if the socket accepts no more, or the connection is lost.
  bool write_some(Outgoing& outgoing);
  void end(Outgoing& outgoing);
  /// Messages whose payload is still read from its source.
  [[nodiscard]] std::vector<Outgoing*> borrowing();
  bool read_once();
  /// Handles the next frame in the buffer. Returns whether the buffer held a whole frame.
  bool take_frame();
  void take_message(const SocketFrame& frame, std::span<const std::byte> all);
  void take_request(const SocketFrame& frame);
  /// Reads the payload of a parcel into its destination. Returns whether any bytes have arrived.
  bool read_parcel();
  void take_parcel_bytes(std::size_t bytes);
  /// Ends the connection because of an errno of its stream; 0: the peer has closed it.
  void lose_stream(int error);
  /// Reads into `to`. Returns the number of bytes; 0 if there are none, or the connection is lost.
  std::size_t read_some(std::span<std::byte> to);

  const int peer_;
  WorkerEvents& events_;
  SocketFaults& faults_;
  detail::TcpStream stream_;
  bool is_lost_ = false;
  std::deque<Outgoing> queue_;
  std::multimap<std::uint64_t, Outgoing> delayed_;  ///< by their time of departure
  std::uint64_t last_departure_ns_ = 0;
  std::map<std::uint64_t, Outgoing> announced_;  ///< payloads that wait at this rank, by parcel
  std::uint64_t last_parcel_ = 0;
  std::map<std::uint64_t, Parcel> parcels_;  ///< payloads that wait at the peer
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< the bytes of `buffer_` that have been read from the socket and not handled
  Parcel* arriving_ = nullptr;       ///< the parcel whose payload is being read
  std::size_t arrived_ = 0;
};

}  // namespace beeline
