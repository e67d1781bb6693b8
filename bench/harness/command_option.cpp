// SPDX-License-Identifier: Apache-2.0
#include "harness/command_option.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "beeline/core/error.hpp"

namespace beeline::bench {

namespace {

using Json = nlohmann::ordered_json;
using Type = CommandOption::Type;

/// The size as a multiple of the largest unit (K, M or G) that divides it.
std::string size_text(std::uint64_t bytes) {
  for (const auto& [shift, suffix] : {std::pair{30, 'G'}, {20, 'M'}, {10, 'K'}})
    if (bytes >> shift != 0 && bytes % (std::uint64_t{1} << shift) == 0)
      return fmt::format("{}{}", bytes >> shift, suffix);
  return std::to_string(bytes);
}

std::string valid_values(const CommandOption& option) {
  if (option.is_name()) return fmt::format("{}{}", option.is_list() ? "all, " : "", fmt::join(option.choices, ", "));
  const std::string multiple = option.multiple_of == 1 ? "" : fmt::format(", a multiple of {}", option.multiple_of);
  if (!option.is_size()) return fmt::format("{} to {}{}", option.least, option.most, multiple);
  return fmt::format("{} to {} bytes{}, written like 8, 4K, 1M or 2G", size_text(option.least), size_text(option.most),
                     multiple);
}

/// The number in `text`; if it is a size, K, M or G (powers of 1024) may follow.
std::optional<std::uint64_t> number_of(const std::string& text, bool is_size) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return {};
  if (rest == end) return number;
  const std::size_t suffix = std::string_view("kKmMgG").find(*rest);
  if (!is_size || rest + 1 != end || suffix == std::string_view::npos) return {};
  const std::size_t shift = 10 * (suffix / 2 + 1);
  if (number > std::numeric_limits<std::uint64_t>::max() >> shift) return {};
  return number << shift;
}

Json item_of(const CommandOption& option, const std::string& text) {
  if (option.is_name()) {
    if (std::find(option.choices.begin(), option.choices.end(), text) != option.choices.end()) return text;
  } else if (const auto number = number_of(text, option.is_size());
             number && *number >= option.least && *number <= option.most && *number % option.multiple_of == 0) {
    return *number;
  }
  throw Error(Status::invalid_argument,
              fmt::format("bad --{} \"{}\"; valid: {}", option.name, text, valid_values(option)));
}

Json list_of(const CommandOption& option, const std::string& text) {
  if (option.is_name() && text == "all") return option.choices;
  Json list = Json::array();
  std::istringstream items(text + ",");
  for (std::string item; std::getline(items, item, ',');) list.push_back(item_of(option, item));
  return list;
}

}  // namespace

Json value_of(const CommandOption& option, const GivenText& text) {
  if (option.type == Type::flag) return text.has_value();
  if (!text && option.initial.empty()) return nullptr;
  const std::string meant = text.value_or(option.initial);
  return option.is_list() ? list_of(option, meant) : item_of(option, meant);
}

Json described(const CommandOption& option, const GivenText& text) {
  constexpr const char* types[] = {"flag", "integer", "size", "name", "integer", "size", "name"};
  const bool is_number = option.type != Type::flag && !option.is_name();
  const auto limit = [&](std::uint64_t value) { return is_number ? Json(value) : Json(nullptr); };
  return {{"name", option.name},
          {"type", types[static_cast<int>(option.type)]},
          {"list", option.is_list()},
          {"unit", option.is_size() ? Json("bytes") : Json(nullptr)},
          {"help", option.help},
          {"default", option.initial.empty() ? Json(nullptr) : Json(option.initial)},
          {"least", limit(option.least)},
          {"most", limit(option.most)},
          {"multiple_of", limit(option.multiple_of)},
          {"choices", option.is_name() ? Json(option.choices) : Json(nullptr)},
          {"value", value_of(option, text)}};
}

}  // namespace beeline::bench
