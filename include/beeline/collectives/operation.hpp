// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The description of a collective call, used from the host's function to the words that its kernels exchange.

#include <cstddef>
#include <cstdint>

#include "beeline/collectives/reduction.hpp"
#include "beeline/core/layout.hpp"
#include "beeline/core/registry.hpp"

namespace beeline {

/// Pieces whose lengths differ from peer to peer, in elements. The arrays are in memory that the calling threads can
/// read, and are unchanged until the call has ended. The length that a member expects from a peer equals the length
/// that the peer sends to it.
/// Source: MPI 4.0, 6.8, MPI_Alltoallv.
struct PieceTable {
  const std::size_t* send_counts;      ///< [members]
  const std::size_t* send_offsets;     ///< [members] in elements from the source
  const std::size_t* receive_counts;   ///< [members]
  const std::size_t* receive_offsets;  ///< [members] in elements from the destination
};

/// The element type of a call.
struct ElementMark {
  ElementType type = ElementType::uint8;
  std::uint32_t untyped_bytes = 0;  ///< size of an element that has no ElementType; 0: `type` is valid
};

namespace detail {

/// Whether the operation has a root.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool has_root(Operation operation) {
  return contains(sends_of_root | receives_of_root, operation);
}

/// The `ElementMark` of T.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE constexpr ElementMark mark_of() {
  if constexpr (requires { ElementTraits<T>::type; })
    return {ElementTraits<T>::type};
  else
    return {.untyped_bytes = sizeof(T)};
}

/// Bits of `CallDescription::signature`.
inline constexpr std::uint32_t signature_bits = 16;

}  // namespace detail

/// The arguments that must be the same on all members of a call. The description has no addresses of vectors, which a
/// member chooses freely, and lengths that differ from peer to peer, which the members compare in pairs.
struct CallDescription {
  Operation operation = Operation::none;
  ElementMark element = {};
  Reduction reduction = Reduction::sum;
  Algorithm algorithm = Algorithm::automatic;
  std::uint32_t root = no_peer;  ///< `no_peer` if the operation has no root
  std::uint32_t slices = 1;      ///< blocks that share the call, each on its own session
  std::uint64_t count = 0;       ///< elements of the vector, or of each piece; 0 if lengths differ

  /// All fields except the count, packed into one word.
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t packed() const {
    return std::uint64_t{static_cast<std::uint32_t>(operation)} |
           std::uint64_t{static_cast<std::uint32_t>(element.type)} << 6 |
           std::uint64_t{static_cast<std::uint32_t>(reduction)} << 10 |
           std::uint64_t{static_cast<std::uint32_t>(algorithm)} << 13 | std::uint64_t{root & 0x3ff} << 20 |
           std::uint64_t{slices & 0x7ff} << 30 | std::uint64_t{element.untyped_bytes} << 41;
  }

  /// A hash of 16 bits that travels in the flags of the call's rounds (session.hpp). With it a member refuses data of
  /// another call, and data of an equal call that followed a different call. Two different calls have the same
  /// signature with a probability of 2^-16, over the random choice of the multipliers; equal calls after calls of
  /// different signatures always have different signatures. Source: multilinear hashing of words of 32 bits (Lemire and
  /// Kaser, "Strongly universal string hashing is fast").
  ///   previous  signature of the previous call; 0: no previous call
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t signature(std::uint32_t previous = 0) const {
    const std::uint64_t word = packed();
    const std::uint64_t sum = 0xf1518f9c3511cd13u + 0x485554a268c26d65u * static_cast<std::uint32_t>(word) +
                              0x8d78ca5a9f30ba31u * (word >> 32) +
                              0xa046ba500ef193d4u * static_cast<std::uint32_t>(count) +
                              0xf8621956bc5db043u * (count >> 32);
    // The factor is odd, so that different previous signatures give different results.
    const std::uint32_t chained = static_cast<std::uint32_t>(sum >> (64 - detail::signature_bits)) + 0x6d2bu * previous;
    return chained & ((1u << detail::signature_bits) - 1);
  }
};
static_assert(operations <= 64 && element_types <= 16 && reductions <= 8 && algorithms <= 128 && max_ranks <= 0x400);

/// The description with the word that `packed` returned and the count.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr CallDescription unpacked_call(std::uint64_t word, std::uint64_t count) {
  return {.operation = static_cast<Operation>(word & 0x3f),
          .element = {static_cast<ElementType>(word >> 6 & 0xf), static_cast<std::uint32_t>(word >> 41)},
          .reduction = static_cast<Reduction>(word >> 10 & 0x7),
          .algorithm = static_cast<Algorithm>(word >> 13 & 0x7f),
          .root = static_cast<std::uint32_t>(word >> 20 & 0x3ff),
          .slices = static_cast<std::uint32_t>(word >> 30 & 0x7ff),
          .count = count};
}

}  // namespace beeline
