// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `beeline.Signals`, as other objects use it.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "joined_world.hpp"

namespace beeline::python {

/// The symmetric address of a signal. Throws TypeError for an object that is no `beeline.Signals`, ValueError for
/// signals of another world, IndexError.
[[nodiscard]] std::uint64_t* signal_of(const nanobind::object& signals, std::size_t index,
                                       const std::shared_ptr<JoinedWorld>& world);

}  // namespace beeline::python
