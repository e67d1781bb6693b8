// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace beeline::bench {

namespace {

std::map<Command, std::vector<Case>>& listed_cases() {
  static std::map<Command, std::vector<Case>> cases;
  return cases;
}

/// An operation of a command, at the sizes that distinguish one method from another.
struct Telling {
  Command command;
  const char* operation;
  SizeRange sizes;
};
constexpr std::uint64_t kib = 1 << 10, any = SizeRange{}.most_bytes;
constexpr Telling telling[] = {
    {Command::latency, "command", {0, any}},      {Command::latency, "message", {0, 64 * kib - 1}},
    {Command::latency, "trigger", {0, any}},      {Command::latency, "trigger_after_rest", {0, any}},
    {Command::rate, "message_rate", {0, 8}},      {Command::rate, "puts", {0, 8}},
    {Command::network, "puts", {0, 8}},           {Command::bandwidth, "put", {64 * kib, any}},
    {Command::bandwidth, "get", {64 * kib, any}}, {Command::network, "message", {0, 64 * kib - 1}},
    {Command::network, "message_rate", {0, 8}},   {Command::network, "put", {64 * kib, any}}};

std::vector<Case> cases_of_methods() {
  std::vector<Case> all;
  for (const Telling& one : telling)
    for (Case each : listed_cases()[one.command]) {
      if (each.operation != one.operation) continue;
      each.sizes = {std::max(each.sizes.least_bytes, one.sizes.least_bytes),
                    std::min(each.sizes.most_bytes, one.sizes.most_bytes)};
      all.push_back(std::move(each));
    }
  const std::vector<Case>& own = listed_cases()[Command::methods];
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

}  // namespace

ListedCases::ListedCases(Command command, std::vector<Case> cases) {
  std::vector<Case>& all = listed_cases()[command];
  all.insert(all.end(), std::make_move_iterator(cases.begin()), std::make_move_iterator(cases.end()));
}

std::vector<Case> primitive_cases(Command command) {
  return command == Command::methods ? cases_of_methods() : listed_cases()[command];
}

}  // namespace beeline::bench
