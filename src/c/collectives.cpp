// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/collectives.hpp"

#include <cstddef>
#include <memory>
#include <string_view>

#include "c/call.hpp"

using namespace beeline;
using c::object_of;

struct beeline_collectives : c::Handle<0xbee10008> {
  beeline_collectives(Team& team, const CollectiveOptions& options) : collectives(team, options) {}
  Collectives collectives;
};

namespace {

static_assert(sizeof(beeline_collective_options) == 32 && offsetof(beeline_collective_options, sessions) == 4);
static_assert(offsetof(beeline_collective_options, packet_bytes) == 8);
static_assert(offsetof(beeline_collective_options, staging_bytes) == 16);
static_assert(offsetof(beeline_collective_options, engine_bytes) == 24);
static_assert(sizeof(beeline_call) == 32 && offsetof(beeline_call, algorithm) == 4);
static_assert(offsetof(beeline_call, blocks) == 8 && offsetof(beeline_call, symmetric) == 12);
static_assert(offsetof(beeline_call, overlapped) == 16 && offsetof(beeline_call, stream) == 24);
static_assert(sizeof(beeline_pieces) == 40 && offsetof(beeline_pieces, send_counts) == 8);
static_assert(offsetof(beeline_pieces, send_offsets) == 16 && offsetof(beeline_pieces, receive_counts) == 24);
static_assert(offsetof(beeline_pieces, receive_offsets) == 32);
static_assert(BEELINE_FLOAT32 == static_cast<int>(ElementType::float32));
static_assert(BEELINE_FLOAT64 == static_cast<int>(ElementType::float64));
static_assert(BEELINE_FLOAT16 == static_cast<int>(ElementType::float16));
static_assert(BEELINE_BFLOAT16 == static_cast<int>(ElementType::bfloat16));
static_assert(BEELINE_INT32 == static_cast<int>(ElementType::int32));
static_assert(BEELINE_INT64 == static_cast<int>(ElementType::int64));
static_assert(BEELINE_UINT8 == static_cast<int>(ElementType::uint8));
static_assert(BEELINE_UINT32 == static_cast<int>(ElementType::uint32));
static_assert(BEELINE_UINT64 == static_cast<int>(ElementType::uint64));
static_assert(BEELINE_SUM == static_cast<int>(Reduction::sum));
static_assert(BEELINE_PRODUCT == static_cast<int>(Reduction::product));
static_assert(BEELINE_MINIMUM == static_cast<int>(Reduction::minimum));
static_assert(BEELINE_MAXIMUM == static_cast<int>(Reduction::maximum));
static_assert(BEELINE_AVERAGE == static_cast<int>(Reduction::average));
static_assert(BEELINE_BIT_AND == static_cast<int>(Reduction::bit_and));
static_assert(BEELINE_BIT_OR == static_cast<int>(Reduction::bit_or));
static_assert(BEELINE_BIT_XOR == static_cast<int>(Reduction::bit_xor));

CollectiveCall call_of(const beeline_call* given) {
  if (given == nullptr) return {};
  const beeline_call& call = c::structure_of(given, "call");
  c::require_enumerator(call.algorithm, algorithms, "call.algorithm");
  return {.stream = call.stream == nullptr ? nullptr : object_of(call.stream, "call.stream").stream,
          .algorithm = static_cast<Algorithm>(call.algorithm),
          .blocks = call.blocks,
          .symmetric = call.symmetric != 0,
          .overlapped = call.overlapped != 0};
}

/// The arguments of a call, as its C function has them.
struct Vectors {
  void* destination;
  const void* source;
  std::size_t count;
};

/// A call, blocking or on its stream.
///   reduction  0 for an operation that only moves data;  root  -1 for one without a root
beeline_status make(const char* function, Operation operation, beeline_collectives* handle, const Vectors& vectors,
                    std::int32_t type, std::int32_t reduction, std::int32_t root, const beeline_call* call) noexcept {
  return c::guarded(function, [&] {
    Collectives& collectives = object_of(handle, "collectives").collectives;
    c::require_enumerator(type, element_types, "type");
    c::require_enumerator(reduction, reductions, "reduction");
    const Team& team = collectives.team();
    if (find_shape(operation)->has_root()) static_cast<void>(c::peer_of(team, root, "root"));
    const bool is_root = root == team.rank();
    const auto size = static_cast<std::size_t>(team.size());
    const auto bytes_on = [&](Side side) { return vectors.count * parts_of(side, size, is_root); };
    c::require_memory(vectors.destination, bytes_on(find_shape(operation)->destination), "destination");
    c::require_memory(vectors.source, bytes_on(find_shape(operation)->source), "source");
    const CallDescription what{.operation = operation,
                               .element = {static_cast<ElementType>(type)},
                               .reduction = static_cast<Reduction>(reduction),
                               .root = static_cast<std::uint32_t>(root),
                               .count = vectors.count};
    detail::make_call(collectives.team(), call_of(call), [&](const CollectiveCall& how) {
      collectives.call_on_stream(what, vectors.destination, vectors.source, how);
    });
  });
}

}  // namespace

