// SPDX-License-Identifier: Apache-2.0
// The device's side of an object: what launches and copies hand to devices.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "hpe/objects/block_object.hpp"
#include "hpe/objects/block_object_held.hpp"
#include "hpe/reach.hpp"

namespace beeline::hpe::detail {

void BlockObject::acquire(StreamState& stream, Range range, bool writes) {
  Held held(*this);
  require_usable();
  view_->forget_refusals();
  while (const char* const awaited = awaited_by(stream, writes)) {
    held.wait(awaited);
    require_usable();
  }
  const Blocks blocks = blocks_of(range);
  const unsigned copy = copy_on(stream.device().device());
  KernelUse& use = uses_.of(stream);
  order_after_others(use, writes);
  if (!blocks_.are_all_on(copy)) hand_over(blocks, writes, copy, stream, use);
  KernelUses::begin_launch(use, writes);
}

namespace {

/// Whether work must follow that of another stream, rather than run beside it.
bool is_in_conflict(const KernelUse& other, bool writes) { return writes || other.writes || other.has_sent; }

/// Whether work of `device` follows work of another stream by an event; otherwise the CPU waits for that work.
bool follows_by_event(Device device, const KernelUse& other) {
  const Device from = other.device->device();
  return from.kind() == device.kind() && device.reaches(from);
}

}  // namespace

/// What this thread has to wait for before work on the stream may use the object; nullptr: nothing. Throws
/// invalid_argument if the thread itself would have to end it.
const char* BlockObject::awaited_by(const StreamState& stream, bool writes) {
  const auto refuse_own = [&](const char* access) {
    throw Error(Status::invalid_argument,
                fmt::format("a launch or copy is to use {} while the thread's own {} is open: end the access first",
                            described(), access));
  };
  if (!accessors_.empty()) {
    if (accessors_.are_all_of(::gettid())) refuse_own("HostAccess to it");
    return "accesses of the host (HostAccess)";
  }
  for (KernelUse& use : uses_.all()) {
    if (use.is_of(stream) || !is_in_conflict(use, writes)) continue;
    if (!use.launchers.empty()) {
      if (use.launchers.are_all_of(::gettid())) refuse_own("DeviceAccess to it, on another stream,");
      return "a launch on another stream";
    }
    if (!follows_by_event(stream.device().device(), use) && !KernelUses::is_over(use, blocks_))
      return "a kernel of another device that uses it";
  }
  return nullptr;
}

/// Makes blocks current on a device: takes them from the program, and sends what the device lacks.
void BlockObject::hand_over(Blocks blocks, bool writes, unsigned copy, StreamState& stream, KernelUse& use) {
  if (writes) {
    repeated_.begin_kernel();
    ahead_.begin_kernel();
  }
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
  view_->forget_refusals();
  KernelUse& use = uses_.of(stream);
  KernelUses::end_launch(use);
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

/// Holds the stream's later work until other streams' work on the object has ended. Nothing is left for which the CPU
/// would wait.
void BlockObject::order_after_others(KernelUse& own, bool writes) {
  for (KernelUse& use : uses_.all()) {
    if (KernelUses::is_over(use, blocks_) || &use == &own || !is_in_conflict(use, writes)) continue;
    own.stream->enqueue_own([&](beeline::Stream& stream) { stream.wait_event(*use.reached); });
  }
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

/// Whether a block comes to a device's copy by way of the host alone.
bool BlockObject::passes_host(std::size_t block, unsigned copy) const {
  if (blocks_.is_on(block, copy) || blocks_.is_on_host(block)) return false;
  const Device from = copies_[blocks_.first_device(block)]->device(), to = copies_[copy]->device();
  return from.kind() != to.kind() || !to.reaches(from);
}

/// Fetches the blocks that a device's copy can only get from the host, neighbouring ones together.
void BlockObject::fetch_for(Blocks blocks, unsigned copy) {
  for (std::size_t block = blocks.first; block < blocks.end; ++block) {
    const std::size_t first = block;
    while (block < blocks.end && passes_host(block, copy)) ++block;
    if (block > first) fetch({first, block});
  }
}

const std::byte* BlockObject::source_of(std::size_t block) const {
  return blocks_.is_on_host(block) ? memory_->shadow() : copies_[blocks_.first_device(block)]->address();
}

std::vector<BlockObject::Piece> BlockObject::pieces_for(Blocks blocks, unsigned copy) {
  fetch_for(blocks, copy);
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
      add(source_of(block), whole);
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

/// Acquires an object for a copy, and releases it.
class Acquired {
 public:
  Acquired(BlockObject& object, StreamState& stream, Range range, bool writes) : object_(object), stream_(stream) {
    object.acquire(stream, range, writes);
  }
  ~Acquired() {
    try {
      object_.release(stream_);
    } catch (const std::exception& error) {
      log(LogLevel::error, fmt::format("the release of an object after a copy: {}", error.what()));
    }
  }
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;

 private:
  BlockObject& object_;
  StreamState& stream_;
};

}  // namespace

std::size_t BlockObject::offset_of(const void* address) const {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - data());
}

void BlockObject::copy_out(void* to, const std::byte* from, std::size_t bytes, StreamState& stream) {
  refuse_captured_use(stream);
  const OwnedRange target = detail::range_of(to);
  if (target.copying != nullptr)
    return copy_between({static_cast<BlockObject*>(target.copying), to}, {this, from}, bytes, stream);
  const std::size_t offset = offset_of(from);
  const Acquired acquired(*this, stream, {offset, bytes}, false);
  const std::byte* const source = address_on(stream.device().device()) + offset;
  if (is_direct(stream.device().device(), target.owner))
    return stream.enqueue_own([&](beeline::Stream& own) { own.copy(to, source, bytes); });
  std::byte* const stage = memory_->shadow() + offset;  // gets what the object holds there
  stream.enqueue_own([&](beeline::Stream& own) { own.copy(stage, source, bytes); });
  detail::copy(to, stage, bytes, stream);
}

std::byte* BlockObject::address_for(const std::byte* byte, const StreamState& stream) {
  return address_on(stream.device().device()) + offset_of(byte);
}

void BlockObject::put_work(const std::byte* start, std::size_t bytes, bool writes, StreamState& stream,
                           const std::function<void()>& put) {
  refuse_captured_use(stream);
  const Acquired acquired(*this, stream, {offset_of(start), bytes}, writes);
  put();
}

/// Acquires both objects in the order of launches, so that no two threads wait for each other.
void BlockObject::copy_between(const Part& to, const Part& from, std::size_t bytes, StreamState& stream) {
  const std::size_t into = to.object->offset_of(to.address), out_of = from.object->offset_of(from.address);
  std::optional<Acquired> first, second;
  const auto acquire_target = [&](std::optional<Acquired>& held) {
    held.emplace(*to.object, stream, Range{into, bytes}, true);
  };
  if (std::less<>()(to.object, from.object)) acquire_target(first);
  second.emplace(*from.object, stream, Range{out_of, bytes}, false);
  if (!first) acquire_target(first);
  const Device device = stream.device().device();
  std::byte* const target = to.object->address_on(device) + into;
  const std::byte* const source = from.object->address_on(device) + out_of;
  stream.enqueue_own([&](beeline::Stream& own) { own.copy(target, source, bytes); });
}

void BlockObject::copy_in(std::byte* to, const void* from, std::size_t bytes, StreamState& stream) {
  refuse_captured_use(stream);
  const std::size_t offset = offset_of(to);
  const Acquired acquired(*this, stream, {offset, bytes}, true);
  const Device device = stream.device().device();
  std::byte* const target = address_on(device) + offset;
  const OwnedRange source = detail::range_of(from);
  if (is_direct(device, source.owner))
    return stream.enqueue_own([&](beeline::Stream& own) { own.copy(target, from, bytes); });
  std::byte* const stage = memory_->shadow() + offset;  // not current for the host any more
  detail::copy(stage, from, bytes, stream);
  stream.enqueue_own([&](beeline::Stream& own) { own.copy(target, stage, bytes); });
}

}  // namespace beeline::hpe::detail
