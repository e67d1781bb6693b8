// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How an all-reduce by copy engines is divided among members and into chunks, for host code and kernels.

#include <cstddef>
#include <cstdint>

#include "beeline/collectives/impl/words.hpp"
#include "beeline/device/wait.hpp"

namespace beeline::detail {

/// Where pieces of vectors begin, in the vectors and in the scratch memory, for copies at their full rate.
inline constexpr std::size_t engine_alignment = 256;

/// A range of each member's part of a vector, and where the members' pieces of it lie in the scratch memory.
struct EngineChunk {
  std::size_t first = 0, bytes = 0;  ///< of a part
  std::size_t place = 0;             ///< in the scratch memory, of the piece from the first other member
  std::size_t result_place = 0;      ///< the same of the result that it returns
  std::size_t stride = 0;            ///< from one member's piece to the next one's
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

/// Whether the team has failed, for example because its members' calls differ: then nothing may be touched. One thread
/// reads the word, which lies in host memory.
template <class Block>
[[nodiscard]] BEELINE_HOST_DEVICE bool has_failed(const Block& block, const Context& ctx) {
  return block.any(block.thread_rank() == 0 && read_abort_word(ctx) != 0);
}

}  // namespace beeline::detail
