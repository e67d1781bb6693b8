// SPDX-License-Identifier: Apache-2.0
// Blocking copies: by CPU threads, by a device, by the engine.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "beeline/device/put_get.hpp"
#include "host/profiler_range.hpp"
#include "host/ranges.hpp"
#include "host/world_implementation.hpp"
#include "transport/checks.hpp"

namespace beeline {

void World::Implementation::zero(void* address, std::size_t bytes) {
  if (!membership->device().is_gpu()) {
    std::memset(address, 0, bytes);
    return;
  }
  streams->of_copies()->fill(address, 0, bytes);
  await_work("zeroing memory", *streams->of_copies(), config.deadline_ns);
}

void World::Implementation::write(void* destination, const void* source, std::size_t bytes) {
  if (!moves_anything(destination, source, bytes)) return;
  const bool by_stream = membership->device().is_gpu() || routes->has_staged_copies();
  const GpuReach* const reach = streams->gpu_reach();
  if (!by_stream && reach == nullptr && engines->of_peers() == nullptr) {
    std::memcpy(destination, source, bytes);
    return;
  }
  Stream* used = nullptr;
  memory->for_pieces(destination, source, bytes, [&](std::byte* to, const std::byte* from, std::size_t piece) {
    if (routes->needs_engine(to) || routes->needs_engine(from)) return copy_by_engine(to, from, piece);
    if (!by_stream && (reach == nullptr || !reach->needed({to, from}))) {
      std::memcpy(to, from, piece);
      return;
    }
    used = by_stream ? streams->of_copies() : &reach->stream();
    used->copy(to, from, piece);
  });
  if (used != nullptr) await_work("a copy", *used, config.stream_deadline_ns);
}

void World::Implementation::read_from(int other, void* to, const void* at, std::size_t bytes) {
  if (membership->is_local(other))
    std::memcpy(to, at, bytes);
  else
    copy_by_engine(to, at, bytes);
}

bool World::Implementation::read_soon(int other, void* to, const void* at, std::size_t bytes) {
  constexpr std::uint64_t longest_ns = 1'000'000'000;
  WaitTable unused{};  // errors of the program do not list this wait
  std::uint32_t claims = 0;
  Context asking = contexts->host();
  asking.deadline_ns = std::min(asking.deadline_ns, longest_ns);
  asking.waits = unused.records, asking.wait_claims = &claims;
  std::vector<std::byte> buffer(bytes);
  const detail::Request request = detail::move_request(false, static_cast<std::uint32_t>(other));
  const Status status =
      detail::move_by_engine(Thread{}, asking, request, QueueId{}, at, {buffer.data(), 1, buffer.size(), 0, 0});
  if (status == Status::deadline) {
    engines->abandon(std::move(buffer));  // the engine may still write to it
    return false;
  }
  std::memcpy(to, buffer.data(), bytes);  // zeros, unless the data have arrived
  return true;
}

/// Throws if the engine has refused an operation of CPU threads, so that its caller gets the error at once.
void World::Implementation::require_not_refused() const {
  const CommandRing& ring = *contexts->host().routes->queue(QueueId{}.index).ring;
  if (detail::load_acquired(ring.refused.value) == 0) return;
  const RefusedCommand& first = memory->areas().host_header()->refused_command;
  const bool is_known = detail::load_acquired(first.complete) != 0;
  throw Error(Status::invalid_argument, is_known ? first.text : "this rank's engine refused an operation", rank());
}

void World::Implementation::copy_by_engine(void* destination, const void* source, std::size_t bytes) {
  const Context& ctx = contexts->host();
  // An abort ends neither wait: the caller could then free memory that the engine still uses.
  const auto carry = [&](Verb verb, const void* remote, const void* local, std::size_t count) {
    const detail::Request request = detail::move_request(verb == Verb::put, ctx.owner_of(remote));
    Status status = detail::move_by_engine(Thread{}, ctx, request, QueueId{}, remote, {local, 1, count, 0, 0});
    if (status == Status::ok && verb == Verb::put)
      status = detail::drain_route(Thread{}, ctx, Operation::quiet, QueueId{}, false);
    if (status != Status::ok) failures->fail(status, Teams::world_id);
    require_not_refused();
  };
  const bool to_remote = routes->needs_engine(destination), from_remote = routes->needs_engine(source);
  if (to_remote) destination = memory->named_in_slot(destination);
  if (from_remote) source = memory->named_in_slot(const_cast<void*>(source));
  const std::size_t most = std::min(bytes, config.chunk_bytes);  // each piece has a deadline of its own
  // The engine of a host rank does not access GPU memory.
  const GpuReach* const reach = to_remote != from_remote ? streams->gpu_reach() : nullptr;
  const bool is_by_gpu = reach != nullptr && reach->needed({to_remote ? source : destination});
  const auto copy_by_gpu = [&](void* to, const void* from, std::size_t count) {
    reach->stream().copy(to, from, count);
    await_work("a copy", reach->stream(), config.stream_deadline_ns);
  };
  std::vector<std::byte> bounce((to_remote && from_remote) || is_by_gpu ? most : 0);
  try {
    for (std::size_t done = 0; done < bytes; done += most) {
      const std::size_t piece = std::min(most, bytes - done);
      auto* const to = static_cast<std::byte*>(destination) + done;
      const auto* const from = static_cast<const std::byte*>(source) + done;
      if (from_remote) carry(Verb::get, from, bounce.empty() ? to : bounce.data(), piece);
      if (is_by_gpu && to_remote) copy_by_gpu(bounce.data(), from, piece);
      if (is_by_gpu && from_remote) copy_by_gpu(to, bounce.data(), piece);
      if (to_remote) carry(Verb::put, to, bounce.empty() ? from : bounce.data(), piece);
    }
  } catch (...) {
    engines->abandon(std::move(bounce));
    throw;
  }
}

void World::Implementation::publish_addresses() {
  const std::unique_ptr<AddressTable> table = memory->addresses().snapshot();
  write(&memory->areas().heap_header()->addresses, table.get(), sizeof *table);
}

void World::copy(void* destination, const void* source, std::size_t bytes) {
  const detail::ProfilerRange range("copy");
  implementation_->process.require();
  detail::require_extent(*this, {"copy", "destination"}, destination, bytes);
  detail::require_extent(*this, {"copy", "source"}, source, bytes);
  implementation_->write(destination, source, bytes);
}

void World::copy(void* destination, const void* source, std::size_t bytes, Stream& stream) {
  const detail::ProfilerRange range("copy on a stream");
  implementation_->process.require();
  detail::require_extent(*this, {"copy", "destination"}, destination, bytes);
  detail::require_extent(*this, {"copy", "source"}, source, bytes);
  if (!moves_anything(destination, source, bytes)) return;
  implementation_->memory->for_pieces(
      destination, source, bytes,
      [&stream](std::byte* to, const std::byte* from, std::size_t piece) { stream.copy(to, from, piece); });
}

}  // namespace beeline
