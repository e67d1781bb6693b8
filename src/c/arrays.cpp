// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <memory>

#include "beeline/host/distributed_array.hpp"
#include "c/call.hpp"

using namespace beeline;
using c::object_of;

struct beeline_array : c::Handle<0xbee1000a> {
  beeline_array(beeline_world& in, std::size_t elements, std::size_t bytes_of_element, const Distribution& distribution)
      : world(&in), count(elements), element_bytes(bytes_of_element),
        bytes(*in.world, detail::array_bytes(elements, bytes_of_element), distribution) {}
  beeline_world* world;
  std::size_t count, element_bytes;
  DistributedArray<std::byte> bytes;
};

static_assert(sizeof(beeline_chunk) == 24 && offsetof(beeline_chunk, owner) == 4);
static_assert(offsetof(beeline_chunk, first) == 8 && offsetof(beeline_chunk, behind) == 16);

beeline_status beeline_array_create(beeline_world* world, size_t count, size_t element_bytes, size_t chunk_elements,
                                    int32_t kind, beeline_array** array) noexcept {
  return c::collective_of_world("beeline_array_create", world, [&](World&) {
    c::require_enumerator(kind, 3, "kind");
    c::require_pointer(array, "array");
    if (element_bytes == 0) c::refuse("element_bytes", "0 bytes");
    *array = std::make_unique<beeline_array>(
                 *world, count, element_bytes,
                 Distribution{.chunk_elements = detail::array_bytes(chunk_elements, element_bytes),
                              .kind = static_cast<MemoryKind>(kind)})
                 .release();
  });
}

beeline_status beeline_array_destroy(beeline_array* array) noexcept {
  return c::guarded("beeline_array_destroy", [&] {
    beeline_array& ended = object_of(array, "array");
    const c::ExclusiveCall call(ended.world->team, "beeline_array_destroy");
    delete &ended;
  });
}

void* beeline_array_data(const beeline_array* array) noexcept {
  void* data = nullptr;
  static_cast<void>(c::guarded("beeline_array_data", [&] { data = object_of(array, "array").bytes.data(); }));
  return data;
}

beeline_status beeline_array_chunk(const beeline_array* array, size_t index, beeline_chunk* chunk) noexcept {
  return c::guarded("beeline_array_chunk", [&] {
    const beeline_array& of = object_of(array, "array");
    beeline_chunk& to = c::structure_of(chunk, "chunk");
    if (index >= of.count) c::refuse("index", fmt::format("{} of {} elements", index, of.count));
    const std::size_t size = of.bytes.chunks().chunk_bytes(), offset = index * of.element_bytes;
    const auto first_from = [&](std::size_t byte) { return (byte + of.element_bytes - 1) / of.element_bytes; };
    to.owner = of.bytes.owner_of(offset);
    to.first = first_from(offset / size * size);
    to.behind = std::min(first_from((offset / size + 1) * size), of.count);
  });
}
