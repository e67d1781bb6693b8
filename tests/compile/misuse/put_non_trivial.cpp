// SPDX-License-Identifier: Apache-2.0
// expect: only trivially copyable elements travel as bytes
#include <string>

#include "beeline/device/group.hpp"
#include "beeline/device/put_get.hpp"

void misuse(const beeline::Thread& group, const beeline::Context& ctx, std::string* text) {
  beeline::put(group, ctx, text, text + 1, 1, 1);
}
