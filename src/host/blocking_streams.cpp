// SPDX-License-Identifier: Apache-2.0
#include "host/blocking_streams.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "beeline/host/impl/blocking_stream.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

void BlockingStreams::add(std::unique_ptr<Stream> stream) {
  const std::lock_guard lock(mutex_);
  cells_.emplace_back(std::move(stream));
}

BlockingStreams::Cell* BlockingStreams::find_free() {
  for (Cell& cell : cells_) {
    if (cell.loan != 0) continue;
    try {
      if (!cell.stream->idle()) continue;
    } catch (...) {  // of a call that has ended by another exception: the stream skips all work until this is fetched
    }
    cell.stream->launched_teams().forget();
    return &cell;
  }
  return nullptr;
}

void BlockingStreams::give_back(const Stream& stream) noexcept {
  const std::lock_guard lock(mutex_);
  for (Cell& cell : cells_)
    if (cell.stream.get() == &stream) cell.loan = 0;
}

BlockingStreams::Loan BlockingStreams::loan_of(const Stream* stream) const {
  if (stream == nullptr) return {};
  const std::lock_guard lock(mutex_);
  for (const Cell& cell : cells_)
    if (cell.stream.get() == stream) return {stream, cell.loan};
  return {};
}

void BlockingStreams::clear() {
  const std::lock_guard lock(mutex_);
  cells_.clear();
}

namespace detail {

namespace {

/// Holds later work of `later` until the work so far of `earlier` has ended.
void put_after(Stream& later, Stream& earlier) {
  const std::unique_ptr<Event> end = earlier.make_event();
  earlier.record(*end);
  later.wait_event(*end);
}

}  // namespace

BlockingStream::BlockingStream(World& world)
    : world_(world), stream_(&world.implementation().blocking_streams.lend([&world] { return world.make_stream(); })) {}

BlockingStream::~BlockingStream() {
  try {
    hold_default();
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("a blocking call that has not ended: {}", error.what()), world_.rank());
  }
  world_.implementation().blocking_streams.give_back(*stream_);
}

void BlockingStream::come_after_default() {
  if (Stream& before = world_.stream(); !before.idle()) put_after(*stream_, before);
}

Status BlockingStream::finish(Timeout timeout) {
  const Status status = world_.synchronize(*stream_, timeout);
  has_ended_ = status == Status::ok;
  return status;
}

void BlockingStream::hold_default() {
  if (!has_ended_ && !stream_->drained()) put_after(world_.stream(), *stream_);
}

}  // namespace detail

}  // namespace beeline
