// SPDX-License-Identifier: Apache-2.0
// The correct form of each mistake in this folder. It compiles, so the other files fail for their own reason.
#include "beeline/device/atomic.hpp"
#include "beeline/device/group.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/host/launch.hpp"
#include "beeline/runtime/file_descriptor.hpp"

struct Fill {
  template <class Grid>
  void operator()(Grid&, const beeline::Context&, double*, int) const {}
};

beeline::Status correct(const beeline::Thread& group, const beeline::Context& ctx, double* data, std::uint64_t* signal,
                        beeline::World& world) {
  beeline::launch(world, {}, Fill{}, data, 3);
  beeline::put(group, ctx, data, data + 8, 8, 1);
  beeline::put_value(ctx, data, 1.0, 1);
  const beeline::FileDescriptor moved = beeline::FileDescriptor(-1);
  std::uint64_t before = 0;
  if (beeline::atomic_fetch_add(ctx, signal, 1, 1, before) != beeline::Status::ok) return beeline::Status::internal;
  if (beeline::exchange(ctx, signal, 0, before) != beeline::Status::ok) return beeline::Status::internal;
  return beeline::wait(group, ctx, signal, beeline::Compare::equal, 1);
}
