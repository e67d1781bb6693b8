// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Texts of errors about failed waits.

#include <cstdint>
#include <string>
#include <vector>

#include "beeline/core/layout.hpp"

namespace beeline::detail {

/// The record of a failed wait, and the texts that its rank has published for it.
struct KnownWait {
  WaitRecord record;
  std::string kernel;  ///< name of the kernel that waited; empty: host code, or unknown
  std::string reason;  ///< reason of the peer's route if that refuses; else empty
  std::string word;    ///< the awaited word, as of `Areas::describe_awaited`
};

[[nodiscard]] bool has_status(const WaitRecord& record, Status status);
/// Whether a record names the cause of its team's abort, not only the abort.
[[nodiscard]] bool is_cause(const WaitRecord& record);
/// Whether a record is of a call that broke a rule.
[[nodiscard]] bool is_refusal(const WaitRecord& record);
/// Whether two records are of the same rank, waiting for the same peer.
[[nodiscard]] bool is_same_wait(const WaitRecord& a, const WaitRecord& b);

[[nodiscard]] std::string describe(const KnownWait& wait);
/// One line for each wait except `known`; equal texts of several ranks share a line.
[[nodiscard]] std::string describe_all(const std::vector<KnownWait>& waits, const std::string& known);
/// The rank at the end of the chain of waits that begins with the first wait; `no_peer` if the ranks wait in a circle.
[[nodiscard]] std::uint32_t awaited_in_the_end(const std::vector<WaitRecord>& waits);

/// Describes the end of a rank. `reason` may name the rank already.
[[nodiscard]] std::string describe_end(int rank, const std::string& reason);
/// Whether a text begins with a rank, as `rank 3: wait ...`.
[[nodiscard]] bool begins_with_rank(const std::string& text);
/// Whether the text of a rank's end contains the text of the cause for the same rank.
[[nodiscard]] bool repeats(const std::string& end, const std::string& cause);

}  // namespace beeline::detail
