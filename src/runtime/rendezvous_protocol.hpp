// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Frames between ranks and the rendezvous server: a header of fixed size, then `bytes` of payload. All machines of a
/// world have the same byte order.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/tcp_stream.hpp"

namespace beeline::detail {

enum class FrameType : std::uint16_t {
  hello = 1,   ///< rank -> server: rank, number = size; payload: token, but with TLS nothing
  contribute,  ///< rank -> server: one allgather; sequence, deadline_ns; payload: this rank's bytes
  abort,       ///< rank -> server; payload: reason
  goodbye,     ///< rank -> server: this rank leaves; a connection that closes without this frame is a death
  welcome,     ///< server -> rank: the hello was accepted
  refuse,      ///< server -> rank: the hello was refused; payload: reason, which is `wrong_token` for another token
  gathered,    ///< server -> rank: sequence; payload: a 64-bit length for each rank, then their bytes
  failed,      ///< server -> rank: sequence, number = Status; payload: message
  aborted,     ///< server -> rank: rank = culprit, number = Status, noticed_by; payload: reason
  survivors,   ///< rank -> server: asks for the survivors; sequence, deadline_ns
  agreed,      ///< server -> rank: sequence; payload: a 32-bit rank for each survivor
  left         ///< server -> rank: `rank` has left
};

struct FrameHeader {
  std::uint32_t magic = frame_magic;
  std::uint16_t version = protocol_version;
  FrameType type{};
  std::int32_t rank = -1;
  std::int32_t number = 0;
  std::uint64_t sequence = 0;
  std::int64_t deadline_ns = 0;
  std::uint64_t bytes = 0;
  std::int32_t noticed_by = -1;
  std::int32_t unused = 0;

  static constexpr std::uint32_t frame_magic = 0x4c454542;  // "BEEL"
  static constexpr std::uint16_t protocol_version = 2;
};
static_assert(std::is_trivially_copyable_v<FrameHeader> && sizeof(FrameHeader) == 48);

inline constexpr std::string_view wrong_token = "wrong token";

/// Most bytes that one rank may contribute to an allgather.
inline constexpr std::uint64_t max_contribution_bytes = std::uint64_t{256} << 20;
/// Most payload bytes of a connection that has not shown the token.
inline constexpr std::uint64_t max_hello_bytes = 4096;

struct Frame {
  FrameHeader header;
  std::vector<std::byte> payload;
  [[nodiscard]] std::string text() const { return {reinterpret_cast<const char*>(payload.data()), payload.size()}; }
};

/// A frame ready to be sent; many connections may share one.
using EncodedFrame = std::shared_ptr<const std::vector<std::byte>>;
[[nodiscard]] EncodedFrame encode(FrameHeader header, const void* payload, std::size_t bytes);
[[nodiscard]] EncodedFrame encode(FrameHeader header, const std::string& text = {});

/// Reads frames from a connection.
class FrameReader {
 public:
  enum class Result { frame, would_block, closed, garbage };

  explicit FrameReader(std::uint64_t max_bytes) : max_bytes_(max_bytes) {}
  void set_max_bytes(std::uint64_t max_bytes) { max_bytes_ = max_bytes; }

  /// Reads until a frame is complete (then take() returns it), or there are no more bytes.
  [[nodiscard]] Result read(TcpStream& stream);
  [[nodiscard]] Frame take();

 private:
  /// Reads until `filled` is `bytes`. Returns false, and sets `result`, if reading ends before.
  [[nodiscard]] bool fill(TcpStream& stream, std::byte* target, std::size_t bytes, std::size_t& filled, Result& result);
  std::uint64_t max_bytes_;
  Frame frame_;
  std::size_t header_filled_ = 0, payload_filled_ = 0;
};

/// Writes `frame` from `offset` on, as far as the connection accepts it, and advances `offset`. All is sent once the
/// stream is not blocked, too. Returns false if the connection is broken.
[[nodiscard]] bool write_some(TcpStream& stream, const std::vector<std::byte>& frame, std::size_t& offset);

}  // namespace beeline::detail
