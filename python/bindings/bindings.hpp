// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The parts of the extension module `beeline._beeline`: one function for each source file.

#include <nanobind/nanobind.h>

#include "beeline/core/error.hpp"

namespace beeline::python {

void bind_build(nanobind::module_& module);
void bind_energy(nanobind::module_& module);
void bind_files(nanobind::module_& module);
void bind_errors(nanobind::module_& module);
void bind_stream(nanobind::module_& module);
void bind_memory(nanobind::module_& module);
void bind_messages(nanobind::module_& module);
void bind_signals(nanobind::module_& module);
void bind_team(nanobind::module_& module);
void bind_collectives(nanobind::module_& module);
void bind_hybrid_transfers(nanobind::module_& module);
void bind_objects(nanobind::module_& module);
void bind_put_batch(nanobind::module_& module);
void bind_staged_channel(nanobind::module_& module);
void bind_torch_calls(nanobind::module_& module);
void bind_memory_pool(nanobind::module_& module);
void bind_world(nanobind::module_& module);

/// Sets Python's error: an object of the class of `beeline.errors` for the error's code.
void set_python_error(const Error& error);

}  // namespace beeline::python
