// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.hpp"

#include <iterator>
#include <map>
#include <utility>

namespace beeline::bench {

namespace {

std::map<Command, std::vector<Case>>& listed_cases() {
  static std::map<Command, std::vector<Case>> cases;
  return cases;
}

}  // namespace

ListedCases::ListedCases(Command command, std::vector<Case> cases) {
  std::vector<Case>& all = listed_cases()[command];
  all.insert(all.end(), std::make_move_iterator(cases.begin()), std::make_move_iterator(cases.end()));
}

std::vector<Case> primitive_cases(Command command) { return listed_cases()[command]; }

}  // namespace beeline::bench
