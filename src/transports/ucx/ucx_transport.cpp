// SPDX-License-Identifier: Apache-2.0
// UCX's row in the table of transports: whether this machine has UCX, and settings that suit the network between the
// nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <iterator>

#include "beeline/core/error.hpp"
#include "beeline/core/layout.hpp"
#include "core/environment.hpp"
#include "transports/transport.hpp"
#include "transports/ucx/ucx_worker.hpp"

namespace beeline {

namespace {

/// By default UCX announces messages from some 8 KiB on and sends their data when the target has answered. Over TCP
/// this takes 80 us longer than sending at once, and is quicker only from 256 KiB on. From some 16 KiB on, sending
/// straight from the source (zero copy) is quicker than copying into UCX's buffers. Each segment takes a system call.
/// UCX's own segments are of 64 KiB where it receives and of 8 KiB where it copies; UCX 1.22 copies all that it
/// announces.
constexpr UcxSetting tcp_settings[] = {
    {"RNDV_THRESH", "256k"}, {"ZCOPY_THRESH", "16k"}, {"TCP_RX_SEG_SIZE", "160k"}, {"TCP_TX_SEG_SIZE", "160k"}};

/// UCX probes connections that have been idle for 10 s, and closes one if several probes, 2 s apart, are not answered.
/// 512 ranks on one machine, whose connections are all probed at once, lost each other during set-up; without probes
/// they do not. A rank that vanishes is found by the rendezvous, and by the deadline of each wait.
constexpr UcxSetting without_probes = {"TCP_KEEPIDLE", "inf"};

/// The devices that UCX is limited to, separated by commas; empty if UCX chooses. Devices for RDMA are left to UCX.
std::string ucx_devices(const NetworkPlan& plan) {
  if (plan.is_one_host) return "lo";
  std::vector<std::string> names;
  if (plan.is_tcp_alone)
    for (const NetworkDevice& device : plan.devices) names.push_back(device.name);
  return fmt::format("{}", fmt::join(names, ","));
}

/// A value in the environment takes precedence.
std::string ucx_devices_text(const NetworkPlan& plan) {
  if (const char* const chosen = std::getenv("UCX_NET_DEVICES"); chosen != nullptr)
    return fmt::format("UCX_NET_DEVICES={}", chosen);
  if (plan.is_one_host) return "lo";
  return plan.is_tcp_alone && !plan.devices.empty() ? text_of(plan.devices) : "what UCX chooses";
}

std::vector<UcxSetting> ucx_settings_for(const NetworkPlan& plan, const std::string& devices) {
  std::vector<UcxSetting> settings;
  if (plan.is_tcp_alone) settings.assign(std::begin(tcp_settings), std::end(tcp_settings));
  if (plan.is_tcp_alone && plan.node_of.size() > max_node_ranks) settings.push_back(without_probes);
  // otherwise UCX would use the machine's shared memory
  if (plan.is_split) settings.push_back({"TLS", plan.gives_device_memory() ? "tcp,cuda_copy" : "tcp"});
  if (!devices.empty()) settings.push_back({"NET_DEVICES", devices.c_str()});
  if (plan.prefers_ipv6) settings.push_back({"TCP_AF_PRIO", "inet6,inet"});
  return settings;
}

/// If UCX registers memory, it hooks the calls that unmap memory, for the whole process: so it registers only for keys.
bool may_have_keys(const NetworkPlan& plan) {
  if (plan.keys != MemoryKeys::automatic) return plan.keys == MemoryKeys::always;
  return !plan.is_tcp_alone || detail::environment("UCX_TLS").value_or("tcp") != "tcp";
}

std::string ucx_reason() {
  try {
    static_cast<void>(ucx());
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::string ucx_warning() {
  if (ucx().unguarded.empty()) return {};
  return fmt::format("processes of other users of a rank's machine can write to its memory: {}", ucx().unguarded);
}

std::unique_ptr<TransportWorker> open_ucx_worker(const NetworkPlan& plan, const TransportSettings&,
                                                 WorkerEvents& events) {
  const std::string devices = ucx_devices(plan);
  auto worker = std::make_unique<UcxWorker>(events, ucx_settings_for(plan, devices), may_have_keys(plan));
  require(!plan.gives_device_memory() || worker->has_gpu_memory(), Status::unavailable,
          fmt::format("BEELINE_GPU_PAYLOADS=ucx, and UCX {} has no transport for GPU memory here: install one that has "
                      "cuda_copy (PyPI's libucx-cu13, with BEELINE_UCX), name it in UCX_TLS if that is set, or leave "
                      "payloads staged",
                      ucx().version));
  return worker;
}

}  // namespace

extern const TransportRow ucx_transport;
constinit const TransportRow ucx_transport = {.name = "ucx",
                                              .reason = ucx_reason,
                                              .device_memory = true,
                                              .label = [] { return fmt::format("UCX {}", ucx().version); },
                                              .devices = ucx_devices_text,
                                              .how_to_choose_devices = "UCX_NET_DEVICES chooses others",
                                              .warning = ucx_warning,
                                              .open = open_ucx_worker};

}  // namespace beeline
