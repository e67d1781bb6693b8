// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "beeline/host/hybrid_transfers.hpp"
#include "c/call.hpp"

using namespace beeline;
using c::guarded;
using c::object_of;

struct beeline_hybrid : c::Handle<0xbee1000e> {
  beeline_hybrid(beeline_team& in, const HybridOptions& options) : team(&in), transfers(*in.team, options) {}
  beeline_team* team;
  HybridTransfers transfers;
};

namespace {

static_assert(sizeof(beeline_hybrid_options) == 24 && offsetof(beeline_hybrid_options, chunks) == 4);
static_assert(offsetof(beeline_hybrid_options, threshold_bytes) == 8);
static_assert(offsetof(beeline_hybrid_options, chunk_bytes) == 16);

HybridOptions options_of(const beeline_hybrid_options* options) {
  if (options == nullptr) return {};
  const beeline_hybrid_options& given = c::structure_of(options, "options");
  return {given.threshold_bytes, given.chunk_bytes, given.chunks};
}

/// `guarded` for a transfer between `destination` and `source`: `body(transfers, team)`.
template <class Body>
beeline_status transfer(const char* function, beeline_hybrid* hybrid, const void* destination, const void* source,
                        std::size_t bytes, const Body& body) noexcept {
  return guarded(function, [&] {
    beeline_hybrid& of = object_of(hybrid, "hybrid");
    c::require_memory(destination, bytes, "destination");
    c::require_memory(source, bytes, "source");
    return body(of.transfers, *of.team->team);
  });
}

}  // namespace

beeline_status beeline_hybrid_create(beeline_team* team, const beeline_hybrid_options* options,
                                     beeline_hybrid** hybrid) noexcept {
  return c::collective("beeline_hybrid_create", team, [&](Team&) {
    c::require_pointer(hybrid, "hybrid");
    *hybrid = std::make_unique<beeline_hybrid>(*team, options_of(options)).release();
  });
}

beeline_status beeline_hybrid_destroy(beeline_hybrid* hybrid) noexcept {
  return guarded("beeline_hybrid_destroy", [&] { delete &object_of(hybrid, "hybrid"); });
}

beeline_status beeline_hybrid_set(beeline_hybrid* hybrid, const beeline_hybrid_options* options) noexcept {
  return guarded("beeline_hybrid_set", [&] { object_of(hybrid, "hybrid").transfers.set(options_of(options)); });
}

beeline_status beeline_hybrid_is_staged(beeline_hybrid* hybrid, const void* destination, const void* source,
                                        size_t bytes, int32_t* staged) noexcept {
  return transfer("beeline_hybrid_is_staged", hybrid, destination, source, bytes,
                  [&](const HybridTransfers& transfers, const Team&) {
                    c::require_pointer(staged, "staged");
                    *staged = transfers.is_staged(destination, source, bytes) ? 1 : 0;
                  });
}

beeline_status beeline_hybrid_copy(beeline_hybrid* hybrid, void* destination, const void* source, size_t bytes,
                                   uint64_t timeout_ns) noexcept {
  return transfer("beeline_hybrid_copy", hybrid, destination, source, bytes,
                  [&](HybridTransfers& transfers, const Team&) {
                    return transfers.copy(destination, source, bytes, Timeout{timeout_ns});
                  });
}

beeline_status beeline_hybrid_put(beeline_hybrid* hybrid, void* destination, const void* source, size_t bytes,
                                  int32_t peer, uint64_t timeout_ns) noexcept {
  return transfer("beeline_hybrid_put", hybrid, destination, source, bytes,
                  [&](HybridTransfers& transfers, const Team& team) {
                    const int to = static_cast<int>(c::peer_of(team, peer));
                    return transfers.put(destination, source, bytes, to, Timeout{timeout_ns});
                  });
}

beeline_status beeline_hybrid_copy_on_stream(beeline_hybrid* hybrid, void* destination, const void* source,
                                             size_t bytes, beeline_stream* stream) noexcept {
  return transfer("beeline_hybrid_copy_on_stream", hybrid, destination, source, bytes,
                  [&](HybridTransfers& transfers, const Team&) {
                    transfers.copy_on_stream(destination, source, bytes, c::stream_of(stream));
                  });
}

beeline_status beeline_hybrid_put_on_stream(beeline_hybrid* hybrid, void* destination, const void* source, size_t bytes,
                                            int32_t peer, beeline_stream* stream) noexcept {
  return transfer("beeline_hybrid_put_on_stream", hybrid, destination, source, bytes,
                  [&](HybridTransfers& transfers, const Team& team) {
                    const int to = static_cast<int>(c::peer_of(team, peer));
                    transfers.put_on_stream(destination, source, bytes, to, c::stream_of(stream));
                  });
}
