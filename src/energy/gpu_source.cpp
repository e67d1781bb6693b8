// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "beeline/energy/source.hpp"
#include "energy/nvml.hpp"

namespace beeline::energy {

namespace {

class GpuSource : public Source {
 public:
  GpuSource(Component component, std::shared_ptr<Nvml> nvml, Nvml::Device device)
      : Source(std::move(component)), nvml_(std::move(nvml)), device_(device) {}
  Reading read(std::int64_t /*now_ns*/) override {
    auto [joules, reason] = nvml_->joules(device_);
    if (!joules) return {.joules = {}, .watts = {}, .reason = fmt::format("{}: {}", component().name, reason)};
    return {joules, nvml_->watts(device_), {}};
  }
  std::optional<double> watts() override { return nvml_->watts(device_); }

 private:
  std::shared_ptr<Nvml> nvml_;
  Nvml::Device device_;
};

}  // namespace

Sources gpu_sources(const std::vector<std::string>& gpus, const std::string& library) {
  const auto nvml = std::make_shared<Nvml>(library);
  const std::vector<std::string> known = nvml->uuids();
  Sources sources;
  for (const std::string& uuid : gpus.empty() ? known : gpus) {
    Component component{.kind = Kind::gpu,
                        .name = fmt::format("gpu{}", sources.size()),
                        .device = uuid,
                        .tick_ns = 100'000'000,
                        .range_joules = {},
                        .most_watts = 2000};
    const auto [device, reason] = nvml->device(uuid);
    if (device)
      sources.push_back(std::make_unique<GpuSource>(std::move(component), nvml, *device));
    else
      sources.push_back(unreadable_source(std::move(component), fmt::format("{}: {}", uuid, reason)));
  }
  if (sources.empty())
    sources.push_back(unreadable_source({.kind = Kind::gpu, .name = "gpu", .device = {}, .range_joules = {}},
                                        nvml->reason().empty() ? "NVML shows no GPU" : nvml->reason()));
  return sources;
}

}  // namespace beeline::energy
