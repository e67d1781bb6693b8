// SPDX-License-Identifier: Apache-2.0
// The device's side of an object: what launches and copies hand to devices.
#include <fmt/format.h>

#include <algorithm>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "hpe/objects/block_object.hpp"
#include "hpe/objects/block_object_held.hpp"
#include "hpe/reach.hpp"

namespace beeline::hpe::detail {

void BlockObject::acquire(StreamState& stream, Range range, bool writes) {
  Held held(*this);
  require_usable();
  require(stream.own().capture() == 0, Status::unavailable,
          "a kernel in a CUDA graph cannot use an object: what the graph would move is decided once, at its capture");
  await_accesses(held);
  const Blocks blocks = blocks_of(range);
  const unsigned copy = copy_on(stream.device().device());
  KernelUse& use = uses_.of(stream);
  order_after(held, use, writes);
  if (!blocks_.are_all_on(copy)) hand_over(blocks, writes, copy, stream, use);
  use.writes = writes;
  uses_.begin_launch(use);
}

/// Makes blocks current on a device: takes them from the program, and sends what the device lacks.
void BlockObject::hand_over(Blocks blocks, bool writes, unsigned copy, StreamState& stream, KernelUse& use) {
  close_view(blocks, writes);
  try {
    mark_written(copy);
    send(blocks, copy, stream, use);
  } catch (...) {
    unmark_written();
    throw;
  }
  if (writes) return blocks_.set_alone(blocks, copy);
  for (std::size_t block = blocks.first; block < blocks.end; ++block) blocks_.add(block, copy);
}

void BlockObject::release(StreamState& stream) {
  Held held(*this);
  KernelUse& use = uses_.of(stream);
  uses_.end_launch(use);
  use.is_pending = true;
  stream.enqueue_own([&](beeline::Stream& own) { own.record(*use.reached); });
}

/// The host has changed parts of blocks: `copy` remains current if its device gets the parts.
void BlockObject::mark_written(unsigned copy) {
  for (const Range& part : written_)
    for (std::size_t block = part.offset / block_bytes_; block * block_bytes_ < part.end(); ++block)
      blocks_.keep(block, copy);
}
/// The device did not get the parts.
void BlockObject::unmark_written() {
  for (const Range& part : written_)
    for (std::size_t block = part.offset / block_bytes_; block * block_bytes_ < part.end(); ++block)
      blocks_.set_host_alone(block);
}

/// Holds the stream's later work until other streams' work on the object has ended.
void BlockObject::order_after(Held& held, KernelUse& own, bool writes) {
  for (KernelUse& use : uses_.all()) {
    if (&use == &own || KernelUses::is_over(use, blocks_)) continue;
    if (!writes && !use.writes && !use.has_sent) continue;
    const Device from = use.device->device(), to = own.device->device();
    if (from.kind() == to.kind() && to.reaches(from)) {
      own.stream->enqueue_own([&](beeline::Stream& stream) { stream.wait_event(*use.reached); });
      continue;
    }
    while (!KernelUses::is_over(use, blocks_)) held.wait("a kernel of another device that uses it");
  }
  if (own.is_pending) static_cast<void>(KernelUses::is_over(own, blocks_));
}

void BlockObject::close_view(Blocks blocks, bool writes) {
  written_.clear();
  const auto is_open = [&](std::size_t block) {
    // Blocks that others hold, too, are read-only already, unless the kernel notes writes itself.
    return writes || view_->tracks_writes() ? blocks_.is_on_host(block) : blocks_.is_on_host_alone(block);
  };
  for (std::size_t block = blocks.first; block < blocks.end;) {
    std::size_t next = block + 1;
    if (is_open(block)) {
      // Inaccessible blocks in between may be closed again, with fewer system calls.
      std::size_t last = block;
      for (; next < blocks.end && (writes || is_open(next)); ++next)
        if (is_open(next)) last = next;
      view_->close(range_of({block, last + 1}), !writes, written_);
    }
    block = next;
  }
}

const std::byte* BlockObject::source_of(std::size_t block, unsigned copy) {
  if (!blocks_.is_on_host(block)) {
    DeviceCopy& source = *copies_[blocks_.first_device(block)];
    const Device from = source.device(), to = copies_[copy]->device();
    if (from.kind() == to.kind() && to.reaches(from)) return source.address();
    fetch({block, block + 1});
  }
  return memory_->shadow();
}

std::vector<BlockObject::Piece> BlockObject::pieces_for(Blocks blocks, unsigned copy) {
  std::vector<Piece> pieces;
  std::byte* const to = copies_[copy]->address();
  const auto add = [&](const std::byte* from, Range range) {
    const std::size_t bytes = std::min(range.bytes, bytes_ - range.offset);
    if (!pieces.empty() && pieces.back().from + pieces.back().bytes == from + range.offset &&
        pieces.back().to + pieces.back().bytes == to + range.offset)
      pieces.back().bytes += bytes;
    else
      pieces.push_back({to + range.offset, from + range.offset, bytes});
  };
  auto part = written_.begin();
  for (std::size_t block = blocks.first; block < blocks.end; ++block) {
    const Range whole = range_of({block, block + 1});
    while (part != written_.end() && part->end() <= whole.offset) ++part;
    if (!blocks_.is_on(block, copy)) {
      add(source_of(block, copy), whole);
      continue;
    }
    for (auto each = part; each != written_.end() && each->offset < whole.end(); ++each) {
      const std::size_t begin = std::max(each->offset, whole.offset), end = std::min(each->end(), whole.end());
      if (begin < bytes_) add(memory_->shadow(), {begin, end - begin});
    }
  }
  return pieces;
}

void BlockObject::send(Blocks blocks, unsigned copy, StreamState& stream, KernelUse& use) {
  const std::vector<Piece> pieces = pieces_for(blocks, copy);
  if (pieces.empty()) return;
  use.has_sent = true;
  std::shared_ptr<std::atomic<bool>> are_there;
  if (!stream.device().device().is_gpu()) {
    are_there = std::make_shared<std::atomic<bool>>(false);
    SentBlocks& sent = use.sent.emplace_back(are_there, std::vector<std::size_t>());
    for (std::size_t block = blocks.first; block < blocks.end; ++block)
      if (blocks_.is_on_host(block)) sent.blocks.push_back(block);
  }
  stream.enqueue_own([&](beeline::Stream& own) {
    for (const Piece& piece : pieces) {
      own.copy(piece.to, piece.from, piece.bytes);
      sent_bytes_.fetch_add(piece.bytes, std::memory_order_relaxed);
    }
    if (are_there != nullptr) own.enqueue([are_there] { are_there->store(true, std::memory_order_release); });
  });
}

// --- Copies by address (hpe::copy) ---

namespace {

/// Releases an object that a copy has acquired.
class Releasing {
 public:
  Releasing(BlockObject& object, StreamState& stream) : object_(object), stream_(stream) {}
  ~Releasing() {
    try {
      object_.release(stream_);
    } catch (const std::exception& error) {
      log(LogLevel::error, fmt::format("the release of an object after a copy: {}", error.what()));
    }
  }
  Releasing(const Releasing&) = delete;
  Releasing& operator=(const Releasing&) = delete;

