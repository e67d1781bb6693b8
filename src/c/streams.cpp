// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "beeline/host/stream_operations.hpp"
#include "c/call.hpp"

using namespace beeline;
using c::guarded;
using c::object_of;
using c::stream_of;

namespace {

beeline_status set_stream(beeline_stream** to, beeline_world* world, std::unique_ptr<Stream> made) {
  Stream* const plain = made.get();
  *to = std::make_unique<beeline_stream>(*world, plain, std::move(made)).release();
  return BEELINE_OK;
}

}  // namespace

beeline_stream* beeline_default_stream(beeline_world* world) noexcept {
  beeline_stream* stream = nullptr;
  static_cast<void>(guarded("beeline_default_stream", [&] { stream = &object_of(world, "world").stream; }));
  return stream;
}

beeline_status beeline_stream_create(beeline_world* world, int32_t high_priority, beeline_stream** stream) noexcept {
  return guarded("beeline_stream_create", [&] {
    World& of = *object_of(world, "world").world;
    c::require_pointer(stream, "stream");
    return set_stream(stream, world,
                      of.make_stream(high_priority != 0 ? StreamPriority::high : StreamPriority::normal));
  });
}

beeline_status beeline_stream_adopt(beeline_world* world, void* native, beeline_stream** stream) noexcept {
  return guarded("beeline_stream_adopt", [&] {
    World& of = *object_of(world, "world").world;
    c::require_pointer(stream, "stream");
    return set_stream(stream, world, of.adopt_stream(native));
  });
}

beeline_status beeline_stream_destroy(beeline_stream* stream) noexcept {
  return guarded("beeline_stream_destroy", [&] {
    beeline_stream& ended = object_of(stream, "stream");
    if (ended.own == nullptr) c::refuse("stream", "the default stream, which ends with its world");
    delete &ended;
  });
}

void* beeline_stream_native(const beeline_stream* stream) noexcept {
  void* native = nullptr;
  static_cast<void>(guarded("beeline_stream_native", [&] { native = object_of(stream, "stream").stream->native(); }));
  return native;
}

beeline_status beeline_synchronize(beeline_stream* stream, uint64_t timeout_ns) noexcept {
  return guarded("beeline_synchronize", [&] {
    beeline_stream& of = object_of(stream, "stream");
    return of.world->world->synchronize(*of.stream, Timeout{timeout_ns});
  });
}

beeline_status beeline_copy_on_stream(beeline_stream* stream, void* destination, const void* source,
                                      size_t bytes) noexcept {
  return guarded("beeline_copy_on_stream", [&] {
    beeline_stream& on = object_of(stream, "stream");
    c::require_memory(destination, bytes, "destination");
    c::require_memory(source, bytes, "source");
    on.world->world->copy(destination, source, bytes, *on.stream);
  });
}

beeline_status beeline_fill_on_stream(beeline_stream* stream, void* destination, uint8_t value, size_t bytes) noexcept {
  return guarded("beeline_fill_on_stream", [&] {
    beeline_stream& on = object_of(stream, "stream");
    c::require_memory(destination, bytes, "destination");
    on.stream->fill(destination, value, bytes);
  });
}

beeline_status beeline_event_create(beeline_stream* stream, beeline_event** event) noexcept {
  return guarded("beeline_event_create", [&] {
    beeline_stream& of = object_of(stream, "stream");
    c::require_pointer(event, "event");
    *event = std::make_unique<beeline_event>(*of.world, of.stream->make_event()).release();
  });
}

beeline_status beeline_event_destroy(beeline_event* event) noexcept {
  return guarded("beeline_event_destroy", [&] { delete &object_of(event, "event"); });
}

beeline_status beeline_event_record(beeline_event* event, beeline_stream* stream) noexcept {
  return guarded("beeline_event_record",
                 [&] { object_of(stream, "stream").stream->record(*object_of(event, "event").event); });
}

beeline_status beeline_stream_await(beeline_stream* stream, beeline_event* event) noexcept {
  return guarded("beeline_stream_await",
                 [&] { object_of(stream, "stream").stream->wait_event(*object_of(event, "event").event); });
}

beeline_status beeline_event_synchronize(beeline_event* event, uint64_t timeout_ns) noexcept {
  return guarded("beeline_event_synchronize", [&] {
    beeline_event& of = object_of(event, "event");
    return of.world->world->synchronize(*of.event, Timeout{timeout_ns});
  });
}

beeline_status beeline_put_on_stream(beeline_team* team, void* destination, const void* source, size_t bytes,
                                     int32_t peer, beeline_stream* stream) noexcept {
  return guarded("beeline_put_on_stream", [&] {
    Team& of = *object_of(team, "team").team;
    c::require_memory(destination, bytes, "destination");
    c::require_memory(source, bytes, "source");
    put_on_stream(of, destination, source, bytes, static_cast<int>(c::peer_of(of, peer)), stream_of(stream));
  });
}

beeline_status beeline_signal_on_stream(beeline_team* team, uint64_t* signal, uint64_t value, int32_t peer,
                                        beeline_stream* stream) noexcept {
  return guarded("beeline_signal_on_stream", [&] {
    Team& of = *object_of(team, "team").team;
    c::require_pointer(signal, "signal");
    signal_on_stream(of, static_cast<int>(c::peer_of(of, peer)),
                     {.signal = signal, .value = value, .stream = stream_of(stream)});
  });
}

beeline_status beeline_put_signal_on_stream(beeline_team* team, void* destination, const void* source, size_t bytes,
                                            uint64_t* signal, uint64_t value, int32_t peer,
                                            beeline_stream* stream) noexcept {
  return guarded("beeline_put_signal_on_stream", [&] {
    Team& of = *object_of(team, "team").team;
    c::require_memory(destination, bytes, "destination");
    c::require_memory(source, bytes, "source");
    c::require_pointer(signal, "signal");
    put_signal_on_stream(of, destination, source, bytes, static_cast<int>(c::peer_of(of, peer)),
                         {.signal = signal, .value = value, .stream = stream_of(stream)});
  });
}

beeline_status beeline_wait_on_stream(beeline_team* team, const uint64_t* signal, uint64_t value, int32_t peer,
                                      beeline_stream* stream) noexcept {
  return guarded("beeline_wait_on_stream", [&] {
    Team& of = *object_of(team, "team").team;
    c::require_pointer(signal, "signal");
    wait_on_stream(of, {.signal = signal, .value = value, .stream = stream_of(stream), .peer = c::source_of(of, peer)});
  });
}
