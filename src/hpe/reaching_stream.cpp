// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <memory>
#include <utility>

#include "hpe/owners.hpp"
#include "hpe/reach.hpp"
#include "hpe/stream_state.hpp"
#include "transport/bounce_stream.hpp"
#include "transport/forwarding_stream.hpp"

namespace beeline::hpe::detail {

namespace {

// Numbers of devices in routes: GPUs by their index, then host devices, then the CPU that copies pageable memory.
constexpr int first_host_device = 1 << 16, cpu = 1 << 17;
constexpr std::size_t chunk_bytes = std::size_t{2} << 20;

int number_of(Device device) { return device.is_gpu() ? device.index() : first_host_device + device.index(); }

/// A GPU's stream whose copies are made by the CPU, in the order of the stream.
class CpuCopies final : public ForwardingStream<CpuCopies> {
 public:
  explicit CpuCopies(std::unique_ptr<beeline::Stream> own) : own_(std::move(own)) {}
  [[nodiscard]] beeline::Stream& own() const { return *own_; }
  void copy(void* destination, const void* source, std::size_t bytes) override {
    own_->enqueue([=] { std::memcpy(destination, source, bytes); });
  }

 private:
  const std::unique_ptr<beeline::Stream> own_;
};

Route route_to(Device device, const void* address) {
  const Owner owner = range_of(address).owner;
  if (is_direct(device, owner)) return {};
  return {.kind = RouteKind::copy, .device = owner.memory == Memory::pageable ? cpu : number_of(owner.device)};
}

std::unique_ptr<beeline::Stream> stream_by_number(DeviceState& device, int number) {
  if (number == cpu) return std::make_unique<CpuCopies>(make_stream(device.info(), device.context(), nullptr));
  const bool is_gpu = number < first_host_device;
  const DeviceState& other = Runtime::get().state_of(
      device_at(is_gpu ? DeviceKind::gpu : DeviceKind::host, is_gpu ? number : number - first_host_device));
  return make_stream(other.info(), other.context(), nullptr);
}

}  // namespace

bool is_direct(Device device, const Owner& owner) {
  if (owner.memory == Memory::device) return device.reaches(owner.device);
  if (owner.memory == Memory::managed) return device.is_gpu();
  return owner.memory == Memory::pinned || !device.is_gpu();
}

std::unique_ptr<beeline::Stream> make_reaching_stream(DeviceState& device, std::unique_ptr<beeline::Stream> own) {
  StreamRoutes routes;
  routes.route_to = [device = device.device()](const void* address) { return route_to(device, address); };
  routes.all_devices_reach = [](const void* address) {
    const Owner owner = range_of(address).owner;
    return owner.memory == Memory::pinned;
  };
  routes.make_stream = [&device](int number) { return stream_by_number(device, number); };
  routes.chunk_bytes = chunk_bytes;
  routes.pinned = Runtime::get().has_gpus();
  return make_bounce_stream(std::move(own), std::move(routes));
}

}  // namespace beeline::hpe::detail
