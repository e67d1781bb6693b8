// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ranks in words, for messages.

#include <string>
#include <vector>

namespace beeline::detail {

/// `rank 3`, `ranks 0, 2, 5`.
[[nodiscard]] std::string rank_list(const std::vector<int>& ranks);

/// An error's text without the rank whose it is: for where the rank is said already.
[[nodiscard]] std::string without_rank(std::string text, int rank);

/// What a wait that passed its deadline says: which ranks have not called, and which of them never joined.
[[nodiscard]] std::string missing_message(double seconds, const std::vector<int>& not_called,
                                          const std::vector<int>& not_joined);

/// What a wait says that can never end, because `ranks` left the world. Without an error a rank leaves with the others.
[[nodiscard]] std::string left_message(const std::vector<int>& ranks);

/// What a wait says that can never end, because the processes of `ranks` ended before they joined the world.
[[nodiscard]] std::string missed_message(const std::vector<int>& ranks);

/// Why an allgather fails while ranks agree on who is left.
[[nodiscard]] std::string asks_message(int rank);

/// Why a rank counts as failed that did not take part in the agreement.
[[nodiscard]] std::string unanswered_message(int rank, int asked_by, double seconds);

}  // namespace beeline::detail
