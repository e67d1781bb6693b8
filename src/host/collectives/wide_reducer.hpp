// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reduction on a CPU in steps: partial results keep the wide type of the accumulation, and are rounded once, at the
/// end.

#include <cstddef>
#include <cstdint>

#include "beeline/collectives/impl/combine_on_host.hpp"

namespace beeline::detail {

/// The steps for one element type. `wide` points to partial results of `wide_bytes` each.
struct WideReducer {
  std::size_t wide_bytes;
  void (*start)(void* wide, const void* elements, std::size_t count);
  void (*add)(Reduction reduction, void* wide, const void* elements, std::size_t count);
  void (*merge)(Reduction reduction, void* wide, const void* other, std::size_t count);
  void (*finish)(Reduction reduction, std::uint32_t members, void* wide, void* elements, std::size_t count);
};

/// The steps for a valid element type.
[[nodiscard]] const WideReducer& wide_reducer(ElementType type);

template <class T>
[[nodiscard]] const WideReducer& wide_reducer_of() {
  using Wide = Accumulator<T>;
  static constexpr WideReducer reducer{
      sizeof(Wide),
      [](void* wide, const void* elements, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
          static_cast<Wide*>(wide)[i] = ElementTraits<T>::widen(static_cast<const T*>(elements)[i]);
      },
      [](Reduction reduction, void* wide, const void* elements, std::size_t count) {
        add_block(reduction, static_cast<Wide*>(wide), static_cast<const T*>(elements), count);
      },
      [](Reduction reduction, void* wide, const void* other, std::size_t count) {
        const auto each = [&](Reduction known) {
          for (std::size_t i = 0; i < count; ++i)
            static_cast<Wide*>(wide)[i] =
                combine(known, static_cast<Wide*>(wide)[i], static_cast<const Wide*>(other)[i]);
        };
        adds(reduction) ? each(Reduction::sum) : each(reduction);
      },
      [](Reduction reduction, std::uint32_t members, void* wide, void* elements, std::size_t count) {
        auto* const from = static_cast<Wide*>(wide);
        if (reduction == Reduction::average)
          for (std::size_t i = 0; i < count; ++i) from[i] = static_cast<Wide>(from[i] / static_cast<Wide>(members));
        for (std::size_t i = 0; i < count; ++i) static_cast<T*>(elements)[i] = ElementTraits<T>::narrow(from[i]);
      }};
  return reducer;
}

}  // namespace beeline::detail
