// SPDX-License-Identifier: Apache-2.0
#include "transports/sockets/socket_connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "beeline/device/impl/machine.hpp"

namespace beeline {

namespace {

constexpr std::size_t most_frame_bytes = most_eager_bytes + sizeof(SocketFrame) + sizeof(NetworkMessage);

template <class Value>
Value value_at(std::span<const std::byte> bytes) {
  Value value;
  std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
  return value;
}

}  // namespace

void SocketConnection::open(detail::TcpStream stream, std::vector<std::byte> first) {
  stream_ = std::move(stream);
  buffer_.resize(most_frame_bytes);
  if (!first.empty()) {
    Outgoing& outgoing = queue_.emplace_front(make_outgoing({}, nullptr));
    outgoing.head_bytes = 0;
    outgoing.staged = make_staged(first.size());
    std::memcpy(outgoing.staged.get(), first.data(), first.size());
    outgoing.payload = {outgoing.staged.get(), first.size()};
  }
  write();
  if (is_open() && stream_.has_input()) read();
}

SocketConnection::Outgoing SocketConnection::make_outgoing(const SocketFrame& frame, const NetworkMessage* message) {
  Outgoing outgoing{};
  std::memcpy(outgoing.head.data(), &frame, sizeof frame);
  outgoing.head_bytes = sizeof frame;
  if (message == nullptr) return outgoing;
  std::memcpy(outgoing.head.data() + sizeof frame, message, sizeof *message);
  outgoing.head_bytes += sizeof *message;
  return outgoing;
}

bool SocketConnection::send(const NetworkMessage& message, std::span<const std::byte> payload, std::uint64_t token,
                            StagedBytes staged) {
  if (is_lost_ || faults_.drops(message)) return true;
  if (faults_.cuts(message)) {
    lose("the connection was cut on request");
    return true;
  }
  const bool is_eager = payload.size() <= most_eager_bytes;
  SocketFrame frame{is_eager ? FrameKind::message : FrameKind::announcement, 0, is_eager ? 0 : ++last_parcel_,
                    payload.size()};
  Outgoing outgoing = make_outgoing(frame, &message);
  const bool borrows = staged == nullptr && !payload.empty();
  Outgoing waiting{};
  Outgoing& owner = is_eager ? outgoing : waiting;
  owner.payload = payload, owner.staged = std::move(staged), owner.token = token, owner.borrows = borrows;
  if (!is_eager) announced_.emplace(frame.parcel, std::move(waiting));
  if (faults_.delays()) {
    last_departure_ns_ = faults_.departure(machine::clock_ns(), last_departure_ns_);
    delayed_.emplace(last_departure_ns_, std::move(outgoing));
    return !borrows;
  }
  // A message that is written at once is not reported; a connection that is lost meanwhile has no sources in use.
  const bool is_done = push(std::move(outgoing));
  return !borrows || (is_eager && is_done);
}

bool SocketConnection::push(Outgoing outgoing) {
  if (is_lost_) return true;
  const bool may_write = is_open() && queue_.empty();
  if (may_write) {
    while (!outgoing.is_written() && write_some(outgoing)) {
    }
    if (is_lost_ || outgoing.is_written()) return true;
  }
  queue_.push_back(std::move(outgoing));
  return false;
}

bool SocketConnection::write_some(Outgoing& outgoing) {
  const std::size_t of_head = std::min(outgoing.written, outgoing.head_bytes);
  const std::size_t of_payload = outgoing.written - of_head;
  const ssize_t written =
      stream_.write(std::as_bytes(std::span(outgoing.head).subspan(of_head, outgoing.head_bytes - of_head)),
                    outgoing.payload.subspan(of_payload));
  if (written >= 0) outgoing.written += static_cast<std::size_t>(written);
  if (const int error = errno; written < 0 && error != EAGAIN) lose_stream(error);
  return written >= 0;
}

void SocketConnection::write() {
  if (is_open() && !stream_.flush() && !stream_.is_blocked()) return lose_stream(errno);
  while (is_open() && !queue_.empty()) {
    Outgoing& next = queue_.front();
    if (!next.is_written() && !write_some(next)) return;
    if (!next.is_written()) continue;
    Outgoing written = std::move(next);
    queue_.pop_front();
    end(written);
  }
}

void SocketConnection::end(Outgoing& outgoing) {
  if (outgoing.borrows) events_.sent(outgoing.token);
}

std::vector<SocketConnection::Outgoing*> SocketConnection::borrowing() {
  std::vector<Outgoing*> found;
  const auto add = [&found](Outgoing& each) {
    if (each.borrows) found.push_back(&each);
  };
  for (Outgoing& each : queue_) add(each);
  for (auto& [departure, each] : delayed_) add(each);
  for (auto& [parcel, each] : announced_) add(each);
  return found;
}

bool SocketConnection::copy_sources(std::size_t most_bytes) {
  const std::vector<Outgoing*> all = borrowing();
  std::size_t bytes = 0;
  for (const Outgoing* each : all) bytes += each->payload.size();
  if (bytes > most_bytes) return false;
  for (Outgoing* each : all) {
    each->staged = make_staged(each->payload.size());
    std::memcpy(each->staged.get(), each->payload.data(), each->payload.size());
    each->payload = {each->staged.get(), each->payload.size()};
    end(*each);
    each->borrows = false;
  }
  return true;
}

bool SocketConnection::release_delayed() {
  bool any = false;
  while (!delayed_.empty() && is_open() && delayed_.begin()->first <= machine::clock_ns()) {
    Outgoing next = std::move(delayed_.extract(delayed_.begin()).mapped());
    any = true;
    queue_.push_back(std::move(next));
    write();
  }
  return any;
}

void SocketConnection::fetch(Parcel& parcel, std::span<std::byte> to, std::uint64_t number) {
  if (is_lost_) return events_.fetched(peer_, number, false);
  parcel.to = to, parcel.number = number;
  send_frame(FrameKind::fetch, parcel.parcel);
}

void SocketConnection::drop(Parcel& parcel) {
  const std::uint64_t dropped = parcel.parcel;
  parcels_.erase(dropped);
  send_frame(FrameKind::drop, dropped);
}

void SocketConnection::lose(const std::string& reason) {
  if (std::exchange(is_lost_, true)) return;
  stream_.close();
  events_.lost(peer_, reason);
  for (Outgoing& each : std::exchange(queue_, {})) end(each);
  for (auto& [departure, each] : std::exchange(delayed_, {})) end(each);
  for (auto& [parcel, each] : std::exchange(announced_, {})) end(each);
  arriving_ = nullptr;
  for (auto& [parcel, each] : parcels_)
    if (!each.to.empty()) {
      each.to = {};
      events_.fetched(peer_, each.number, false);
    }
}

void SocketConnection::lose_stream(int error) {
  const std::string reason = error == 0 ? "Connection reset by remote peer" : stream_.failure(error);
  lose(stream_.is_ready() ? reason : reason + " before TLS had keys: do BEELINE_SECURE and BEELINE_TOKEN differ?");
}

std::size_t SocketConnection::read_some(std::span<std::byte> to) {
  const ssize_t bytes = stream_.read(to);
  if (const int error = bytes == 0 ? 0 : errno; bytes == 0 || (bytes < 0 && error != EAGAIN)) lose_stream(error);
  return static_cast<std::size_t>(std::max<ssize_t>(bytes, 0));
}

bool SocketConnection::read() {
  bool any = false;
  do any = read_once() || any;
  while (is_open() && stream_.has_input());
  // Reading TLS may have ended the handshake, or sent the bytes for which the socket had no room: no event reports that
  // the queue can go on.
  if (!stream_.is_blocked()) write();
  return any;
}

bool SocketConnection::read_once() {
  if (arriving_ != nullptr) return read_parcel();
  if (begin_ != 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  const std::size_t bytes = read_some(std::span(buffer_).subspan(end_));
  end_ += bytes;
  while (is_open() && take_frame()) {
  }
  return bytes != 0;
}

bool SocketConnection::take_frame() {
  if (arriving_ != nullptr) return false;
  const std::span<const std::byte> all(buffer_.data() + begin_, end_ - begin_);
  if (all.size() < sizeof(SocketFrame)) return false;
  const SocketFrame frame = value_at<SocketFrame>(all);
  const bool has_message = frame.kind == FrameKind::message || frame.kind == FrameKind::announcement;
  const std::size_t bytes = sizeof(SocketFrame) + (has_message ? sizeof(NetworkMessage) : 0) +
                            (frame.kind == FrameKind::message ? frame.bytes : 0);
  if (frame.kind == FrameKind::message && frame.bytes > most_eager_bytes) {
    lose(fmt::format("it announces a message of {} bytes, longer than what is sent at once", frame.bytes));
    return false;
  }
  if (all.size() < bytes) return false;
  begin_ += bytes;
  if (has_message)
    take_message(frame, all.first(bytes).subspan(sizeof(SocketFrame)));
  else
    take_request(frame);
  return true;
}

void SocketConnection::take_message(const SocketFrame& frame, std::span<const std::byte> all) {
  const auto message = value_at<NetworkMessage>(all);
  if (frame.kind == FrameKind::message) return events_.received(message, all.subspan(sizeof message));
  const auto [found, is_new] = parcels_.try_emplace(frame.parcel, Parcel{peer_, frame.parcel, frame.bytes});
  if (!is_new) return lose("it announces a payload twice");
  if (events_.announced(message, &found->second, frame.bytes)) return;
  if (const auto unwanted = parcels_.find(frame.parcel); unwanted != parcels_.end()) drop(unwanted->second);
}

void SocketConnection::take_request(const SocketFrame& frame) {
  if (frame.kind == FrameKind::payload) {
    const auto found = parcels_.find(frame.parcel);
    if (found == parcels_.end() || found->second.to.size() != frame.bytes)
      return lose("it sends a payload that was not fetched");
    arriving_ = &found->second, arrived_ = 0;
    const std::size_t bytes = std::min<std::size_t>(end_ - begin_, frame.bytes);
    std::memcpy(arriving_->to.data(), buffer_.data() + begin_, bytes);
    begin_ += bytes;
    return take_parcel_bytes(bytes);
  }
  auto found = announced_.extract(frame.parcel);
  if (!found) return lose("it asks for a payload that was not announced");
  if (frame.kind == FrameKind::drop) return end(found.mapped());
  Outgoing outgoing = make_outgoing({FrameKind::payload, 0, frame.parcel, found.mapped().payload.size()}, nullptr);
  outgoing.payload = found.mapped().payload, outgoing.staged = std::move(found.mapped().staged);
  outgoing.token = found.mapped().token, outgoing.borrows = found.mapped().borrows;
  queue_.push_back(std::move(outgoing));
  write();
}

bool SocketConnection::read_parcel() {
  const std::size_t bytes = read_some(arriving_->to.subspan(arrived_));
  if (is_open()) take_parcel_bytes(bytes);
  return bytes != 0;
}

void SocketConnection::take_parcel_bytes(std::size_t bytes) {
  arrived_ += bytes;
  if (arrived_ != arriving_->to.size()) return;
  const Parcel over = *std::exchange(arriving_, nullptr);
  parcels_.erase(over.parcel);
  events_.fetched(peer_, over.number, true);
}

}  // namespace beeline
