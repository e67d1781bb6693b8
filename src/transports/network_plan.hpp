// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The nodes and hosts of a world's ranks, and how the ranks may communicate.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "transports/network_devices.hpp"

namespace beeline {

struct NetworkPlan {
  int rank = 0;
  std::vector<int> node_of;     ///< [ranks]
  std::vector<int> host_of;     ///< [ranks] several nodes may be parts of one host
  std::string meeting_point;    ///< host:port of the rendezvous; empty: the ranks are on this host
  std::vector<bool> is_staged;  ///< [ranks] whether the rank's memory is read and written through buffers
  std::uint64_t world = 0;      ///< secret that the world's ranks have in common
  bool is_split = false;        ///< the nodes are parts of one machine, whose shared memory is not to be used
  std::string transports;       ///< as `Config::transports`
  bool is_secure = false;       ///< connections between nodes are encrypted
  std::string token;            ///< as `Config::token`
  MemoryKeys keys = MemoryKeys::automatic;
  GpuPayloads gpu_payloads = GpuPayloads::staged;
  bool is_gpu = false;  ///< whether this rank's device is a GPU
  std::int64_t deadline_ns = 0;
  int poll_us = 100;  ///< time between looks for a GPU's commands while idle; 0: it spins
  // Set by `make_network_engine`.
  bool is_tcp_alone = false;           ///< no network but TCP connects the nodes
  bool is_one_host = false;            ///< all ranks are on one host: their messages do not leave it
  std::vector<NetworkDevice> devices;  ///< devices of this rank that other ranks reach; empty: not known
  bool prefers_ipv6 = false;           ///< whether IPv6 is preferred where a device has addresses of both kinds

  /// Whether this rank's memory is read and written through buffers.
  [[nodiscard]] bool stages() const { return is_staged[static_cast<std::size_t>(rank)]; }
  /// Whether a transport reads and writes this rank's GPU memory itself, if it can.
  [[nodiscard]] bool gives_device_memory() const { return is_gpu && gpu_payloads == GpuPayloads::ucx; }
};

}  // namespace beeline