int32_t beeline_algorithm(const char* name) noexcept {
  for (std::uint32_t number = 0; name != nullptr && number < algorithms; ++number)
    if (std::string_view(name) == beeline::name(static_cast<Algorithm>(number)))
      return static_cast<std::int32_t>(number);
  return -1;
}

beeline_status beeline_collectives_create(beeline_team* team, const beeline_collective_options* options,
                                          beeline_collectives** collectives) noexcept {
  return c::collective("beeline_collectives_create", team, [&](Team& of) {
    c::require_pointer(collectives, "collectives");
    CollectiveOptions wanted;
    if (options != nullptr) {
      const beeline_collective_options& given = c::structure_of(options, "options");
      wanted.sessions = given.sessions, wanted.packet_bytes = given.packet_bytes;
      wanted.staging_bytes = given.staging_bytes;
      if (given.engine_bytes != 0)
        wanted.engine_bytes = given.engine_bytes == BEELINE_NO_ENGINE_BYTES ? 0 : given.engine_bytes;
    }
    *collectives = std::make_unique<beeline_collectives>(of, wanted).release();
  });
}

beeline_status beeline_collectives_destroy(beeline_collectives* collectives) noexcept {
  return c::guarded("beeline_collectives_destroy", [&] { delete &object_of(collectives, "collectives"); });
}

beeline_status beeline_allreduce(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                                 int32_t type, int32_t reduction, const beeline_call* call) noexcept {
  return make("beeline_allreduce", Operation::allreduce, collectives, {destination, source, count}, type, reduction, -1,
              call);
}
beeline_status beeline_reduce(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                              int32_t type, int32_t reduction, int32_t root, const beeline_call* call) noexcept {
  return make("beeline_reduce", Operation::reduce, collectives, {destination, source, count}, type, reduction, root,
              call);
}
beeline_status beeline_reduce_scatter(beeline_collectives* collectives, void* destination, const void* source,
                                      size_t count, int32_t type, int32_t reduction,
                                      const beeline_call* call) noexcept {
  return make("beeline_reduce_scatter", Operation::reduce_scatter, collectives, {destination, source, count}, type,
              reduction, -1, call);
}
beeline_status beeline_broadcast(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                                 int32_t type, int32_t root, const beeline_call* call) noexcept {
  return make("beeline_broadcast", Operation::broadcast, collectives, {destination, source, count}, type, 0, root,
              call);
}
beeline_status beeline_scatter(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                               int32_t type, int32_t root, const beeline_call* call) noexcept {
  return make("beeline_scatter", Operation::scatter, collectives, {destination, source, count}, type, 0, root, call);
}
beeline_status beeline_gather(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                              int32_t type, int32_t root, const beeline_call* call) noexcept {
  return make("beeline_gather", Operation::gather, collectives, {destination, source, count}, type, 0, root, call);
}
beeline_status beeline_allgather(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                                 int32_t type, const beeline_call* call) noexcept {
  return make("beeline_allgather", Operation::allgather, collectives, {destination, source, count}, type, 0, -1, call);
}
beeline_status beeline_alltoall(beeline_collectives* collectives, void* destination, const void* source, size_t count,
                                int32_t type, const beeline_call* call) noexcept {
  return make("beeline_alltoall", Operation::alltoall, collectives, {destination, source, count}, type, 0, -1, call);
}

beeline_status beeline_alltoallv(beeline_collectives* collectives, void* destination, const void* source,
                                 const beeline_pieces* pieces, int32_t type, const beeline_call* call) noexcept {
  return c::guarded("beeline_alltoallv", [&] {
    Collectives& of = object_of(collectives, "collectives").collectives;
    c::require_enumerator(type, element_types, "type");
    const beeline_pieces& given = c::structure_of(pieces, "pieces");
    const auto span_of = [&](const std::size_t* values, const char* argument) {
      c::require_pointer(values, argument);
      return std::span(values, static_cast<std::size_t>(of.team().size()));
    };
    const PieceSpans spans{span_of(given.send_counts, "pieces.send_counts"),
                           span_of(given.send_offsets, "pieces.send_offsets"),
                           span_of(given.receive_counts, "pieces.receive_counts"),
                           span_of(given.receive_offsets, "pieces.receive_offsets")};
    detail::make_call(of.team(), call_of(call), [&](const CollectiveCall& how) {
      of.alltoallv_on_stream(destination, source, spans, static_cast<ElementType>(type), how);
    });
  });
}

beeline_status beeline_collective_barrier(beeline_collectives* collectives, beeline_stream* stream) noexcept {
  return c::guarded("beeline_collective_barrier", [&] {
    Collectives& of = object_of(collectives, "collectives").collectives;
    of.barrier({.stream = stream == nullptr ? nullptr : object_of(stream, "stream").stream});
  });
}
