// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Small collective steps of set-up: exchanges of values, and common failures.

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/runtime/bootstrap.hpp"

namespace beeline {

/// Collective. The values of all ranks, by rank; all bytes zero for ranks that have failed or left.
template <class T>
std::vector<T> allgather_values(Bootstrap& bootstrap, const T& mine, std::int64_t deadline_ns) {
  std::vector<T> all;
  for (const auto& bytes : bootstrap.allgather(std::as_bytes(std::span(&mine, 1)), deadline_ns)) {
    T value{};
    require(bytes.empty() || bytes.size() == sizeof value, Status::internal, "bytes of another step than this rank's");
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    all.push_back(value);
  }
  return all;
}

/// Why a rank could not do its part of a collective step; ok if it could.
struct Problem {
  Status code = Status::ok;
  std::string text;
};

/// The error that `step` throws, as a problem.
template <class Step>
Problem problem_of(Step step) {
  try {
    step();
    return {};
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
}

/// Collective. Throws on every rank if any rank has a problem, and names that rank, so that no rank waits for it.
void fail_together(Bootstrap& bootstrap, const Problem& mine, std::int64_t deadline_ns);

}  // namespace beeline
