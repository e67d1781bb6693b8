// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which network devices UCX uses between hosts that have TCP alone. By itself it takes any pair of them, also those
/// that do not reach each other.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace beeline {

struct NetworkDevice {
  std::string name;
  std::vector<std::string> addresses;  ///< as numbers; link-local ones are left out

  bool operator==(const NetworkDevice&) const = default;
};

/// What a rank says of its host.
struct HostNetwork {
  std::string meeting_address;         ///< its address on the route to the rendezvous; empty: not known
  std::vector<NetworkDevice> devices;  ///< that are up and have addresses, without loop-back

  bool operator==(const HostNetwork&) const = default;
};

/// This host's address on the route to an address or host:port; empty: there is none, or it is not known.
[[nodiscard]] std::string address_towards(const std::string& endpoint);
/// The network of this host.
///   meeting_point  host:port of the rendezvous; may be empty
[[nodiscard]] HostNetwork host_network(const std::string& meeting_point);
[[nodiscard]] std::string encode(const HostNetwork& network);
/// Undoes `encode`.
[[nodiscard]] HostNetwork decode_network(std::string_view text);

/// The devices by which a rank reaches those of other hosts: the one by which ranks meet, else all of its host whose
/// addresses no other host has, as Docker's bridges have.
///   networks   [ranks]
///   host_of    [ranks] numbers
///   route      `address_towards`
[[nodiscard]] std::vector<NetworkDevice> choose_devices(std::span<const HostNetwork> networks,
                                                        std::span<const int> host_of, int rank,
                                                        const std::function<std::string(const std::string&)>& route);

/// "eth0 (10.0.0.1), eth1 (10.1.0.1)"
[[nodiscard]] std::string text_of(std::span<const NetworkDevice> devices);

}  // namespace beeline
