// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reading text files of the kernel's (/proc, /sys).
///
/// The library uses no iostreams, locales or std::regex. A process may hold two copies of the C++ library's locale code
/// (Ubuntu's libstdc++ beside a torch wheel's), which then take each other's facets: after a stream of ours, `import
/// torch` crashed in a stream of its own; after it, ours read numbers as 0.

#include <string>
#include <string_view>
#include <vector>

namespace beeline {

/// The whole text; empty where the file cannot be read.
[[nodiscard]] std::string read_text(const std::string& path);

/// The lines of a text, without their ends.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace beeline
