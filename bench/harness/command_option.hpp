// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The options of commands: a row each, from which the parser and the description are made.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace beeline::bench {

inline constexpr std::uint64_t largest_size = std::uint64_t{16} << 30;

/// One option. Flags are false unless they are given; lists have commas between their values.
struct CommandOption {
  enum class Type { flag, integer, size, name, integers, sizes, names };

  std::string name;  ///< without dashes
  Type type;
  std::string help;
  std::string initial = {};                                       ///< as on the command line; empty: what the help says
  std::vector<std::string> choices = {};                          ///< names; a list may be `all` of them
  std::uint64_t least = 1, most = largest_size, multiple_of = 1;  ///< integers, and sizes in bytes

  [[nodiscard]] bool is_list() const { return type >= Type::integers; }
  [[nodiscard]] bool is_name() const { return type == Type::name || type == Type::names; }
  [[nodiscard]] bool is_size() const { return type == Type::size || type == Type::sizes; }
};

/// An option that is an integer.
[[nodiscard]] inline CommandOption integer_option(std::string name, std::string help, std::uint64_t least,
                                                  std::uint64_t most, std::string initial = "") {
  return {std::move(name), CommandOption::Type::integer, std::move(help), std::move(initial), {}, least, most};
}

/// What the command line gives an option, if anything; "true" to a flag.
using GivenText = std::optional<std::string>;

/// What is meant: numbers, names, lists of them; null where nothing is given and there is no initial value. Throws
/// invalid_argument that says what is valid.
[[nodiscard]] nlohmann::ordered_json value_of(const CommandOption& option, const GivenText& text);

/// The option and its value, as the description shows them.
[[nodiscard]] nlohmann::ordered_json described(const CommandOption& option, const GivenText& text);

}  // namespace beeline::bench
