// SPDX-License-Identifier: Apache-2.0
#include "transport/bounce_stream.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "memory/host_buffer.hpp"
#include "transport/checks.hpp"
#include "transport/chunk_ring.hpp"
#include "transport/forwarding_stream.hpp"

namespace beeline {

namespace {

constexpr std::size_t buffer_count = 4;
constexpr int own_device = -1;

/// The buffers for copies from one device to another. Both devices are driven by streams of one BounceStream.
struct Ring {
  Ring(Stream& out, Stream& in, std::size_t chunk_bytes, bool pinned)
      : buffers(chunk_bytes * buffer_count, pinned, "to stage copies through"),
        chunks(in, buffers.data(), buffers.bytes()) {
    chunks.divide(out, chunk_bytes, buffer_count);
  }
  HostBuffer buffers;
  ChunkRing chunks;
};

/// A stream of another device, and the events that order its work with the own stream's.
struct OtherDevice {
  OtherDevice(std::unique_ptr<Stream> made, Stream& own)
      : stream(std::move(made)), begun(own.make_event()), done(stream->make_event()) {}
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Event> begun, done;
};

class BounceStream final : public ForwardingStream<BounceStream> {
 public:
  BounceStream(std::unique_ptr<Stream> own, StreamRoutes routes) : routes_(std::move(routes)), own_(std::move(own)) {}

  [[nodiscard]] Stream& own() const { return *own_; }  ///< its work waits for the other streams' work

  void copy(void* destination, const void* source, std::size_t bytes) override {
    if (!moves_anything(destination, source, bytes)) return;
    const Route there = routes_.route_to(destination), here = routes_.route_to(source);
    const bool sends = there.kind == RouteKind::engine, fetches = here.kind == RouteKind::engine;
    if (sends != fetches && routes_.is_beyond_engine(sends ? source : destination))
      return through_buffer(static_cast<std::byte*>(destination), static_cast<const std::byte*>(source), bytes, sends);
    if (sends || fetches) return routes_.copy_by_engine(*own_, destination, source, bytes);
    if (there.is_direct() && here.is_direct()) return own_->copy(destination, source, bytes);
    int to = there.device, from = here.device;
    refuse_if_captured();
    if (there.is_direct() && routes_.all_devices_reach(destination)) to = from;
    if (here.is_direct() && routes_.all_devices_reach(source)) from = to;
    const std::lock_guard lock(mutex_);
    if (to == from) return on(to, [&](Stream& there) { there.copy(destination, source, bytes); });
    begin(from);
    stage(from, to, static_cast<std::byte*>(destination), static_cast<const std::byte*>(source), bytes);
  }
  void fill(void* destination, unsigned char value, std::size_t bytes) override {
    if (bytes == 0) return;
    const Route to = routes_.route_to(destination);
    if (to.kind == RouteKind::engine) return routes_.fill_by_engine(*own_, destination, value, bytes);
    if (to.is_direct()) return own_->fill(destination, value, bytes);
    refuse_if_captured();
    const std::lock_guard lock(mutex_);
    on(to.device, [&](Stream& there) { there.fill(destination, value, bytes); });
  }
  void write_signal(std::uint64_t* signal, std::uint64_t value) override {
    check_signal(signal);
    const Route to = routes_.route_to(signal);
    if (to.kind == RouteKind::engine) return routes_.signal_by_engine(*own_, signal, value);
    if (to.is_direct()) return own_->write_signal(signal, value);
    refuse_if_captured();
    const std::lock_guard lock(mutex_);
    on(to.device, [&](Stream& there) { there.write_signal(signal, value); });
  }
  bool idle() override {
    if (!own_->idle()) return false;
    const std::lock_guard lock(mutex_);
    return std::all_of(others_.begin(), others_.end(), [](const auto& each) { return each.second.stream->idle(); });
  }

 private:
  /// The wrapped stream makes one half of the copy, the engine the other.
  ///   sends  the engine makes the second half
  void through_buffer(std::byte* destination, const std::byte* source, std::size_t bytes, bool sends) {
    const std::span<std::byte> buffer = routes_.carry_buffer(*own_);
    for (std::size_t done = 0; done < bytes; done += buffer.size()) {
      const std::size_t piece = std::min(bytes - done, buffer.size());
      if (sends) {
        own_->copy(buffer.data(), source + done, piece);
        routes_.copy_by_engine(*own_, destination + done, buffer.data(), piece);
      } else {
        routes_.copy_by_engine(*own_, buffer.data(), source + done, piece);
        own_->copy(destination + done, buffer.data(), piece);
      }
    }
  }
  void refuse_if_captured() const {
    refuse_captured(*own_, "work on memory that this rank's device does not reach",
                    "other devices' streams do it, through host memory");
  }
  [[nodiscard]] OtherDevice& other(int device) {
    const auto known = others_.find(device);
    if (known != others_.end()) return known->second;
    return others_.try_emplace(device, routes_.make_stream(device), *own_).first->second;
  }
  [[nodiscard]] Stream& stream_of(int device) { return device == own_device ? *own_ : *other(device).stream; }

  /// Orders later work of `device` after this stream's work so far.
  void begin(int device) {
    if (device == own_device) return;
    own_->record(*other(device).begun);
    other(device).stream->wait_event(*other(device).begun);
  }
  /// Orders later work of this stream after the work of `device` so far.
  void end(int device) {
    if (device == own_device) return;
    other(device).stream->record(*other(device).done);
    own_->wait_event(*other(device).done);
  }
  template <class Work>
  void on(int device, Work work) {
    begin(device);
    work(stream_of(device));
    end(device);
  }

  /// Each delivery follows the copy out of the source, which follows this stream's work so far.
  void stage(int from, int to, std::byte* destination, const std::byte* source, std::size_t bytes) {
    Stream &out = stream_of(from), &in = stream_of(to);
    Ring& ring = rings_.try_emplace({from, to}, out, in, routes_.chunk_bytes, routes_.pinned).first->second;
    ring.chunks.stage(out, {source, bytes, routes_.chunk_bytes}, [&](const ChunkRing::Chunk& chunk) {
      in.copy(destination + chunk.offset, chunk.buffer, chunk.bytes);
    });
    if (to != own_device) own_->wait_event(ring.chunks.last());
  }

  const StreamRoutes routes_;
  std::mutex mutex_;  ///< held while work is enqueued on several streams
  // The own stream ends first, since its work waits for the other streams' work. The buffers end last.
  std::map<std::pair<int, int>, Ring> rings_;
  std::map<int, OtherDevice> others_;
  std::unique_ptr<Stream> own_;
};

}  // namespace

std::unique_ptr<Stream> make_bounce_stream(std::unique_ptr<Stream> own, StreamRoutes routes) {
  return std::make_unique<BounceStream>(std::move(own), std::move(routes));
}

}  // namespace beeline
