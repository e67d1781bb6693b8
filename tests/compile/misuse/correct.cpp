// SPDX-License-Identifier: Apache-2.0
// The correct forms of what the other files here get wrong: it compiles, so that they fail for their own reason.
#include "beeline/device/atomic.hpp"
#include "beeline/device/group.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/runtime/file_descriptor.hpp"

beeline::Status correct(const beeline::Thread& group, const beeline::Context& ctx, double* data,
                        std::uint64_t* signal) {
  beeline::put(group, ctx, data, data + 8, 8, 1);
  beeline::put_value(ctx, data, 1.0, 1);
  beeline::atomic_fetch_add(ctx, signal, 1, 1);
  const beeline::FileDescriptor moved = beeline::FileDescriptor(-1);
  return beeline::wait(group, ctx, signal, beeline::Compare::equal, 1);
}
