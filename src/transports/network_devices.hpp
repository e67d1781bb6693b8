// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Chooses the network devices that UCX uses between hosts that have TCP alone. Left to itself, UCX pairs any devices,
/// even those that do not reach each other.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace beeline {

struct NetworkDevice {
  std::string name;
  std::vector<std::string> addresses;  ///< numeric; without link-local addresses

  bool operator==(const NetworkDevice&) const = default;
};

/// What a rank publishes about its host.
struct HostNetwork {
  std::string meeting_address;         ///< the host's address on the route to the rendezvous; empty: not known
  std::vector<NetworkDevice> devices;  ///< devices that are up and have addresses, without loop-back

  bool operator==(const HostNetwork&) const = default;
};

/// This host's address on the route to an address or host:port; empty if there is no route, or it is not known.
[[nodiscard]] std::string address_towards(const std::string& endpoint);
/// Describes the network of this host.
///   meeting_point  host:port of the rendezvous; may be empty
[[nodiscard]] HostNetwork host_network(const std::string& meeting_point);
[[nodiscard]] std::string encode(const HostNetwork& network);
/// Decodes the text of `encode`.
[[nodiscard]] HostNetwork decode_network(std::string_view text);

/// The devices by which a rank reaches ranks of other hosts: the device on the route to the rendezvous. If that is not
/// known: all devices of the host with an address that no other host has (Docker's bridges have the same address on
/// each host).
///   networks  [ranks]
///   host_of   [ranks] numbers of hosts
///   route     `address_towards`
[[nodiscard]] std::vector<NetworkDevice> choose_devices(std::span<const HostNetwork> networks,
                                                        std::span<const int> host_of, int rank,
                                                        const std::function<std::string(const std::string&)>& route);

/// A list such as "eth0 (10.0.0.1), eth1 (10.1.0.1)".
[[nodiscard]] std::string text_of(std::span<const NetworkDevice> devices);

}  // namespace beeline
