// SPDX-License-Identifier: Apache-2.0
#include "harness/case_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "beeline/core/error.hpp"

namespace beeline::bench {

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Keeps the cases whose `name` is asked for; everything when nothing is.
void keep(std::vector<Case>& cases, std::string Case::*name, const std::vector<std::string>& wanted, const char* what) {
  const std::vector<std::string> known = names_of(cases, name);
  for (const std::string& each : wanted)
    require(contains(known, each), Status::invalid_argument,
            fmt::format("unknown {} \"{}\"; valid here: {}", what, each, fmt::join(known, ", ")));
  if (!wanted.empty()) std::erase_if(cases, [&](const Case& one) { return !contains(wanted, one.*name); });
}

}  // namespace

std::vector<std::string> names_of(const std::vector<Case>& cases, std::string Case::*name) {
  std::vector<std::string> known;
  for (const Case& one : cases)
    if (!contains(known, one.*name)) known.push_back(one.*name);
  return known;
}

std::vector<Case> chosen(std::vector<Case> cases, const Options& options) {
  keep(cases, &Case::operation, options.operations, "operation");
  keep(cases, &Case::method, options.methods, "method");
  return cases;
}

}  // namespace beeline::bench
