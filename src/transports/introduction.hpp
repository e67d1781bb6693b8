// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What ranks exchange before any message: the name of their protocol, a zero byte, and a content.

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "beeline/core/error.hpp"
#include "transports/message.hpp"

namespace beeline {

[[nodiscard]] inline std::vector<std::byte> introduction(std::span<const std::byte> content) {
  const auto protocol = std::as_bytes(std::span(network_protocol()));
  std::vector<std::byte> all(protocol.begin(), protocol.end());
  all.push_back(std::byte{0});
  all.insert(all.end(), content.begin(), content.end());
  return all;
}

/// The content of the introduction of `rank`. Throws invalid_argument if the rank speaks another protocol.
[[nodiscard]] inline std::span<const std::byte> content_of(int rank, std::span<const std::byte> introduction) {
  const auto end = std::find(introduction.begin(), introduction.end(), std::byte{0});
  const std::string_view protocol(reinterpret_cast<const char*>(introduction.data()),
                                  static_cast<std::size_t>(end - introduction.begin()));
  require(protocol == network_protocol() && protocol.size() < introduction.size(), Status::invalid_argument,
          fmt::format("rank {} speaks \"{}\" to other nodes, this rank \"{}\": run the same Beeline on all of them",
                      rank, protocol, network_protocol()));
  return introduction.subspan(protocol.size() + 1);
}

}  // namespace beeline
