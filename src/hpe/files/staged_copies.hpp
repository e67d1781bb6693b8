// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Copies between buffers of a transfer and the memory of its caller.

#include <cstddef>
#include <memory>

#include "beeline/hpe/memory.hpp"
#include "beeline/hpe/stream.hpp"

namespace beeline::hpe::detail {

/// One copy for each slot at a time.
class StagedCopies {
 public:
  virtual ~StagedCopies() = default;
  /// Begins a copy, and returns whether it has ended already. Throws invalid_argument if the caller's memory is not
  /// there.
  [[nodiscard]] virtual bool start(unsigned slot, std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// Whether the slot's copy has ended.
  [[nodiscard]] virtual bool is_done(unsigned slot) = 0;
  /// Waits until no copy uses the buffers; returns whether that is so.
  [[nodiscard]] virtual bool settle() noexcept = 0;
};

/// Copies by the calling thread. Memory that was unmapped is refused, and no fault.
[[nodiscard]] std::unique_ptr<StagedCopies> make_host_copies();
/// Copies in the order of `stream`, of memory of its device or of an object.
[[nodiscard]] std::unique_ptr<StagedCopies> make_stream_copies(Stream& stream, unsigned slots);

}  // namespace beeline::hpe::detail
