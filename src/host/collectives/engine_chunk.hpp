// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How an all-reduce by copy engines is divided among members and into chunks, for host code and kernels.

#include <cstddef>
#include <cstdint>

#include "beeline/collectives/impl/words.hpp"
#include "beeline/device/wait.hpp"

namespace beeline::detail {

/// Alignment in bytes of pieces in the vectors and in the scratch memory; copies need it for their full rate.
inline constexpr std::size_t engine_alignment = 256;

/// A range of each member's part of a vector, and the offsets of the members' pieces in the scratch memory.
struct EngineChunk {
  std::size_t first = 0, bytes = 0;  ///< from the start of a part
  std::size_t place = 0;             ///< offset in the scratch memory of the first other member's piece
  std::size_t result_place = 0;      ///< offset of the result that this member returns
  std::size_t stride = 0;            ///< bytes from one member's piece to the next member's
};

struct EnginePiece {
  std::size_t offset, bytes;  ///< from the vectors' start
};

/// The chunk's range of `owner`'s part of vectors of `count` elements.
[[nodiscard]] BEELINE_HOST_DEVICE inline EnginePiece piece_of(const EngineChunk& chunk, std::size_t count,
                                                              std::size_t element_bytes, std::uint32_t members,
                                                              std::uint32_t owner) {
  const Range part = part_of(count, members, owner, engine_alignment / element_bytes);
  const std::size_t bytes = part.count * element_bytes, first = chunk.first < bytes ? chunk.first : bytes;
  const std::size_t rest = bytes - first;
  return {part.first * element_bytes + first, chunk.bytes < rest ? chunk.bytes : rest};
}

/// Whether the team has failed, for example because its members' calls differ: then no memory may be touched. One
/// thread reads the abort word, which is in host memory.
template <class Block>
[[nodiscard]] BEELINE_HOST_DEVICE bool has_failed(const Block& block, const Context& ctx) {
  return block.any(block.thread_rank() == 0 && read_abort_word(ctx) != 0);
}

}  // namespace beeline::detail
