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

}  // namespace

std::vector<std::string> names_of(const std::vector<Case>& cases, std::string Case::*name) {
  std::vector<std::string> known;
  for (const Case& one : cases)
    if (!contains(known, one.*name)) known.push_back(one.*name);
  return known;
}

std::vector<Case> chosen(std::vector<Case> cases, const Options& options) {
  if (cases.empty()) return cases;  // a command that other programs measure
  std::erase_if(cases, [&](const Case& one) {
    return !contains(options.operations, one.operation) || !contains(options.methods, one.method);
  });
  require(!cases.empty(), Status::invalid_argument,
          fmt::format("--operations, --methods: none of the operations {} is measured with any of the methods {}",
                      fmt::join(options.operations, ", "), fmt::join(options.methods, ", ")));
  return cases;
}

}  // namespace beeline::bench
