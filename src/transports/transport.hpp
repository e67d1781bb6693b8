// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The table of transports: each transport is a row of the table, and has a folder of its own.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/network_plan.hpp"
#include "transports/worker.hpp"

namespace beeline {

/// A setting of a transport, as in BEELINE_TRANSPORTS=name:setting=value.
struct TransportSetting {
  const char *name, *meaning;
};
using TransportSettings = std::map<std::string, std::string, std::less<>>;

struct TransportRow {
  const char* name;
  /// Why this build or machine lacks the transport, and what to install; empty if it has it. Opens its library.
  std::string (*reason)();
  bool is_built = true;        ///< false: its headers were missing
  bool encrypts = false;       ///< in worlds with BEELINE_SECURE, connections are encrypted and need a key
  bool device_memory = false;  ///< the transport reads and writes GPU memory, if BEELINE_GPU_PAYLOADS asks for it
  std::span<const TransportSetting> settings = {};
  /// The remaining functions are called only if `reason` returns an empty text.
  /// Returns name and version, for errors and the reasons of routes.
  std::string (*label)() = nullptr;
  /// Returns a rank's network devices, for errors.
  std::string (*devices)(const NetworkPlan& plan) = nullptr;
  const char* how_to_choose_devices = "";
  /// Returns the text of which rank 0 warns; empty if there is none.
  std::string (*warning)() = nullptr;
  /// Opens the transport. Throws unavailable, invalid_argument.
  std::unique_ptr<TransportWorker> (*open)(const NetworkPlan& plan, const TransportSettings& settings,
                                           WorkerEvents& events) = nullptr;
};

/// A transport that a world uses, with its settings.
struct ChosenTransport {
  const TransportRow* row;
  TransportSettings settings;
};

/// All transports. The first one that was built is the default.
[[nodiscard]] std::span<const TransportRow* const> transport_rows();
/// The transports in a list of the form of `Config::transports`, in its order. Throws invalid_argument.
///   is_secure  only transports that encrypt
[[nodiscard]] std::vector<ChosenTransport> choose_transports(const std::string& list, bool is_secure = false);
/// A row's settings and their meanings; "none" if it has no settings.
[[nodiscard]] std::string settings_text(const TransportRow& row);

}  // namespace beeline
