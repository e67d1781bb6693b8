// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reading text files of the kernel (/proc, /sys).
///
/// The library uses no iostreams, locales or std::regex. If a toolchain links libstdc++ statically into the Python
/// extension, the process holds its locale code twice, and the copies mix up their facets: after this library had used
/// a stream, `import torch` crashed in a stream of torch (pytorch issue 109923); after `import torch`, this library's
/// streams read numbers as 0.

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace beeline {

/// Opens a file for reading; opening a pipe does not wait for a writer. Returns nullptr and sets errno if the file
/// cannot be read.
[[nodiscard]] std::unique_ptr<std::FILE, int (*)(std::FILE*)> open_text(const std::string& path);

/// The whole text; empty if the file cannot be read.
[[nodiscard]] std::string read_text(const std::string& path);

/// The lines of a text, without their ends.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

/// The folders of the control groups of this process that limit the resource of `controller` (`memory`, `pids`), each
/// group before its parent. Groups of version 2 have all controllers in one folder.
///   root  prefix of /proc and /sys, for tests
[[nodiscard]] std::vector<std::filesystem::path> control_groups(std::string_view controller, const std::string& root);

}  // namespace beeline
