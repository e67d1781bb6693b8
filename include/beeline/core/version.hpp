// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The versions of headers and library. A program is refused if they differ.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "beeline/core/version.h"

namespace beeline {

/// The version of headers or of a library. Functions that begin a program's use of the library take the version of the
/// caller's headers as their last argument. Leave it at its default.
struct Version {
  std::int32_t number = BEELINE_VERSION;  ///< BEELINE_VERSION
  std::uint64_t layout = 0;  ///< hash of sizes and numbers of enumerators that program and library share; 0: no hash

  [[nodiscard]] std::string text() const;  ///< such as 0.1.0 (interface 1)
  bool operator==(const Version&) const = default;
};

namespace detail {

/// The version of the headers, with a hash of the given sizes and numbers of enumerators. Source: FNV-1a, 64 bits.
[[nodiscard]] constexpr Version version_of(std::initializer_list<std::size_t> sizes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::size_t size : sizes) hash = (hash ^ size) * 0x100000001b3u;
  return {BEELINE_VERSION, hash};
}

/// Throws unavailable, with both versions, unless they are the same.
///   function  name of the function that the program has called
void require_same_version(const char* function, const Version& headers, const Version& library);

}  // namespace detail

}  // namespace beeline
