// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reading text files of the kernel's (/proc, /sys).
///
/// The library uses no iostreams, locales or std::regex. Where a toolchain links libstdc++ statically into the Python
/// extension, the process holds its locale code twice, and the copies take each other's facets: after a stream of ours,
/// `import torch` crashed in a stream of its own (pytorch issue 109923); after it, ours read numbers as 0.

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace beeline {

/// Opens a file to read; a pipe is opened, too, but never waited for. nullptr, with errno: it cannot be read.
[[nodiscard]] std::unique_ptr<std::FILE, int (*)(std::FILE*)> open_text(const std::string& path);

/// The whole text; empty where the file cannot be read.
[[nodiscard]] std::string read_text(const std::string& path);

/// The lines of a text, without their ends.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

/// The folders of the control groups in which this process is and that limit what `controller` (`memory`, `pids`)
/// counts: each group before those above it. Groups of version 2 have all controllers in one folder.
///   root  in front of /proc and /sys, for tests
[[nodiscard]] std::vector<std::filesystem::path> control_groups(std::string_view controller, const std::string& root);

}  // namespace beeline
