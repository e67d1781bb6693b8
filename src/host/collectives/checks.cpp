// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/checks.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "beeline/core/error.hpp"
#include "host/ranges.hpp"

namespace beeline::detail {

// Texts are made for errors only, since every call passes here.

std::size_t checked_bytes(std::size_t count, std::size_t parts, ElementType type) {
  const std::size_t element = bytes_of(type);
  if (element == 0)
    throw Error(Status::invalid_argument,
                fmt::format("element type {} does not exist", static_cast<std::uint32_t>(type)));
  if (count > SIZE_MAX / 2 / element / parts)
    throw Error(Status::invalid_argument,
                fmt::format("{} times {} elements of {} bytes are more than an address space", parts, count, element));
  return count * parts * element;
}

void check_reduction(ElementType type, Reduction reduction) {
  if (static_cast<std::uint32_t>(reduction) >= reductions)
    throw Error(Status::invalid_argument,
                fmt::format("reduction number {} does not exist", static_cast<std::uint32_t>(reduction)));
  if (!has_reduction(type, reduction))
    throw Error(Status::invalid_argument, fmt::format("there is no {} of {}", name(reduction), name(type)));
}

void check_vector(const Context& ctx, const char* name, const void* vector, std::size_t bytes, ElementType type) {
  if (bytes == 0) return;
  if (vector == nullptr) throw Error(Status::invalid_argument, fmt::format("the {} is a null pointer", name));
  if (reinterpret_cast<std::uintptr_t>(vector) % bytes_of(type) != 0)
    throw Error(Status::invalid_argument, fmt::format("the {} {} is not aligned to its elements of {} bytes", name,
                                                      fmt::ptr(vector), bytes_of(type)));
  require_mapped(ctx, name, vector);
}

void check_apart(const VectorPlace& destination, const VectorPlace& source) {
  if (source.bytes == 0 || destination.bytes == 0) return;
  const auto to = reinterpret_cast<std::uintptr_t>(destination.at), from = reinterpret_cast<std::uintptr_t>(source.at);
  if (to + destination.bytes > from && from + source.bytes > to)
    throw Error(Status::invalid_argument, "source and destination overlap without being the same");
}

}  // namespace beeline::detail
