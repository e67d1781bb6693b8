// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A folder of files for tests.

#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace beeline_test {

/// A new folder; removed with its files at the end.
class FileFolder {
 public:
  FileFolder() {
    // mkdtemp replaces the six letters.
    std::string name = (std::filesystem::temp_directory_path() / "beeline-files-").string() + std::string(6, 'X');
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder " + name);
    path_ = name;
  }
  ~FileFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FileFolder(const FileFolder&) = delete;
  FileFolder& operator=(const FileFolder&) = delete;
  [[nodiscard]] std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

using StdFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// Makes a file, by the C library.
inline void make_file(const std::filesystem::path& path, const std::vector<std::byte>& content) {
  const StdFile file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (file == nullptr || std::fwrite(content.data(), 1, content.size(), file.get()) != content.size())
    throw std::runtime_error("cannot make " + path.string());
}

/// A file's whole content, by the C library.
inline std::vector<std::byte> content_of(const std::filesystem::path& path) {
  std::vector<std::byte> content(std::filesystem::file_size(path));
  const StdFile file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr || std::fread(content.data(), 1, content.size(), file.get()) != content.size())
    throw std::runtime_error("cannot read " + path.string());
  return content;
}

}  // namespace beeline_test
