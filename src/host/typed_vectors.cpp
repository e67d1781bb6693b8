// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/impl/typed_vectors.hpp"

#include <fmt/format.h>

#include <string>

#include "beeline/core/error.hpp"
#include "beeline/host/collectives.hpp"

namespace beeline::detail {

// Texts are made for errors only, since every typed call passes here.

void require_elements(const char* call, const char* argument, std::size_t has, std::size_t parts, std::size_t count) {
  if (parts == 0 || (has % parts == 0 && has / parts == count)) return;
  const std::string product = parts == 1 ? std::string() : fmt::format(": {} times {}", parts, count);
  throw Error(Status::invalid_argument,
              fmt::format("{}: the {} has {} elements, and needs {}{}", call, argument, has, parts * count, product));
}

void require_pieces(const char* argument, std::size_t has, std::span<const std::size_t> counts,
                    std::span<const std::size_t> offsets) {
  for (std::size_t peer = 0; peer < counts.size() && peer < offsets.size(); ++peer)
    if (counts[peer] != 0 && (offsets[peer] > has || counts[peer] > has - offsets[peer]))
      throw Error(Status::invalid_argument,
                  fmt::format("alltoallv: the {} has {} elements, and needs {} from {} on for rank {}", argument, has,
                              counts[peer], offsets[peer], peer));
}

ScaledPieces::ScaledPieces(const PieceSpans& pieces, std::size_t factor) {
  const std::span<const std::size_t> columns[] = {pieces.send_counts, pieces.send_offsets, pieces.receive_counts,
                                                  pieces.receive_offsets};
  for (std::size_t column = 0; column < 4; ++column)
    for (const std::size_t elements : columns[column]) columns_[column].push_back(elements * factor);
}

}  // namespace beeline::detail
