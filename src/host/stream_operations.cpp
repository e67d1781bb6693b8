// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/stream_operations.hpp"

#include <algorithm>
#include <string>

#include "beeline/core/error.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/host/launch.hpp"
#include "beeline/host/world.hpp"
#include "host/carried_wait.hpp"
#include "host/ranges.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"
#include "transport/checks.hpp"

namespace beeline {

namespace {

/// Copy engines move more bytes than this: one block would then take longer than an engine's start.
constexpr std::size_t most_by_block = std::size_t{64} << 10;

/// The value for this run of a call. Every thread of the block calls it; thread 0 stores the new sequence.
template <class BlockGroup>
BEELINE_HOST_DEVICE std::uint64_t next_value(const BlockGroup& block, std::uint64_t* sequence, std::uint64_t value) {
  if (sequence == nullptr) return value;
  const std::uint64_t next = *sequence + value;
  block.sync();  // all threads have read the sequence
  if (block.thread_rank() == 0) *sequence = next;
  return next;
}

struct PutSignalKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, std::byte* destination, const std::byte* source,
                                      std::size_t bytes, SignalCall call, std::uint32_t peer) const {
    const auto& block = grid.block();
    const std::uint64_t value = next_value(block, call.sequence, call.value);
    // The failing operation records the failure. A call without bytes has no destination, which a put would check.
    if (bytes == 0 && call.adds)
      signal_add(block, ctx, call.signal, value, peer);
    else if (bytes == 0)
      signal(block, ctx, call.signal, value, peer);
    else if (call.adds)
      put_signal_add(block, ctx, destination, source, bytes, call.signal, value, peer);
    else
      put_signal(block, ctx, destination, source, bytes, call.signal, value, peer);
    // Later work of the stream may change the source.
    if (bytes > 0 && ctx.access_to(peer).access == PeerAccess::engine)
      static_cast<void>(detail::await_carried(block, ctx, Operation::flush, peer));
  }
};

struct WaitKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, WaitCall call) const {
    const auto& block = grid.block();
    const std::uint64_t value = next_value(block, call.sequence, call.value);
    static_cast<void>(wait(block, ctx, call.signal, Compare::greater_equal, value, call.peer));
  }
};

Stream& stream_of(Team& team, Stream* stream) { return stream == nullptr ? team.world().stream() : *stream; }

void check_sequence(const std::uint64_t* sequence, bool adds, const char* call) {
  require(sequence == nullptr || !adds, Status::invalid_argument,
          std::string(call) + ": a signal that is added to takes no sequence");
  check_signal(sequence);
}

/// Checks the call and returns the address of the signal on `peer`.
///   name  name of the function, for errors
std::uint64_t* signal_at(Team& team, const char* name, const SignalCall& call, int peer) {
  void* const there = detail::named_at(team, {name, "signal"}, call.signal, sizeof *call.signal, peer);
  check_signal(call.signal);
  check_sequence(call.sequence, call.adds, name);
  return static_cast<std::uint64_t*>(there);
}

/// Checks a put and returns the address of the destination on `peer`.
void* destination_at(Team& team, const char* name, void* destination, const void* source, std::size_t bytes, int peer) {
  void* const there = detail::named_at(team, {name, "destination"}, destination, bytes, peer);
  detail::require_extent(team.world(), {name, "source"}, source, bytes);
  return there;
}

bool is_fixed(const SignalCall& call) { return call.sequence == nullptr && !call.adds; }

/// Whether only the rank's engine reaches a member.
bool is_carried(Team& team, int peer) {
  return team.context().access_to(static_cast<std::uint32_t>(peer)).access == PeerAccess::engine;
}

/// Whether a kernel of this rank can store at `place`, or post the store to an engine.
bool kernels_reach(Team& team, int peer, const void* place) {
  return is_carried(team, peer) || world_part<Routes>(team.world()).of_kernel(place).is_direct();
}

void require_fixed(const SignalCall& call, const char* name) {
  require(is_fixed(call), Status::unreachable,
          std::string(name) +
              ": a kernel adds to a signal, or takes its value from a sequence, and kernels of this rank "
              "do not reach its place: no peer access to that GPU's memory");
}

}  // namespace

void put_on_stream(Team& team, void* destination, const void* source, std::size_t bytes, int peer, Stream* stream) {
  if (bytes == 0) return;
  void* const there = destination_at(team, "put_on_stream", destination, source, bytes, peer);
  team.world().copy(there, source, bytes, stream_of(team, stream));
}

