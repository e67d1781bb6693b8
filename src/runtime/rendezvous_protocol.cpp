// SPDX-License-Identifier: Apache-2.0
#include "runtime/rendezvous_protocol.hpp"

#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

namespace beeline::detail {

EncodedFrame encode(FrameHeader header, const void* payload, std::size_t bytes) {
  header.bytes = bytes;
  auto frame = std::make_shared<std::vector<std::byte>>(sizeof(header) + bytes);
  std::memcpy(frame->data(), &header, sizeof(header));
  if (bytes > 0) std::memcpy(frame->data() + sizeof(header), payload, bytes);
  return frame;
}

EncodedFrame encode(FrameHeader header, const std::string& text) { return encode(header, text.data(), text.size()); }

bool FrameReader::fill(TcpStream& stream, std::byte* target, std::size_t bytes, std::size_t& filled, Result& result) {
  while (filled < bytes) {
    const ssize_t got = stream.read({target + filled, bytes - filled});
    if (got <= 0) {
      const bool blocked = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
      result = blocked ? Result::would_block : Result::closed;
      return false;
    }
    filled += static_cast<std::size_t>(got);
  }
  return true;
}

FrameReader::Result FrameReader::read(TcpStream& stream) {
  Result result{};
  auto* header = reinterpret_cast<std::byte*>(&frame_.header);
  const bool fresh = header_filled_ < sizeof(FrameHeader);
  if (!fill(stream, header, sizeof(FrameHeader), header_filled_, result)) return result;
  if (fresh) {
    if (frame_.header.magic != FrameHeader::frame_magic || frame_.header.bytes > max_bytes_) return Result::garbage;
    frame_.payload.resize(frame_.header.bytes);
  }
  if (!fill(stream, frame_.payload.data(), frame_.payload.size(), payload_filled_, result)) return result;
  return Result::frame;
}

Frame FrameReader::take() {
  header_filled_ = payload_filled_ = 0;
  return std::exchange(frame_, Frame{});
}

bool write_some(TcpStream& stream, const std::vector<std::byte>& frame, std::size_t& offset) {
  if (!stream.flush() && !stream.is_blocked()) return false;
  while (offset < frame.size()) {
    const ssize_t sent = stream.write(std::span(frame).subspan(offset));
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    offset += static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace beeline::detail
