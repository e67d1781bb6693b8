// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ranks as text, for messages.

#include <string>
#include <vector>

namespace beeline::detail {

/// `rank 3`, `ranks 0, 2, 5`.
[[nodiscard]] std::string rank_list(const std::vector<int>& ranks);

/// An error's text without its rank: for messages that name the rank already.
[[nodiscard]] std::string without_rank(std::string text, int rank);

/// The text for a wait that passed its deadline: the ranks that have not called, and the ranks that never joined.
[[nodiscard]] std::string missing_message(double seconds, const std::vector<int>& not_called,
                                          const std::vector<int>& not_joined);

/// The text for a wait that can never end because `ranks` left the world. Without an error, ranks leave together.
[[nodiscard]] std::string left_message(const std::vector<int>& ranks);

/// The text for a wait that can never end because the processes of `ranks` ended before they joined the world.
[[nodiscard]] std::string missed_message(const std::vector<int>& ranks);

/// Why an allgather fails while ranks agree on survivors.
[[nodiscard]] std::string asks_message(int rank);

/// Why a rank that did not take part in the agreement counts as failed.
[[nodiscard]] std::string unanswered_message(int rank, int asked_by, double seconds);

}  // namespace beeline::detail
