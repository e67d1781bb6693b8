// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Numbers and lists as people write them.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace apps {

/// The number in a text like 8, 4K, 64M or 1G, with powers of 1024; none if the text is not a number, or above 2^40.
[[nodiscard]] std::optional<std::size_t> parse_quantity(const std::string& text);

/// The items of a text, which commas separate. Items may be empty, as after a comma at the end; an empty text has none.
[[nodiscard]] std::vector<std::string> list_items(const std::string& text);

/// Bytes in GiB, for messages.
[[nodiscard]] double gibibytes(std::size_t bytes);

}  // namespace apps
