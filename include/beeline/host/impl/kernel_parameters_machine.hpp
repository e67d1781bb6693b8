// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Kernels that take large structures by value.
///
/// nvcc 13.0 miscompiles some functors that take a structure of more than 128 bytes by value and never change it: it
/// leaves out their copy, but loads from its addresses as if they were in local memory. In PTX:
///
///     cvta.param.u64     %a, parameter;
///     cvta.to.local.u64  %b, %a;          // wrong: parameters are not in local memory
///     ld.local.u64       %c, [%b];        // an illegal memory access
///
/// It keeps the copy if it does not know that the original is a parameter.

#include <cstddef>
#include <type_traits>

#include "beeline/device/context.hpp"
#include "beeline/device/grid.hpp"

namespace beeline::detail {

#if BEELINE_COMPILES_CUDA

/// nvcc copies structures up to this size in registers.
inline constexpr std::size_t safe_parameter_bytes = 128;

/// Types of a functor's parameters after the context.
template <class... Types>
struct ParameterTypes {};
template <class Kernel, class Result, class... Types>
ParameterTypes<Types...> parameter_types(Result (Kernel::*)(Grid<Block>&, const Context&, Types...) const);
template <class Kernel, class Result, class... Types>
ParameterTypes<Types...> parameter_types(Result (Kernel::*)(const Grid<Block>&, const Context&, Types...) const);

/// The same for a functor whose types are not known, as if it took all by value.
template <class Kernel, class... Args>
[[nodiscard]] constexpr auto parameters_of() {
  if constexpr (requires { parameter_types(&Kernel::template operator()<Grid<Block>>); })
    return decltype(parameter_types(&Kernel::template operator()<Grid<Block>>)){};
  else
    return ParameterTypes<Args...>{};
}

template <class Taken, class Parameter>
inline constexpr bool is_large_copy = !std::is_reference_v<Taken> && sizeof(Parameter) > safe_parameter_bytes;

template <class... Types, class... Args>
[[nodiscard]] constexpr bool has_large_copies(ParameterTypes<Types...> /*taken*/, ParameterTypes<Args...> /*given*/) {
  return (false || ... || is_large_copy<Types, Args>);
}
/// Whether a functor copies a large structure. Kernels whose PTX was searched for the pattern above, by the compiler
/// that they are built with, say so by a constant `has_sound_copies`, since the detour costs registers.
template <class Kernel, class... Args>
[[nodiscard]] constexpr bool copies_parameters() {
  if constexpr (requires { Kernel::has_sound_copies; })
    return !Kernel::has_sound_copies;
  else
    return has_large_copies(parameters_of<Kernel, Args...>(), ParameterTypes<Args...>{});
}

/// The parameter, at an address about which the compiler knows nothing.
template <class Parameter>
[[nodiscard]] __device__ __forceinline__ const Parameter& unknown_origin(const Parameter& parameter) {
  const Parameter* address = &parameter;
  asm("" : "+l"(address));
  return *address;
}

#endif

}  // namespace beeline::detail
