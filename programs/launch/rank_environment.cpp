// SPDX-License-Identifier: Apache-2.0
#include "rank_environment.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace beeline::launcher {

Environment rank_environment(const Options& options, const Meeting& meeting, int rank) {
  Environment changes = {{"BEELINE_SIZE", fmt::format("{}", options.ranks)},
                         {"BEELINE_THREADS", options.threads ? "1" : "0"},
                         {"BEELINE_RANK", options.threads ? "" : fmt::format("{}", rank)},
                         {"BEELINE_RENDEZVOUS", meeting.address},
                         {"BEELINE_TOKEN", meeting.token}};
  if (options.device) changes["BEELINE_DEVICE"] = *options.device;
  if (options.split_nodes) changes["BEELINE_SPLIT_NODES"] = fmt::format("{}", *options.split_nodes);
  if (options.secure) changes["BEELINE_SECURE"] = "1";
  if (options.check) changes["BEELINE_CHECK"] = "1";
  if (options.deadline_s) changes["BEELINE_DEADLINE_S"] = fmt::format("{}", *options.deadline_s);
  // Lazy loading of kernels would block behind a waiting kernel; each stream that waits needs its own connection.
  const Environment defaults = {{"CUDA_MODULE_LOADING", "EAGER"}, {"CUDA_DEVICE_MAX_CONNECTIONS", "32"}};
  for (const auto& [variable, value] : defaults)
    if (std::getenv(variable.c_str()) == nullptr) changes[variable] = value;
  return changes;
}

}  // namespace beeline::launcher
