// SPDX-License-Identifier: Apache-2.0
#include "runtime/served_world.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <memory>

namespace beeline::detail {

void Connection::send(EncodedFrame frame) {
  if (!listens_) return;
  queue_.push_back(std::move(frame));
  flush();
}

void Connection::flush() {
  if (!stream.flush() && stream.is_blocked()) return;
  while (!queue_.empty()) {
    listens_ = write_some(stream, *queue_.front(), sent_);
    if (!listens_) return queue_.clear();
    if (sent_ < queue_.front()->size()) return;
    queue_.pop_front();
    sent_ = 0;
  }
  if (!broken && refused && !stream.is_blocked()) ::shutdown(stream.descriptor(), SHUT_WR);
}

void ServedWorld::send_to_all(const EncodedFrame& frame) {
  publish_left();
  for (const Seat& seat : seats)
    if (seat.connection != nullptr) seat.connection->send(frame);
}

void ServedWorld::publish_left() {
  if (!left.empty()) send_to_all(std::make_shared<const std::vector<std::byte>>(std::exchange(left, {})));
}

int ServedWorld::first_that_asks() const {
  const auto first = std::find_if(seats.begin(), seats.end(), [](const Seat& seat) { return seat.asks(); });
  return first == seats.end() ? -1 : static_cast<int>(first - seats.begin());
}

}  // namespace beeline::detail
