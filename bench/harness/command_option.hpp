// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The options of commands: one row for each option, from which the parser and the description are made.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace beeline::bench {

inline constexpr std::uint64_t largest_size = std::uint64_t{16} << 30;

/// One option. Flags are false by default; values of lists are separated by commas.
struct CommandOption {
  enum class Type { flag, integer, size, name, integers, sizes, names };

  std::string name;  ///< without dashes
  Type type;
  std::string help;
  std::string initial = {};                                       ///< as on the command line; empty: see help
  std::vector<std::string> choices = {};                          ///< valid names; a list may be `all`
  std::uint64_t least = 1, most = largest_size, multiple_of = 1;  ///< limits of integers, and of sizes in bytes

  [[nodiscard]] bool is_list() const { return type >= Type::integers; }
  [[nodiscard]] bool is_name() const { return type == Type::name || type == Type::names; }
  [[nodiscard]] bool is_size() const { return type == Type::size || type == Type::sizes; }
};

/// An option whose value is an integer.
[[nodiscard]] inline CommandOption integer_option(std::string name, std::string help, std::uint64_t least,
                                                  std::uint64_t most, std::string initial = "") {
  return {std::move(name), CommandOption::Type::integer, std::move(help), std::move(initial), {}, least, most};
}

/// The text that the command line gives an option, if any; "true" for a flag.
using GivenText = std::optional<std::string>;

/// The value of the text: numbers, names, lists of them; null if there is neither text nor initial value. Throws
/// invalid_argument that says which values are valid.
[[nodiscard]] nlohmann::ordered_json value_of(const CommandOption& option, const GivenText& text);

/// The option and its value, as the description shows them.
[[nodiscard]] nlohmann::ordered_json described(const CommandOption& option, const GivenText& text);

}  // namespace beeline::bench
