// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The table of transports: each is a row, and a folder of its own.

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
  /// Why this build or machine does not have it, and what to install; empty: it does. Opens its library.
  std::string (*reason)();
  bool is_built = true;        ///< otherwise its headers were missing
  bool device_memory = false;  ///< it reads and writes GPU memory, if BEELINE_GPU_PAYLOADS asks for that
  std::span<const TransportSetting> settings = {};
  /// The remaining functions are called where there is no reason.
  /// Name and version, for errors and the reasons of routes.
  std::string (*label)() = nullptr;
  /// A rank's network devices, and how to choose others, for errors.
  std::string (*devices)(const NetworkPlan& plan) = nullptr;
  const char* how_to_choose_devices = "";
  /// What rank 0 warns of; empty: nothing.
  std::string (*warning)() = nullptr;
  /// Throws unavailable, invalid_argument.
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
/// The transports of a list as in `Config::transports`, in its order. Throws invalid_argument.
[[nodiscard]] std::vector<ChosenTransport> choose_transports(const std::string& list);
/// A row's settings and what they mean; "none".
[[nodiscard]] std::string settings_text(const TransportRow& row);

}  // namespace beeline
