// SPDX-License-Identifier: Apache-2.0
#include "host/world/streams.hpp"

#include <fmt/format.h>

#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "transport/host_stream.hpp"

namespace beeline {

Streams::Streams(const Membership& membership, const Context& context, Grids& grids, const Routes& routes,
                 const std::function<bool(const void*)>& is_gpu_memory, StreamRoutes by_engine)
    : membership_(membership), context_(context), grids_(grids), routes_(routes), stream_routes_(std::move(by_engine)) {
  stream_routes_.route_to = [this](const void* address) { return routes_.of_copy(address); };
  stream_routes_.all_devices_reach = [this](const void* address) { return routes_.all_devices_reach(address); };
  stream_routes_.make_stream = [this](int index) {
    Device there = membership_.device();
    if (there.is_gpu()) there.index = index;
    return make_stream(there, context_, nullptr);
  };
  stream_routes_.pinned = membership.device().is_gpu();
  stream_routes_.is_beyond_engine = [this](const void* address) {
    return gpu_reach_ != nullptr && gpu_reach_->needed({address});
  };
  stream_routes_.carry_buffer = [this](const Stream& own) { return carry_buffer(own); };
  if (!membership.device().is_gpu() && membership.has_gpus()) {
    Device copier;
    copier.kind = DeviceKind::gpu, copier.index = membership.own().reaching_gpu;
    std::unique_ptr<Stream> copying;
    if (copier.index >= 0) copying = make_gpu_stream(copier, context, nullptr);
    const auto needs_copies = [&routes, is_gpu_memory](const void* address) {
      if (!is_gpu_memory(address)) return false;
      static_cast<void>(routes.of_kernel(address));  // throws for memory that this rank's GPU does not reach
      return true;
    };
    gpu_reach_ = std::make_unique<GpuReach>(needs_copies, std::move(copying));
  }
  copies_ = make();
  main_ = make();
  // Made now: later another rank's kernel may spin on a shared GPU, and then no stream can be made.
  if (membership.device().is_gpu()) blocking_.add(make());
}

void Streams::end() {
  main_.reset();
  {
    const std::lock_guard lock(copies_mutex_);
    copies_.reset();
  }
  blocking_.clear();
}

std::unique_ptr<Stream> Streams::make(StreamPriority priority) {
  const Device& device = membership_.device();
  if (gpu_reach_) return routed(make_host_stream(device, context_, grids_.lend(), gpu_reach_.get()));
  return routed(make_stream(device, context_, grids_.lend(), priority));
}

std::unique_ptr<Stream> Streams::make_waiting(const Context& context) {
  const Device& device = membership_.device();
  if (gpu_reach_) return routed(make_host_stream(device, context, nullptr, gpu_reach_.get()));
  return routed(make_stream(device, context, nullptr));
}

std::unique_ptr<Stream> Streams::adopt(void* native) {
  return routed(adopt_gpu_stream(membership_.device(), grids_.lend(), native));
}

std::unique_ptr<Stream> Streams::routed(std::unique_ptr<Stream> own) {
  return routes_.has_own_copies_only() ? std::move(own) : make_bounce_stream(std::move(own), stream_routes_);
}

std::span<std::byte> Streams::carry_buffer(const Stream& whose) {
  constexpr std::size_t bytes = std::size_t{1} << 20;
  const std::lock_guard lock(carry_mutex_);
  HostBuffer& buffer =
      carry_buffers_
          .try_emplace(&whose, bytes, membership_.device().is_gpu(), "for what a stream carries between nodes")
          .first->second;
  return {buffer.data(), buffer.bytes()};
}

void Streams::end_handed(bool has_failed) {
  try {
    if (has_failed) {
      main_->release_waits();
      handed_.release_waits();
    }
    handed_.end();
  } catch (const Error& error) {  // a GPU with a fault does not block the end
    log(LogLevel::error, fmt::format("leaving a failed world: {}", error.what()), membership_.rank());
  }
}

}  // namespace beeline
