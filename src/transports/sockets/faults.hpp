// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Faults of a connection that a setting requests, for tests.

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>

#include "core/environment.hpp"
#include "transports/transport.hpp"

namespace beeline {

inline constexpr std::array socket_settings = {
    TransportSetting{"delay_us", "messages leave up to so much later, at random"},
    TransportSetting{"reorder", "1: delayed messages overtake each other"},
    TransportSetting{"drop", "the message of this number to each rank is lost"},
    TransportSetting{"cut", "the connection to each rank ends in place of the message of this number"}};

/// Used by one thread at a time.
class SocketFaults {
 public:
  /// Throws invalid_argument.
  explicit SocketFaults(const TransportSettings& settings)
      : delay_ns_(1'000 * number_in(settings, "delay_us", 1'000'000)),
        reorders_(number_in(settings, "reorder", 1) != 0), drop_(number_in(settings, "drop", most_number)),
        cut_(number_in(settings, "cut", most_number)) {}

  [[nodiscard]] bool delays() const { return delay_ns_ != 0; }
  [[nodiscard]] bool drops(const NetworkMessage& message) const { return drop_ != 0 && message.number == drop_; }
  [[nodiscard]] bool cuts(const NetworkMessage& message) const { return cut_ != 0 && message.number == cut_; }
  /// The time at which a message leaves.
  ///   last_ns  the time at which the message before it leaves
  [[nodiscard]] std::uint64_t departure(std::uint64_t now_ns, std::uint64_t last_ns) {
    const std::uint64_t at = now_ns + std::uniform_int_distribution<std::uint64_t>(0, delay_ns_)(random_);
    return reorders_ ? at : std::max(at, last_ns);
  }

 private:
  static constexpr std::uint64_t most_number = std::uint64_t{1} << 40;

  static std::uint64_t number_in(const TransportSettings& settings, const char* name, std::uint64_t most) {
    const auto found = settings.find(name);
    if (found == settings.end()) return 0;
    const std::string variable = std::string("BEELINE_TRANSPORTS, sockets:") + name;
    return detail::to_number<std::uint64_t>(variable.c_str(), found->second, 0, most);
  }

  std::uint64_t delay_ns_;
  bool reorders_;
  std::uint64_t drop_, cut_;
  std::minstd_rand random_{1};
};

}  // namespace beeline
