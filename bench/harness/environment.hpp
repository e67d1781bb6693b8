// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a run was made with and on: the first line of every record.

#include <nlohmann/json.hpp>

#include "harness/session.hpp"

namespace beeline::bench {

/// Collective. The environment record. Absolute paths, addresses and the world's token stay out of it: records are
/// published.
[[nodiscard]] nlohmann::ordered_json environment_record(Session& session);

}  // namespace beeline::bench
