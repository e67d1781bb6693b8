// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "beeline/core/version.hpp"
#include "beeline/runtime/device.hpp"
#include "beeline_commit.hpp"
#include "bindings.hpp"

namespace beeline::python {

void bind_build(nanobind::module_& module) {
  module.def(
      "_version",
      [] { return fmt::format("{}.{}.{}", BEELINE_VERSION_MAJOR, BEELINE_VERSION_MINOR, BEELINE_VERSION_PATCH); },
      "Version of the library in the module.");
  module.def(
      "_commit", [] { return BEELINE_COMMIT; },
      "The commit that was built, with -dirty behind it where files differed; empty: unknown.");
  module.def(
      "_host_name", [] { return host_device().name; }, "The CPU's name.");
}

}  // namespace beeline::python
