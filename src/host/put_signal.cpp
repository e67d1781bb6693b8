// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/put_signal.hpp"

#include <algorithm>

#include "beeline/device/put_get.hpp"
#include "beeline/host/launch.hpp"
#include "beeline/host/world.hpp"

namespace beeline {

namespace {

/// More than this copy engines move: one block would take longer than they take to start.
constexpr std::size_t most_by_block = std::size_t{64} << 10;

struct PutSignalKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::byte* destination, const std::byte* source,
                                      std::size_t bytes, SignalCall call, std::uint32_t peer) const {
    // What fails is recorded where it fails.
    if (call.adds)
      put_signal_add(grid.block(), ctx, destination, source, bytes, call.signal, call.value, peer);
    else
      put_signal(grid.block(), ctx, destination, source, bytes, call.signal, call.value, peer);
  }
};

}  // namespace

void put_signal_on_stream(Team& team, void* destination, const void* source, std::size_t bytes, int peer,
                          const SignalCall& call) {
  static_cast<void>(team.at(call.signal, peer));
  auto* to = static_cast<std::byte*>(destination);
  if (bytes != 0) static_cast<void>(team.at(to, peer));
  if (bytes > most_by_block && team.context().has_routes == 0) {
    Stream& stream = call.stream == nullptr ? team.world().stream() : *call.stream;
    team.world().copy(team.at(to, peer), source, bytes, stream);
    bytes = 0;
  }
  const auto threads = static_cast<unsigned>(std::clamp<std::size_t>((bytes + 511) / 512 * 32, 32, 512));
  launch(team, {.threads = threads, .stream = call.stream, .name = call.adds ? "put_signal_add" : "put_signal"},
         PutSignalKernel{}, to, static_cast<const std::byte*>(source), bytes, call, static_cast<std::uint32_t>(peer));
}

}  // namespace beeline
