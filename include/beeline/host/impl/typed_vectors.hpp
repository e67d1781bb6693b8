// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Vectors as arguments of the typed calls of `Collectives` and `Messages`.

#include <cstddef>
#include <span>
#include <type_traits>

#include "beeline/collectives/elements.hpp"
#include "beeline/core/operation.hpp"
#include "beeline/host/impl/blocking_stream.hpp"

namespace beeline::detail {

template <class T>
[[nodiscard]] std::span<T> span_of(const SymmetricArray<T>& array) {
  return {array.data(), array.count()};
}
template <class Range>
[[nodiscard]] auto span_of(Range& range) -> decltype(std::span(range)) {
  return std::span(range);
}

/// A vector that knows its length: a `SymmetricArray`, a `std::span`, or an object from which a span can be made. Its
/// elements travel as bytes, so they are trivially copyable.
template <class V>
concept Vector = requires(V& vector) {
  requires std::is_trivially_copyable_v<typename decltype(span_of(vector))::value_type>;
};

/// Destination and source of a call, of one element type. Elements that are only moved may have any type; elements of a
/// type that is no `ElementType` travel as bytes.
template <class T>
struct VectorPair {
  static constexpr std::size_t words = Reducible<T> ? 1 : sizeof(T);  ///< elements of `type()` in one element of T

  std::span<T> to;
  std::span<const T> from;
  std::size_t count = 0;  ///< elements of a part

  [[nodiscard]] static constexpr ElementType type() {
    if constexpr (Reducible<T>)
      return ElementTraits<T>::type;
    else
      return ElementType::uint8;
  }
};

template <Vector To, Vector From>
[[nodiscard]] auto vectors_of(To& destination, From& source) {
  const auto to = span_of(destination);
  const auto from = span_of(source);
  using T = typename decltype(to)::element_type;
  static_assert(!std::is_const_v<T>, "the destination is written");
  static_assert(std::is_same_v<T, typename decltype(from)::value_type>, "destination and source have one element type");
  return VectorPair<T>{to, from};
}

/// Throws invalid_argument unless `argument` has `parts` times `count` elements; with 0 parts any number is permitted.
void require_elements(const char* call, const char* argument, std::size_t has, std::size_t parts, std::size_t count);

/// The vectors of a call of this rank. Throws invalid_argument if their lengths do not fit the operation's shape.
template <Operation operation, Vector To, Vector From>
[[nodiscard]] auto vectors_of(To& destination, From& source, const Context& ctx, int root) {
  constexpr const CollectiveShape& shape = *find_shape(operation);
  static_assert(!shape.reduces || Reducible<typename decltype(span_of(source))::value_type>,
                "reductions are of float, double, Float16, BFloat16, int32_t, int64_t, uint8_t, uint32_t or uint64_t");
  auto vectors = vectors_of(destination, source);
  const bool is_root = ctx.rank == static_cast<std::uint32_t>(root);
  const std::size_t to = vectors.to.size(), to_parts = parts_of(shape.destination, ctx.size, is_root),
                    from = vectors.from.size(), from_parts = parts_of(shape.source, ctx.size, is_root);
  vectors.count = from_parts == 1 ? from : to_parts == 1 ? to : (from + from_parts - 1) / from_parts;
  require_elements(name(operation), "destination", to, to_parts, vectors.count);
  require_elements(name(operation), "source", from, from_parts, vectors.count);
  return vectors;
}

/// Throws invalid_argument unless all pieces are inside the `has` elements of `argument`.
void require_pieces(const char* argument, std::size_t has, std::span<const std::size_t> counts,
                    std::span<const std::size_t> offsets);

}  // namespace beeline::detail
