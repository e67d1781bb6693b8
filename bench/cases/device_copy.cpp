// SPDX-License-Identifier: Apache-2.0
/// @file
/// A copy by the copy engine that a kernel starts, beside stores and loads. Source: seed 000 section 6.6.2.

#include "beeline/core/error.hpp"
#include "cases/cases.hpp"

namespace beeline::bench {

Case device_copy() {
  return {"copy", "proxy/copy_engine/signal", false, [](Session&, std::uint64_t) -> std::vector<Measurement> {
            throw Error(Status::unavailable,
                        "a kernel cannot start the copy engine by itself, and there is no proxy that does it for it");
          }};
}

}  // namespace beeline::bench
