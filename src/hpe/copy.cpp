// SPDX-License-Identifier: Apache-2.0
#include "beeline/hpe/copy.hpp"

#include <fmt/format.h>

#include <cstring>

#include "beeline/core/error.hpp"
#include "hpe/gpu.hpp"
#include "hpe/owners.hpp"
#include "hpe/reach.hpp"
#include "hpe/stream_state.hpp"
#include "transport/checks.hpp"

namespace beeline::hpe {

using detail::CopyingOwner;
using detail::OwnedRange;
using detail::Runtime;
using detail::StreamState;

namespace {

/// Up to this length CUDA has read pageable memory when an asynchronous copy returns.
constexpr std::size_t read_at_once_bytes = std::size_t{64} << 10;

/// A copy whose ranges are valid.
struct Copy {
  Copy(void* destination, const void* source, std::size_t length)
      : to(destination), from(source), bytes(length),
        into(detail::checked_range(destination, length, "the destination of a copy")),
        out_of(detail::checked_range(source, length, "the source of a copy")) {
    for (const OwnedRange* range : {&into, &out_of})
      if (range->owner.memory == Memory::device) range->owner.device.require_working();
  }

  [[nodiscard]] bool has_objects() const { return into.copying != nullptr || out_of.copying != nullptr; }
  [[nodiscard]] bool is_direct(Device device) const {
    return detail::is_direct(device, into.owner) && detail::is_direct(device, out_of.owner);
  }
  [[nodiscard]] bool has_gpu() const { return into.owner.device.is_gpu() || out_of.owner.device.is_gpu(); }
  /// The device whose stream copies, if the caller has not chosen one: a GPU that owns one of the ranges, rather that
  /// of the source. Between objects of devices that do not reach each other it is the destination's: then the source's
  /// bytes go through the host, and the destination's stay.
  [[nodiscard]] Device device() const {
    if (into.copying != nullptr && out_of.copying != nullptr && !out_of.owner.device.reaches(into.owner.device))
      return into.owner.device;
    return out_of.owner.device.is_gpu() ? out_of.owner.device
           : into.owner.device.is_gpu() ? into.owner.device
                                        : out_of.owner.device;
  }

  void* to;
  const void* from;
  std::size_t bytes;
  OwnedRange into, out_of;
};

void copy_objects(const Copy& copy, StreamState& stream) {
  if (copy.out_of.copying != nullptr)
    copy.out_of.copying->copy_out(copy.to, static_cast<const std::byte*>(copy.from), copy.bytes, stream);
  else
    copy.into.copying->copy_in(static_cast<std::byte*>(copy.to), copy.from, copy.bytes, stream);
}

[[nodiscard]] bool is_pageable(const OwnedRange& range) { return range.owner.memory == Memory::pageable; }

/// Whether CUDA itself copies between pageable memory and what the stream's device reaches.
bool is_for_cuda(const Copy& copy, const StreamState& stream) {
  const Device device = stream.device().device();
  return device.is_gpu() && is_pageable(copy.into) != is_pageable(copy.out_of) &&
         (is_pageable(copy.into) || detail::is_direct(device, copy.into.owner)) &&
         (is_pageable(copy.out_of) || detail::is_direct(device, copy.out_of.owner));
}

/// Whether CUDA may read the source during the call that enqueues the copy: no earlier work of the stream, which may
/// write the source, is left.
bool is_read_at_once(const Copy& copy, const StreamState& stream) {
  return copy.bytes <= read_at_once_bytes && is_pageable(copy.out_of) && is_for_cuda(copy, stream) &&
         stream.own().drained();  // false while a graph captures the stream
}

void put(const Copy& copy, beeline::Stream& stream) { stream.copy(copy.to, copy.from, copy.bytes); }

void enqueue(const Copy& copy, StreamState& stream);

/// A copy on a host device's stream that a GPU's stream makes, also after a failure of the host device's.
void enqueue_on_gpu(const Copy& copy, StreamState& stream) {
  if (!copy.is_direct(copy.device()))  // buffers and other streams may have to be made, for which nothing may wait
    return stream.enqueue([&](beeline::Stream& on) {
      on.enqueue([to = copy.to, from = copy.from, bytes = copy.bytes] { hpe::copy(to, from, bytes); });
    });
  StreamState& of_gpu = stream.stream_beside(Runtime::get().state_of(copy.device()));
  of_gpu.wait_for(stream);
  enqueue(copy, of_gpu);
  stream.wait_for(of_gpu);
}

void enqueue(const Copy& copy, StreamState& stream) {
  const Device device = stream.device().device();
  if (!device.is_gpu() && copy.has_gpu()) return enqueue_on_gpu(copy, stream);
  const bool is_direct = copy.is_direct(device);
  if (is_direct && device.is_gpu())
    return stream.enqueue_own(
        [&](beeline::Stream& own) { gpu::enqueue_copy(device.index(), own.native(), copy.to, copy.from, copy.bytes); });
  if (is_direct || is_read_at_once(copy, stream))
    return stream.enqueue_own([&](beeline::Stream& own) { put(copy, own); });
  stream.enqueue([&](beeline::Stream& reaching) { put(copy, reaching); });
}

}  // namespace

void detail::copy(void* to, const void* from, std::size_t bytes, StreamState& stream) {
  if (!moves_anything(to, from, bytes)) return;
  const Copy copy(to, from, bytes);
  if (copy.has_objects()) return copy_objects(copy, stream);
  enqueue(copy, stream);
}

void copy(void* to, const void* from, std::size_t bytes, Stream& stream) {
  detail::copy(to, from, bytes, stream.state());
}

void copy(void* to, const void* from, std::size_t bytes, const Waiting& waiting) {
  if (!moves_anything(to, from, bytes)) return;
  const Copy copy(to, from, bytes);
  if (!copy.has_objects() && !copy.has_gpu() && copy.is_direct(copy.device())) {
    std::memcpy(to, from, bytes);
    return;
  }
  detail::TakenStream stream(Runtime::get().state_of(copy.device()));
  if (copy.has_objects())
    copy_objects(copy, stream.get());
  else if (is_for_cuda(copy, stream.get()))  // CUDA blocks while it copies pageable memory
    stream.get().call_own([&](beeline::Stream& own) { put(copy, own); });
  else
    enqueue(copy, stream.get());
  stream.synchronize(waiting);
}

void detail::fill(void* to, unsigned char value, std::size_t bytes, StreamState& stream) {
  if (bytes == 0) return;
  const OwnedRange range = checked_range(to, bytes, "a fill");
  const Device device = stream.device().device();
  if (range.copying != nullptr || !is_direct(device, range.owner))
    throw Error(Status::unreachable,
                fmt::format("a fill of {} bytes at {}: a stream of {} does not reach them", bytes, to, device.name()));
  stream.enqueue_own([&](beeline::Stream& own) { own.fill(to, value, bytes); });
}

void Stream::fill(void* to, unsigned char value, std::size_t bytes) { detail::fill(to, value, bytes, state()); }

}  // namespace beeline::hpe
