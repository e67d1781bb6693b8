// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The identifiers of methods: control/path/protocol.

#include <string>
#include <string_view>
#include <vector>

namespace beeline {

enum class Control { host, stream, proxy, triggered, device, task };
enum class Path { peer, bulk, copy_engine, staged, network };
enum class Protocol { signal, packets, packets128, pipelined, sequential, verbs, rma };

/// A way of moving data: who issues it, how bytes move, how arrival is known.
struct Method {
  Control control;
  Path path;
  Protocol protocol;

  /// `control/path/protocol`, the identifier used in every table, option and record.
  [[nodiscard]] std::string id() const;
  /// Parses an identifier; throws `invalid_argument` that lists the known methods.
  [[nodiscard]] static Method parse(std::string_view id);
  friend bool operator==(const Method&, const Method&) = default;
};

/// A method with what it needs, as `beeline info` prints it.
struct MethodInfo {
  Method method;
  std::string summary;               ///< one line: who does what
  bool needs_cuda_peer;              ///< between GPUs it needs peer access
  int least_compute_capability = 0;  ///< of GPUs, as 90 for 9.0; 0: any
  bool needs_whole_lines = false;    ///< works between GPUs that store 128 bytes at once, as a self-test finds out

  /// The same in words.
  [[nodiscard]] std::string needs() const;
};

/// Every method that this version implements.
[[nodiscard]] const std::vector<MethodInfo>& methods();

}  // namespace beeline
