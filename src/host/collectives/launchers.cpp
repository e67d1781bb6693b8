// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/launchers.hpp"

#include "host/collectives/wide_reducer.hpp"

namespace beeline::detail {

namespace {

/// The result of `of`, a template over element types, for `type`; nullptr for an invalid type.
template <class Of>
auto for_elements(ElementType type, Of of) -> decltype(of.template operator()<float>()) {
  switch (type) {
    case ElementType::float32:
      return of.template operator()<float>();
    case ElementType::float64:
      return of.template operator()<double>();
    case ElementType::float16:
      return of.template operator()<Float16>();
    case ElementType::bfloat16:
      return of.template operator()<BFloat16>();
    case ElementType::int32:
      return of.template operator()<std::int32_t>();
    case ElementType::int64:
      return of.template operator()<std::int64_t>();
    case ElementType::uint8:
      return of.template operator()<std::uint8_t>();
    case ElementType::uint32:
      return of.template operator()<std::uint32_t>();
    case ElementType::uint64:
      return of.template operator()<std::uint64_t>();
  }
  return {};
}

/// The type whose kernels carry out the reduction.
ElementType kernel_type(ElementType type, Reduction reduction) {
  if (heeds_sign(reduction)) return type;
  return type == ElementType::uint32 ? ElementType::int32 : type == ElementType::uint64 ? ElementType::int64 : type;
}

}  // namespace

ReductionLaunchers reduction_launchers(ElementType type, Reduction reduction) {
  return for_elements(kernel_type(type, reduction), []<class T>() { return reduction_launchers_of<T>(); });
}

const WideReducer& wide_reducer(ElementType type) {
  return *for_elements(type, []<class T>() { return &wide_reducer_of<T>(); });
}

}  // namespace beeline::detail
