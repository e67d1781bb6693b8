// SPDX-License-Identifier: Apache-2.0
#include "common/quantity.hpp"

#include <charconv>
#include <sstream>
#include <string_view>

namespace apps {

std::optional<std::size_t> parse_quantity(const std::string& text) {
  constexpr std::size_t largest = std::size_t{1} << 40;
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || end - after > 1 || number > largest) return std::nullopt;
  if (after == end) return number;
  const std::size_t unit = std::string_view("KMG").find(*after);
  if (unit == std::string_view::npos || number > largest >> (10 * (unit + 1))) return std::nullopt;
  return number << (10 * (unit + 1));
}

std::vector<std::string> list_items(const std::string& text) {
  std::vector<std::string> items;
  if (text.empty()) return items;
  std::istringstream rest(text + ",");
  for (std::string item; std::getline(rest, item, ',');) items.push_back(item);
  return items;
}

double gibibytes(std::size_t bytes) { return static_cast<double>(bytes) / static_cast<double>(std::size_t{1} << 30); }

}  // namespace apps
