// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Numbers as people write them.

#include <cstddef>
#include <optional>
#include <string>

namespace apps {

/// The number in a text like 8, 4K, 64M or 1G, with powers of 1024; none if the text is not a number, or above 2^40.
[[nodiscard]] std::optional<std::size_t> parse_quantity(const std::string& text);

/// Bytes in GiB, for messages.
[[nodiscard]] double gibibytes(std::size_t bytes);

}  // namespace apps