 private:
  BlockObject& object_;
  StreamState& stream_;
};

}  // namespace

void BlockObject::copy_out(void* to, const std::byte* from, std::size_t bytes, StreamState& stream) {
  const std::size_t offset = static_cast<std::size_t>(from - data());
  acquire(stream, {offset, bytes}, false);
  const Releasing release_at_end(*this, stream);
  const std::byte* const source = copies_[copy_on(stream.device().device())]->address() + offset;
  const OwnedRange target = detail::range_of(to);
  if (target.copying != nullptr) return static_cast<BlockObject*>(target.copying)->copy_into(to, source, bytes, stream);
  if (is_direct(stream.device().device(), target.owner))
    return stream.enqueue_own([&](beeline::Stream& own) { own.copy(to, source, bytes); });
  std::byte* const stage = memory_->shadow() + offset;  // gets what the object holds there
  stream.enqueue_own([&](beeline::Stream& own) { own.copy(stage, source, bytes); });
  detail::copy(to, stage, bytes, stream);
}

void BlockObject::copy_in(std::byte* to, const void* from, std::size_t bytes, StreamState& stream) {
  copy_into(to, from, bytes, stream);
}

/// `from`: memory outside of objects, or what the stream's device reaches.
void BlockObject::copy_into(void* to, const void* from, std::size_t bytes, StreamState& stream) {
  const std::size_t offset = static_cast<std::size_t>(static_cast<std::byte*>(to) - data());
  acquire(stream, {offset, bytes}, true);
  const Releasing release_at_end(*this, stream);
  std::byte* const target = copies_[copy_on(stream.device().device())]->address() + offset;
  const Device device = stream.device().device();
  const OwnedRange source = detail::range_of(from);
  if (source.copying != nullptr || is_direct(device, source.owner))
    return stream.enqueue_own([&](beeline::Stream& own) { own.copy(target, from, bytes); });
  std::byte* const stage = memory_->shadow() + offset;  // not current for the host any more
  detail::copy(stage, from, bytes, stream);
  stream.enqueue_own([&](beeline::Stream& own) { own.copy(target, stage, bytes); });
}

}  // namespace beeline::hpe::detail
