// SPDX-License-Identifier: Apache-2.0
#include "transports/network_devices.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <set>

#include "beeline/core/error.hpp"
#include "beeline/runtime/rendezvous.hpp"

namespace beeline {

namespace {

/// An IP address in numeric form; empty if it is not an IP address, or is link-local.
std::string number_of(const sockaddr* address) {
  if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) return {};
  const bool is_v6 = address->sa_family == AF_INET6;
  if (is_v6 && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)) return {};
  std::array<char, NI_MAXHOST> text{};
  const auto bytes = static_cast<socklen_t>(is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  const int error = ::getnameinfo(address, bytes, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : std::string();
}

std::vector<NetworkDevice> devices_of_this_host() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, ::freeifaddrs);
  std::vector<NetworkDevice> devices;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    const std::string address = number_of(each->ifa_addr);
    if (address.empty() || (each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
    auto device = std::ranges::find(devices, std::string_view(each->ifa_name), &NetworkDevice::name);
    if (device == devices.end()) device = devices.insert(device, {each->ifa_name, {}});
    device->addresses.push_back(address);
  }
  return devices;
}

/// The device that has an address; nullptr if there is none.
const NetworkDevice* device_with(const std::vector<NetworkDevice>& devices, const std::string& address) {
  const auto found = std::ranges::find_if(devices, [&](const NetworkDevice& device) {
    return std::ranges::find(device.addresses, address) != device.addresses.end();
  });
  return found == devices.end() ? nullptr : &*found;
}

/// Takes the text before `mark`, and the mark, from the front of `text`.
std::string_view take_until(std::string_view& text, char mark) {
  const std::string_view taken = text.substr(0, text.find(mark));
  text.remove_prefix(std::min(taken.size() + 1, text.size()));
  return taken;
}

/// The devices of a rank's host that have an address which no other host has.
std::vector<NetworkDevice> distinct_devices(std::span<const HostNetwork> networks, std::span<const int> host_of,
                                            std::size_t rank) {
  std::set<std::string> elsewhere;
  for (std::size_t other = 0; other < networks.size(); ++other)
    if (host_of[other] != host_of[rank])
      for (const NetworkDevice& device : networks[other].devices)
        elsewhere.insert(device.addresses.begin(), device.addresses.end());
  std::vector<NetworkDevice> distinct;
  std::ranges::copy_if(networks[rank].devices, std::back_inserter(distinct), [&](const NetworkDevice& device) {
    return std::ranges::any_of(device.addresses, [&](const auto& address) { return !elsewhere.contains(address); });
  });
  return distinct;
}

}  // namespace

std::string address_towards(const std::string& endpoint) {
  try {
    return endpoint.empty() ? std::string() : own_address_towards(endpoint);
  } catch (const Error&) {  // a name that this host does not know, or no route
    return {};
  }
}

HostNetwork host_network(const std::string& meeting_point) {
  return {address_towards(meeting_point), devices_of_this_host()};
}

std::string encode(const HostNetwork& network) {
  std::string text = network.meeting_address + "\n";
  for (const NetworkDevice& device : network.devices)
    text += fmt::format("{} {}\n", device.name, fmt::join(device.addresses, " "));
  return text;
}

HostNetwork decode_network(std::string_view text) {
  HostNetwork network;
  network.meeting_address = take_until(text, '\n');
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    NetworkDevice& device = network.devices.emplace_back();
    device.name = take_until(line, ' ');
    while (!line.empty()) device.addresses.emplace_back(take_until(line, ' '));
  }
  return network;
}

std::vector<NetworkDevice> choose_devices(std::span<const HostNetwork> networks, std::span<const int> host_of, int rank,
                                          const std::function<std::string(const std::string&)>& route) {
  const auto own = static_cast<std::size_t>(rank);
  const std::vector<NetworkDevice> devices = distinct_devices(networks, host_of, own);
  if (const NetworkDevice* device = device_with(devices, networks[own].meeting_address)) return {*device};
  // On the rendezvous's host this address may be loop-back: then take the device towards a rank of another host.
  for (std::size_t other = 0; other < networks.size(); ++other) {
    const std::string& address = networks[other].meeting_address;
    if (host_of[other] == host_of[own] || device_with(distinct_devices(networks, host_of, other), address) == nullptr)
      continue;
    if (const NetworkDevice* device = device_with(devices, route(address))) return {*device};
  }
  return devices;
}

std::string text_of(std::span<const NetworkDevice> devices) {
  std::vector<std::string> texts;
  for (const NetworkDevice& device : devices)
    texts.push_back(fmt::format("{} ({})", device.name, fmt::join(device.addresses, ", ")));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace beeline
