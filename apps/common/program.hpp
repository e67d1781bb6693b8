// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The frame of an application's main function: methods by name, refusals, and lines of JSON.

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "beeline/host/world.hpp"

namespace apps {

using Json = nlohmann::ordered_json;

/// The method of that name among `all`, whatever else describes a method beside `name`. Throws invalid_argument listing
/// the known ones.
template <class Info>
[[nodiscard]] const Info& find_method(const std::vector<Info>& all, const std::string& name) {
  std::string known;
  for (const Info& info : all) {
    if (info.name == name) return info;
    known += (known.empty() ? "" : ", ") + info.name;
  }
  throw beeline::Error(beeline::Status::invalid_argument, "no method '" + name + "'; known: " + known);
}

/// Those of `all` that `text` names, in its order: names separated by commas, or "all". Throws invalid_argument.
template <class Info>
[[nodiscard]] std::vector<Info> choose_methods(const std::vector<Info>& all, const std::string& text) {
  if (text == "all") return all;
  std::vector<Info> chosen;
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, ',');) chosen.push_back(find_method(all, name));
  beeline::require(!chosen.empty(), beeline::Status::invalid_argument, "--method names no method");
  return chosen;
}

/// The line of `--list` for a method; `why_not` is empty where it is available.
[[nodiscard]] Json method_line(const std::string& name, const std::string& summary, const std::string& why_not);

/// Prints a line on rank 0, at once.
void print_line(const beeline::World& world, const Json& line);

/// Prints how many of a method's `total` phases are over.
void print_progress(const beeline::World& world, const std::string& method, int done, int total);

/// Collective. Prints the first line of a record: what the run was made with and on.
void print_environment(beeline::World& world, const std::vector<std::string>& arguments);

/// Why ranks that this process's GPUs are all they see would run on CPUs; empty: they would not.
[[nodiscard]] std::string why_no_gpu(const beeline::Config& config);

/// Whether rank 0 speaks for this process. False where the environment says nothing about ranks that makes sense.
[[nodiscard]] bool is_quiet_rank();

/// Runs `measure`, which returns whether every method's result was right, on the ranks of a world of `config`. Returns
/// what main should: 0; 1 when a rank failed, or a result was wrong, which rank 0 says after the program's name.
[[nodiscard]] int run_and_verify(const char* program, const beeline::Config& config,
                                 const std::function<bool(beeline::World&)>& measure);

/// Prints the lines of `--list` on rank 0: `line` is a method's, of `method_line`.
template <class Info, class Line>
void list_methods(const std::vector<Info>& all, Line line) {
  if (is_quiet_rank()) return;
  for (const Info& info : all) std::puts(line(info).dump().c_str());
}

/// Runs what comes before there is a world, and what follows. Returns what main should: `work`'s result; 2 when it
/// throws a beeline::Error, which every rank finds alike and rank 0 says, after the program's name.
[[nodiscard]] int run_or_refuse(const char* program, const std::function<int()>& work);

}  // namespace apps