void signal_on_stream(Team& team, int peer, const SignalCall& call) {
  Stream& stream = stream_of(team, call.stream);
  std::uint64_t* const signal = signal_at(team, "signal_on_stream", call, peer);
  if (is_fixed(call)) return stream.write_signal(signal, call.value);
  if (!kernels_reach(team, peer, signal)) require_fixed(call, "signal_on_stream");
  launch(team, {.threads = 32, .stream = &stream, .name = call.adds ? "signal_add" : "signal"}, PutSignalKernel{},
         static_cast<std::byte*>(nullptr), static_cast<const std::byte*>(nullptr), std::size_t{0}, call,
         static_cast<std::uint32_t>(peer));
}

void put_signal_on_stream(Team& team, void* destination, const void* source, std::size_t bytes, int peer,
                          const SignalCall& call) {
  Stream& stream = stream_of(team, call.stream);
  std::uint64_t* const signal = signal_at(team, "put_signal_on_stream", call, peer);
  auto* to = static_cast<std::byte*>(destination);
  void* const there =
      bytes == 0 ? nullptr : destination_at(team, "put_signal_on_stream", destination, source, bytes, peer);
  if (is_fixed(call)) refuse_captured(stream, "a signal with a fixed value", fixed_in_graphs);
  const bool by_kernel = kernels_reach(team, peer, signal) && (bytes == 0 || kernels_reach(team, peer, there));
  if (!by_kernel) {
    require_fixed(call, "put_signal_on_stream");
    put_on_stream(team, destination, source, bytes, peer, &stream);
    return stream.write_signal(signal, call.value);
  }
  if (bytes > most_by_block && !is_carried(team, peer)) {
    put_on_stream(team, destination, source, bytes, peer, &stream);
    bytes = 0;
  }
  const bool waits = bytes > 0 && is_carried(team, peer);
  const std::size_t moving = waits ? 0 : bytes;
  const auto threads = static_cast<unsigned>(std::clamp<std::size_t>((moving + 511) / 512 * 32, 32, 512));
  launch(team,
         {.threads = threads, .waits = waits, .stream = &stream, .name = call.adds ? "put_signal_add" : "put_signal"},
         PutSignalKernel{}, to, static_cast<const std::byte*>(source), bytes, call, static_cast<std::uint32_t>(peer));
}

namespace {

/// Whether a kernel, not the GPU's front end, waits also for fixed values: a waiting front end may block other streams,
/// among them an engine's stream that stores the signal.
bool is_awaited_by_kernel(Team& team, const Stream& stream) {
  return stream.device().is_gpu() && team.context().has_routes != 0;
}

/// As `Stream::wait_signal`, with an error that names the peer.
void wait_on_host_stream(Team& team, Stream& stream, const WaitCall& call) {
  const auto peer = static_cast<std::uint32_t>(team.world_rank(static_cast<int>(call.peer)));
  stream.enqueue([&context = team.world().host_context(), signal = call.signal, value = call.value, peer] {
    const Status status = wait(Thread{}, context, signal, Compare::greater_equal, value, peer);
    if (status != Status::ok) throw Error(status, "a stream's wait for a signal");
  });
}

}  // namespace

void wait_on_stream(Team& team, const WaitCall& call) {
  Stream& stream = stream_of(team, call.stream);
  require(call.signal != nullptr, Status::invalid_argument, "wait_on_stream: a null address");
  require(call.peer == no_peer || call.peer < static_cast<std::uint32_t>(team.size()), Status::invalid_argument,
          "wait_on_stream: peer " + std::to_string(call.peer) + " of a team of " + std::to_string(team.size()));
  check_signal(call.signal);
  check_sequence(call.sequence, false, "wait_on_stream");
  if (call.sequence == nullptr && is_awaited_by_kernel(team, stream)) {
    refuse_captured(stream, "a wait for a signal with a fixed value", fixed_in_graphs);
  } else if (call.sequence == nullptr) {
    if (stream.device().is_gpu() || call.peer == no_peer)
      return stream.wait_signal(const_cast<std::uint64_t*>(call.signal), call.value);
    return wait_on_host_stream(team, stream, call);
  }
  launch(team, {.threads = 32, .waits = true, .stream = &stream, .name = "wait"}, WaitKernel{}, call);
}

}  // namespace beeline
