// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The environment of a run (software and machine): the first line of every record.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "beeline/host/world.hpp"

namespace beeline::bench {

/// Version of the format of all lines of a record.
inline constexpr int schema_version = 1;

/// Collective. The environment record of a program that was started with `arguments`. Absolute paths, addresses and the
/// world's token are left out, because records are published.
[[nodiscard]] nlohmann::ordered_json environment_record(World& world, const std::vector<std::string>& arguments);
/// As above, of a program without ranks, whose process uses `devices`.
[[nodiscard]] nlohmann::ordered_json environment_record(const std::vector<Device>& devices,
                                                        const std::vector<std::string>& arguments);

}  // namespace beeline::bench
