// SPDX-License-Identifier: Apache-2.0
#include "beeline/core/method.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "beeline/core/error.hpp"

namespace beeline {

namespace {
constexpr std::array controls = {"host", "stream", "proxy", "triggered", "device", "task"};
constexpr std::array paths = {"peer", "bulk", "copy_engine", "staged", "network"};
constexpr std::array protocols = {"signal", "packets", "packets128", "pipelined", "sequential", "verbs", "rma"};
}  // namespace

std::string Method::id() const {
  return fmt::format("{}/{}/{}", controls[static_cast<std::size_t>(control)], paths[static_cast<std::size_t>(path)],
                     protocols[static_cast<std::size_t>(protocol)]);
}

Method Method::parse(std::string_view id) {
  std::vector<std::string> known;
  for (const MethodInfo& info : methods()) {
    if (info.method.id() == id) return info.method;
    known.push_back(info.method.id());
  }
  throw Error(Status::invalid_argument, fmt::format("unknown method \"{}\"; known: {}", id, fmt::join(known, ", ")));
}

std::string MethodInfo::needs() const {
  if (!needs_cuda_peer) return "host memory";
  if (needs_whole_lines) return "peer access between GPUs, and a self-test that sees no torn line";
  const int least = least_compute_capability;
  return fmt::format("peer access between GPUs{}; shared memory between host ranks",
                     least == 0 ? "" : fmt::format(" of compute capability {}.{}", least / 10, least % 10));
}

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all = {
      {{Control::device, Path::peer, Protocol::packets},
       "kernel stores data and flag together, receiver unpacks",
       true},
      {{Control::device, Path::peer, Protocol::packets128},
       "kernel's warps store lines of 120 bytes of data and 8 of flag, receiver unpacks",
       true,
       0,
       true},
      {{Control::device, Path::peer, Protocol::signal},
       "kernel stores into the peer's memory, then releases a signal",
       true},
      {{Control::device, Path::bulk, Protocol::signal},
       "kernel moves bulk copies (TMA) through shared memory, then releases a signal",
       true,
       90},
      {{Control::stream, Path::copy_engine, Protocol::signal},
       "copy and signal enqueued on a stream, receiver's stream waits",
       true},
      {{Control::host, Path::copy_engine, Protocol::signal},
       "CPU starts the copy, awaits its end, signals the peer's CPU",
       true},
      {{Control::host, Path::staged, Protocol::sequential},
       "through one buffer in host memory, whole message at a time",
       false},
      {{Control::host, Path::staged, Protocol::pipelined},
       "through a ring of buffers in host memory, chunks overlapping",
       false},
  };
  return all;
}

}  // namespace beeline
