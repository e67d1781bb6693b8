// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The identifiers of methods: control/path/protocol. registry.hpp has all methods.

#include <cstdint>
#include <string>

namespace beeline {

enum class Control : std::uint8_t { host, stream, proxy, triggered, device, task };
enum class Path : std::uint8_t { peer, bulk, copy_engine, staged, network, hybrid };
enum class Protocol : std::uint8_t { signal, ll, ll128, pipelined, sequential, verbs, rma };

/// A way of moving data: what issues the transfer, how bytes move, and how the receiver detects their arrival.
struct Method {
  Control control;
  Path path;
  Protocol protocol;

  /// `control/path/protocol`, the identifier used in every table, option and record.
  [[nodiscard]] std::string id() const;
  friend bool operator==(const Method&, const Method&) = default;
};

/// The control's name as it appears in messages, in Python and in JSON.
[[nodiscard]] const char* name(Control control) noexcept;

}  // namespace beeline
