// SPDX-License-Identifier: Apache-2.0
#include "harness/subcommand.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "harness/case_choice.hpp"
#include "harness/method_text.hpp"

namespace beeline::bench {

namespace {

using Json = nlohmann::ordered_json;
using Type = CommandOption::Type;

std::vector<CommandOption> options_of(const Measuring& measuring, const std::vector<Case>& cases) {
  std::vector<CommandOption> all;
  if (!cases.empty())
    all.push_back(
        {"methods", Type::names, "Methods, with commas between them, or all", "all", names_of(cases, &Case::method)});
  const std::vector<std::string> operations = names_of(cases, &Case::operation);
  if (operations.size() > 1)
    all.push_back({"operations", Type::names,
                   fmt::format("{}, with commas between them, or all", fmt::join(operations, ", ")),
                   measuring.operations, operations});
  all.insert(all.end(), measuring.options.begin(), measuring.options.end());
  if (measuring.in_python) return all;
  all.push_back(
      integer_option("iterations", "Operations in a timed batch (default: about 2 ms worth)", 1, 1'000'000'000));
  all.push_back(integer_option(
      "energy", "Milliseconds for which the quickest setting of each method is metered, too, several times: joules",
      100, 60'000));
  all.push_back(integer_option("seed", "Seed of the data that is verified (default: drawn, and printed)", 1,
                               std::numeric_limits<std::uint64_t>::max()));
  all.push_back({"no-verify", Type::flag, "Skip the transfer of fresh data after each timed loop"});
  return all;
}

/// The methods of each operation.
Json operations_of(const std::vector<Case>& cases) {
  Json all = Json::array();
  for (const std::string& operation : names_of(cases, &Case::operation)) {
    Json methods = Json::array();
    for (const Case& one : cases)
      if (one.operation == operation) methods.push_back(one.method);
    all.push_back({{"name", operation}, {"methods", methods}});
  }
  return all;
}

Json methods_of(const std::vector<Case>& cases) {
  Json all = Json::array();
  for (const std::string& method : names_of(cases, &Case::method)) {
    const MethodText text = text_of(method);
    all.push_back({{"name", method}, {"summary", text.summary}, {"needs", text.needs}});
  }
  return all;
}

}  // namespace

Subcommand::Subcommand(CLI::App& app, const Measuring& measuring, std::vector<Case> cases)
    : measuring_(measuring), cases_(std::move(cases)), options_(options_of(measuring, cases_)),
      parser_(app.add_subcommand(name(measuring.command), measuring.summary)) {
  for (const CommandOption& option : options_) {
    GivenText& text = texts_[option.name];
    const auto take = [&text](const std::string& given) { text = given; };
    if (option.type == Type::flag)
      parser_->add_flag_callback(
          "--" + option.name, [take] { take("true"); }, option.help);
    else
      parser_->add_option_function<std::string>("--" + option.name, take, option.help)->default_str(option.initial);
  }
  parser_->add_flag("--describe", describe_, "Print this command with its options' values as JSON, and do nothing");
  std::string methods = cases_.empty() ? "" : "Methods:";
  for (const std::string& method : names_of(cases_, &Case::method))
    methods += fmt::format("\n  {}: {}", method, text_of(method).summary);
  parser_->footer(methods);
}

Json Subcommand::description() const {
  Json options = Json::array();
  for (const CommandOption& option : options_) options.push_back(described(option, texts_.at(option.name)));
  return {{"name", name(measuring_.command)},    {"summary", measuring_.summary}, {"reason", nullptr},
          {"operations", operations_of(cases_)}, {"methods", methods_of(cases_)}, {"options", options}};
}

Options Subcommand::options() const {
  Json values;
  for (const CommandOption& option : options_) values[option.name] = value_of(option, texts_.at(option.name));
  if (!values.contains("operations")) values["operations"] = names_of(cases_, &Case::operation);
  Options options = options_from(measuring_.command, values);
  options.methods_are_named = options.methods.size() < names_of(cases_, &Case::method).size();
  static_cast<void>(chosen(cases_, options));
  return options;
}

}  // namespace beeline::bench
