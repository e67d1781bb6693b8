// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

#include "bindings.hpp"

NB_MODULE(_beeline, module) {
  module.doc() = "Beeline's library. Use it through the package `beeline`.";
  // A program that ends by an exception leaves objects behind, which is no fault of the bindings.
  nanobind::set_leak_warnings(false);
  beeline::python::bind_errors(module);
  beeline::python::bind_stream(module);
  beeline::python::bind_memory(module);
  beeline::python::bind_team(module);
  beeline::python::bind_world(module);
  beeline::python::bind_collectives(module);
  beeline::python::bind_messages(module);
  beeline::python::bind_signals(module);
  beeline::python::bind_staged_channel(module);
  beeline::python::bind_hybrid_transfers(module);
  beeline::python::bind_put_batch(module);
  beeline::python::bind_objects(module);
  beeline::python::bind_torch_calls(module);
  beeline::python::bind_memory_pool(module);
  beeline::python::bind_files(module);
  beeline::python::bind_energy(module);
  beeline::python::bind_build(module);
}
