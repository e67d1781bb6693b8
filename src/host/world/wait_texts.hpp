// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What errors say of waits that have failed.

#include <cstdint>
#include <string>
#include <vector>

#include "beeline/core/layout.hpp"

namespace beeline::detail {

/// The record of a failed wait, and what its rank has published about it.
struct KnownWait {
  WaitRecord record;
  std::string kernel;  ///< what errors call the kernel that waited; empty: host code, or unknown
  std::string reason;  ///< of the peer's route, where it is that which refuses; else empty
  std::string word;    ///< which word was awaited, as of `Areas::describe_awaited`
};

[[nodiscard]] bool has_status(const WaitRecord& record, Status status);
/// Whether a record tells why its team was aborted, and not only that it was.
[[nodiscard]] bool is_cause(const WaitRecord& record);
/// Whether it is of a call that broke a rule.
[[nodiscard]] bool is_refusal(const WaitRecord& record);
/// Whether two records are of the same rank that waited more than once for the same peer.
[[nodiscard]] bool is_same_wait(const WaitRecord& a, const WaitRecord& b);

[[nodiscard]] std::string describe(const KnownWait& wait);
/// A line for each of them but `known`; those of several ranks that say the same are one.
[[nodiscard]] std::string describe_all(const std::vector<KnownWait>& waits, const std::string& known);
/// The rank that the first of these waits depends on in the end, through ranks that wait for each other; `no_peer`:
/// they wait in a circle.
[[nodiscard]] std::uint32_t awaited_in_the_end(const std::vector<WaitRecord>& waits);

/// How a rank ended, by a reason that may name the rank already.
[[nodiscard]] std::string describe_end(int rank, const std::string& reason);
/// Whether a text is of one rank, as `rank 3: wait ...`.
[[nodiscard]] bool begins_with_rank(const std::string& text);
/// Whether one text holds what the other says of the same rank.
[[nodiscard]] bool repeats(const std::string& end, const std::string& cause);

}  // namespace beeline::detail
