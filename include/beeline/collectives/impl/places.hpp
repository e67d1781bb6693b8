// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Copies with several destinations.

#include "beeline/device/put_get.hpp"

namespace beeline::detail {

/// Copies to up to `most` destinations at once: each word is loaded once.
class Places {
 public:
  static constexpr unsigned most = 3;

  BEELINE_HOST_DEVICE void add(std::byte* place) {
    BEELINE_UNROLL
    for (unsigned k = 0; k < most; ++k)  // with constant indices the array is in registers
      if (k == count_) to_[k] = place;
    bits_ |= reinterpret_cast<std::uintptr_t>(place), ++count_;
  }
  /// Copies with all threads of the group.
  template <class Group>
  BEELINE_HOST_DEVICE void copy(const Group& group, const std::byte* from, std::size_t bytes) const {
    const bool is_aligned = ((bits_ | reinterpret_cast<std::uintptr_t>(from) | bytes) & 15u) == 0;
    if (executor == DeviceKind::gpu && is_aligned) return copy_words(group, from, bytes / 16);
    BEELINE_UNROLL
    for (unsigned k = 0; k < most; ++k)
      if (k < count_) copy_bytes(group, to_[k], from, bytes);
  }

 private:
  template <class Group>
  BEELINE_HOST_DEVICE void copy_words(const Group& group, const std::byte* from, std::size_t words) const {
    constexpr unsigned at_once = 4;  // loads in flight
    const std::size_t threads = group.size();
    std::size_t i = group.thread_rank();
    BEELINE_NO_UNROLL
    for (; i + (at_once - 1) * threads < words; i += at_once * threads) copy_some<at_once>(from, i, threads);
    BEELINE_NO_UNROLL
    for (; i < words; i += threads) copy_some<1>(from, i, threads);
  }
  template <unsigned some>
  BEELINE_INLINE BEELINE_HOST_DEVICE void copy_some(const std::byte* from, std::size_t i, std::size_t threads) const {
    machine::Word16 words[some];
    BEELINE_UNROLL
    for (unsigned n = 0; n < some; ++n) words[n] = machine::load_as<machine::Word16>(from + 16 * (i + n * threads));
    BEELINE_UNROLL
    for (unsigned k = 0; k < most; ++k) {
      if (k >= count_) break;
      BEELINE_UNROLL
      for (unsigned n = 0; n < some; ++n) machine::store_as(to_[k] + 16 * (i + n * threads), words[n]);
    }
  }

  std::byte* to_[most] = {};
  unsigned count_ = 0;
  std::uintptr_t bits_ = 0;
};

}  // namespace beeline::detail
