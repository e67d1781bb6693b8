// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The engine of peers on other nodes (docs/network.md).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "beeline/transport/engine.hpp"

namespace beeline {

/// Where the ranks of a world are.
struct NetworkPlan {
  int rank = 0;
  std::vector<int> node_of;     ///< [ranks]
  std::vector<int> host_of;     ///< [ranks] several nodes may be parts of one host
  std::string meeting_point;    ///< host:port of the rendezvous; empty: the ranks are on this host
  std::vector<bool> is_staged;  ///< [ranks] whose memory is read and written by way of buffers
  std::uint64_t world = 0;      ///< secret that its ranks have in common
  bool is_split = false;        ///< the nodes are one machine, whose shared memory is to be left alone
  MemoryKeys keys = MemoryKeys::automatic;
  GpuPayloads gpu_payloads = GpuPayloads::staged;
  bool is_gpu = false;  ///< this rank's device
  // What `make_network_engine` finds out.
  bool is_tcp_alone = false;  ///< nothing but TCP is between the nodes
  std::string net_devices;    ///< that UCX uses, separated by commas; empty: it chooses
  std::string devices;        ///< `net_devices` with their addresses, for errors
  bool prefers_ipv6 = false;  ///< where a device has addresses of both kinds
  std::int64_t deadline_ns = 0;
  int poll_us = 100;  ///< between looks at what a GPU posts, where there is nothing to do; 0: it spins
};

/// What an engine tells its world, and asks it, about failures. Called by the engine's thread.
struct NetworkNews {
  /// Members of a team on other nodes that hear from this rank of its abort.
  std::function<std::vector<int>(std::uint32_t team)> members_to_tell;
  /// Why a team of this rank was aborted.
  std::function<std::string(std::uint32_t team)> cause;
  /// A team was aborted on another node.
  std::function<void(std::uint32_t team, std::uint64_t word, const std::string& cause)> aborted;
  /// The connection to a rank is lost, and nobody has said why.
  std::function<void(int peer, const std::string& reason)> lost;
};

/// Collective. Connects this rank with those of other nodes, by UCX.
/// Throws unavailable where a rank has no UCX that serves (names it, and says what to install), unreachable or deadline
/// where one does not reach another, invalid_argument where they speak different protocols.
[[nodiscard]] std::unique_ptr<Engine> make_network_engine(Bootstrap& bootstrap, NetworkPlan plan, NetworkNews news);

}  // namespace beeline
