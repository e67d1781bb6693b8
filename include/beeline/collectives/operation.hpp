// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a call of a collective says of itself to the other members.

#include <cstddef>
#include <cstdint>

#include "beeline/collectives/reduction.hpp"
#include "beeline/core/layout.hpp"
#include "beeline/core/registry.hpp"

namespace beeline {

/// Pieces whose lengths differ from peer to peer, in elements. In memory that the calling threads can read, unchanged
/// until the call has ended. What a member receives from a peer is as long as what that peer sends to it.
/// Source: MPI 4.0, 6.8, MPI_Alltoallv.
struct PieceTable {
  const std::size_t* send_counts;      ///< [members]
  const std::size_t* send_offsets;     ///< [members] from the source
  const std::size_t* receive_counts;   ///< [members]
  const std::size_t* receive_offsets;  ///< [members] from the destination
};

/// What the elements of a call are.
struct ElementMark {
  ElementType type = ElementType::uint8;
  std::uint32_t untyped_bytes = 0;  ///< of an element that has no ElementType; 0: `type` says it
};

namespace detail {

/// Whether one member has a part of its own.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool has_root(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::scatter || operation == Operation::gather ||
         operation == Operation::reduce;
}

/// The mark of elements of T.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE constexpr ElementMark mark_of() {
  if constexpr (requires { ElementTraits<T>::type; })
    return {ElementTraits<T>::type};
  else
    return {.untyped_bytes = sizeof(T)};
}

}  // namespace detail

/// What all members of a call have in common.
struct CallSignature {
  Operation operation = Operation::none;
  ElementType type = ElementType::uint8;
  std::uint32_t untyped_bytes = 0;  ///< of an element that has no ElementType; 0: `type` says it
  Reduction reduction = Reduction::sum;
  Algorithm algorithm = Algorithm::automatic;  ///< of a barrier, the number of its Algorithm
  std::uint32_t root = 0;                      ///< or `no_peer`
  std::uint32_t slices = 1;                    ///< blocks that share the call, each on a session of its own
  std::uint64_t count = 0;                     ///< elements on this session

  /// All but the count.
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t packed() const {
    return std::uint64_t{static_cast<std::uint32_t>(operation)} | std::uint64_t{static_cast<std::uint32_t>(type)} << 6 |
           std::uint64_t{static_cast<std::uint32_t>(reduction)} << 9 |
           std::uint64_t{static_cast<std::uint32_t>(algorithm)} << 12 | std::uint64_t{root & 0xff} << 20 |
           std::uint64_t{slices & 0xfff} << 28 | std::uint64_t{untyped_bytes} << 40;
  }
};
static_assert(operations <= 64 && element_types <= 8 && reductions <= 8 && max_ranks <= 0xff);

/// The signature that `packed` said, but for its count.
[[nodiscard]] constexpr CallSignature unpacked_call(std::uint64_t word) {
  return {.operation = static_cast<Operation>(word & 0x3f),
          .type = static_cast<ElementType>(word >> 6 & 0x7),
          .untyped_bytes = static_cast<std::uint32_t>(word >> 40),
          .reduction = static_cast<Reduction>(word >> 9 & 0x7),
          .algorithm = static_cast<Algorithm>(word >> 12 & 0xff),
          .root = static_cast<std::uint32_t>(word >> 20 & 0xff),
          .slices = static_cast<std::uint32_t>(word >> 28 & 0xfff),
          .count = 0};
}

}  // namespace beeline
