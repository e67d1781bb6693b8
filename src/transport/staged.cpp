// SPDX-License-Identifier: Apache-2.0
#include "transport/staged.hpp"

#include <algorithm>

#include "beeline/device/impl/machine.hpp"
#include "beeline/device/put_get.hpp"

namespace beeline {

StagedEnd::StagedEnd(Stream& stream, const StagedRing& ring) : stream_(stream), ring_(ring) {
  for (std::uint32_t slot = 0; slot < ring.slots; ++slot) copied_.push_back(stream.make_event());
}

void StagedEnd::begin(std::size_t bytes) {
  bytes_ = bytes;
  first_ = finished_;
  target_ = finished_ + std::max<std::uint64_t>(1, (bytes + ring_.chunk_bytes - 1) / ring_.chunk_bytes);
}

std::size_t StagedEnd::chunk_size(std::size_t offset) const { return std::min(ring_.chunk_bytes, bytes_ - offset); }

void StagedEnd::publish(std::uint64_t* word, std::uint64_t value) const {
  if (ring_.carried_by == nullptr) return detail::store_signal(word, value, Order::memory);
  static_cast<void>(signal(Thread{}, *ring_.carried_by, word, value, ring_.peer));
}

void StagedEnd::note_wait(std::uint64_t limit) {
  const bool waits = started_ < target_ && started_ >= limit && finished_ == started_;
  if (!waits && waits_since_ == 0) return;
  const std::uint64_t now = machine::clock_ns();
  if (waits_since_ != 0) waited_ns_ += now - waits_since_;
  waits_since_ = waits ? now : 0;
}

template <class Start>
bool StagedEnd::advance(std::uint64_t limit, Start start) {
  for (; started_ < std::min(limit, target_); ++started_) {
    const std::size_t offset = (started_ - first_) * ring_.chunk_bytes;
    start(buffer(started_), offset, chunk_size(offset));
    stream_.record(*copied_[started_ % ring_.slots]);
  }
  const std::uint64_t before = finished_;
  while (finished_ < started_ && copied_[finished_ % ring_.slots]->done()) ++finished_;
  note_wait(limit);
  return finished_ != before;
}

void StagedSender::store_length() const {
  if (ring_.carried_by == nullptr)
    *first_length() = bytes_;
  else
    static_cast<void>(put_value(*ring_.carried_by, first_length(), std::uint64_t{bytes_}, ring_.peer));
}

void StagedSender::progress(const std::byte* source) {
  const std::uint64_t consumed = detail::load_signal(ring_.consumed, Order::memory);
  const bool more = advance(consumed + ring_.slots, [&](std::byte* slot, std::size_t offset, std::size_t bytes) {
    if (offset == 0) store_length();
    stream_.copy(slot, source + offset, bytes);
  });
  if (more) publish(ring_.published, finished());
}

void StagedReceiver::progress(std::byte* destination) {
  const std::uint64_t published = detail::load_signal(ring_.published, Order::memory);
  if (waits_for_first() && published > finished() && *first_length() != bytes_) {
    other_length_ = *first_length();
    return abandon();
  }
  const bool more = advance(published, [&](std::byte* slot, std::size_t offset, std::size_t bytes) {
    stream_.copy(destination + offset, slot, bytes);
  });
  if (more) publish(ring_.consumed, finished());
}

}  // namespace beeline
