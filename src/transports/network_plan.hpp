// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Where the ranks of a world are, and by what they may communicate.

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
  std::vector<bool> is_staged;  ///< [ranks] whose memory is read and written by way of buffers
  std::uint64_t world = 0;      ///< secret that its ranks have in common
  bool is_split = false;        ///< the nodes are one machine, whose shared memory is to be left alone
  std::string transports;       ///< as `Config::transports`
  MemoryKeys keys = MemoryKeys::automatic;
  GpuPayloads gpu_payloads = GpuPayloads::staged;
  bool is_gpu = false;  ///< this rank's device
  std::int64_t deadline_ns = 0;
  int poll_us = 100;  ///< between looks at what a GPU posts, where there is nothing to do; 0: it spins
  // Found out by `make_network_engine`.
  bool is_tcp_alone = false;           ///< nothing but TCP is between the nodes
  bool is_one_host = false;            ///< all ranks are on one host: what they send each other does not leave it
  std::vector<NetworkDevice> devices;  ///< of this rank that others reach; empty: not known
  bool prefers_ipv6 = false;           ///< where a device has addresses of both kinds

  /// Whether a transport that can reads and writes this rank's GPU memory itself.
  [[nodiscard]] bool gives_device_memory() const { return is_gpu && gpu_payloads == GpuPayloads::ucx; }
};

}  // namespace beeline
