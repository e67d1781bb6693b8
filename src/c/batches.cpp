// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "beeline/control/put_batch.hpp"
#include "c/call.hpp"

using namespace beeline;
using c::object_of;
using c::operate;

struct beeline_batch : c::Handle<0xbee1000d> {
  beeline_batch(beeline_team& in, std::uint32_t capacity)
      : team(&in), entries(*in.team, capacity, Heap::pinned), batch(in.team->host_context(), entries.data(), capacity) {
  }
  beeline_team* team;
  const SymmetricArray<BatchEntry> entries;
  PutBatch batch;
};

namespace {

/// `operate` for an object: `body(batch)`.
template <class Body>
beeline_status call(const char* function, beeline_batch* handle, const Body& body) noexcept {
  beeline_team* team = nullptr;
  const beeline_status checked = c::guarded(function, [&] { team = object_of(handle, "batch").team; });
  if (checked != BEELINE_OK) return checked;
  return operate(function, team, [&](Team&, const Context&) { return body(handle->batch); });
}

}  // namespace

beeline_status beeline_batch_create(beeline_team* team, uint32_t capacity, beeline_batch** batch) noexcept {
  return c::collective("beeline_batch_create", team, [&](Team&) {
    c::require_pointer(batch, "batch");
    if (capacity == 0) c::refuse("capacity", "0 operations");
    *batch = std::make_unique<beeline_batch>(*team, capacity).release();
  });
}

beeline_status beeline_batch_destroy(beeline_batch* batch) noexcept {
  return c::guarded("beeline_batch_destroy", [&] {
    Team& team = *object_of(batch, "batch").team->team;
    for (std::uint32_t queue = 0; queue < command_rings; ++queue)
      static_cast<void>(flush(Thread{}, team.host_context(), QueueId{queue}));  // engines may read the entries
    delete batch;
  });
}

beeline_status beeline_batch_begin(beeline_batch* batch, int32_t peer, uint32_t queue) noexcept {
  return call("beeline_batch_begin", batch, [&](PutBatch& of) {
    const std::uint32_t to = c::peer_of(*batch->team->team, peer);
    return of.begin(Thread{}, to, c::queue_of(queue));
  });
}

beeline_status beeline_batch_put(beeline_batch* batch, void* destination, const void* source, size_t bytes) noexcept {
  return call("beeline_batch_put", batch, [&](PutBatch& of) {
    c::require_memory(destination, bytes, "destination");
    c::require_memory(source, bytes, "source");
    return of.put(Thread{}, static_cast<std::byte*>(destination), static_cast<const std::byte*>(source), bytes);
  });
}

beeline_status beeline_batch_signal(beeline_batch* batch, uint64_t* signal, uint64_t value) noexcept {
  return call("beeline_batch_signal", batch, [&](PutBatch& of) {
    c::require_pointer(signal, "signal");
    return of.signal(Thread{}, signal, value);
  });
}

beeline_status beeline_batch_signal_add(beeline_batch* batch, uint64_t* signal, uint64_t value) noexcept {
  return call("beeline_batch_signal_add", batch, [&](PutBatch& of) {
    c::require_pointer(signal, "signal");
    return of.signal_add(Thread{}, signal, value);
  });
}

beeline_status beeline_batch_end(beeline_batch* batch) noexcept {
  return call("beeline_batch_end", batch, [](PutBatch& of) { return of.end(Thread{}); });
}
