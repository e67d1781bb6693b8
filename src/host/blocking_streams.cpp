// SPDX-License-Identifier: Apache-2.0
#include "host/blocking_streams.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "beeline/host/impl/blocking_stream.hpp"
#include "host/world/part.hpp"
#include "host/world/streams.hpp"

namespace beeline {

void BlockingStreams::add(std::unique_ptr<Stream> stream) {
  const std::lock_guard lock(mutex_);
  streams_.emplace_back(std::move(stream));
}

LentStream* BlockingStreams::find_free() {
  for (LentStream& each : streams_) {
    if (each.loan != 0) continue;
    try {
      if (!each.stream->idle()) continue;
    } catch (...) {  // an earlier call's error was not fetched: until then the stream skips all work
    }
    each.stream->launched_teams().forget();
    return &each;
  }
  return nullptr;
}

BlockingStreams::Loan BlockingStreams::loan_of(const Stream* stream) const {
  if (stream == nullptr) return {};
  const std::lock_guard lock(mutex_);
  for (const LentStream& each : streams_)
    if (each.stream.get() == stream) return {&each, each.loan};
  return {};
}

void BlockingStreams::clear() {
  const std::lock_guard lock(mutex_);
  streams_.clear();
}

namespace detail {

namespace {

/// Makes later work of `later` wait for the current work of `earlier`.
void put_after(Stream& later, Stream& earlier) {
  const std::unique_ptr<Event> end = earlier.make_event();
  earlier.record(*end);
  later.wait_event(*end);
}

}  // namespace

BlockingStream::BlockingStream(World& world)
    : world_(world), lent_(world_part<Streams>(world).blocking().lend([&world] { return world.make_stream(); })) {}

Stream& BlockingStream::stream() const { return *lent_.stream; }

BlockingStream::~BlockingStream() {
  try {
    hold_default();
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("a blocking call that has not ended: {}", error.what()), world_.rank());
  }
  lent_.loan = 0;
}

// The host waits. A wait of the stream for an event would not do, since the ledger counts waiting grids of different
// streams as concurrent.
void BlockingStream::await_default() { world_.synchronize(); }

void BlockingStream::follow_default() {
  if (Stream& before = world_.stream(); !before.idle()) put_after(stream(), before);
}

Status BlockingStream::finish(Timeout timeout) {
  const Status status = world_.synchronize(stream(), timeout);
  has_ended_ = status == Status::ok;
  return status;
}

void BlockingStream::hold_default() {
  if (!has_ended_ && !stream().drained()) put_after(world_.stream(), stream());
}

}  // namespace detail

}  // namespace beeline
