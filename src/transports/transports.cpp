// SPDX-License-Identifier: Apache-2.0
#include "beeline/transports/transports.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "core/environment.hpp"
#include "runtime/tls/session.hpp"
#include "transports/transport.hpp"

namespace beeline {

extern const TransportRow ucx_transport, sockets_transport;

namespace {

constexpr const TransportRow* transport_table[] = {&ucx_transport, &sockets_transport};

template <class Named>
std::string names_in(const Named& all) {
  std::vector<std::string> names;
  for (const auto& each : all) names.emplace_back(each->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Takes the text before `mark`, and the mark, from the front of `text`.
std::string take_part(std::string_view& text, char mark) {
  const std::string_view taken = text.substr(0, text.find(mark));
  text.remove_prefix(std::min(taken.size() + 1, text.size()));
  return std::string(taken);
}

ChosenTransport choose_entry(std::string_view entry, const std::string& list) {
  const std::string name = take_part(entry, ':');
  const auto row = std::ranges::find(transport_table, name, &TransportRow::name);
  if (row == std::end(transport_table))
    detail::refuse("BEELINE_TRANSPORTS", list, fmt::format("transports of these: {}", names_in(transport_table)));
  ChosenTransport chosen{*row, {}};
  while (!entry.empty()) {
    const std::string setting = take_part(entry, ':'), key = setting.substr(0, setting.find('='));
    const auto settings = (*row)->settings;
    if (std::ranges::find(settings, key, &TransportSetting::name) == settings.end())
      detail::refuse("BEELINE_TRANSPORTS", list, fmt::format("{}'s settings: {}", name, settings_text(**row)));
    chosen.settings[key] = setting.size() == key.size() ? "1" : setting.substr(key.size() + 1);
  }
  return chosen;
}

}  // namespace

std::string settings_text(const TransportRow& row) {
  std::vector<std::string> texts;
  for (const TransportSetting& each : row.settings) texts.push_back(fmt::format("{} ({})", each.name, each.meaning));
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

std::span<const TransportRow* const> transport_rows() { return transport_table; }

std::vector<ChosenTransport> choose_transports(const std::string& list, bool is_secure) {
  if (list.empty() && is_secure)
    return {{*std::ranges::find_if(transport_table, [](const TransportRow* row) { return row->encrypts; }), {}}};
  if (list.empty()) {
    const auto built = std::ranges::find_if(transport_table, [](const TransportRow* row) { return row->is_built; });
    return {{built == std::end(transport_table) ? transport_table[0] : *built, {}}};
  }
  std::vector<ChosenTransport> chosen;
  for (std::string_view rest = list; !rest.empty();) {
    chosen.push_back(choose_entry(take_part(rest, ','), list));
    require(
        !is_secure || chosen.back().row->encrypts, Status::invalid_argument,
        fmt::format("BEELINE_TRANSPORTS=\"{}\" with BEELINE_SECURE=1 (--secure): {} authenticates no connection and "
                    "encrypts nothing; sockets does",
                    list, chosen.back().row->name));
    const auto again = [&](const ChosenTransport& each) { return each.row == chosen.back().row; };
    if (std::ranges::count_if(chosen, again) > 1) detail::refuse("BEELINE_TRANSPORTS", list, "each transport once");
  }
  return chosen;
}

std::vector<TransportInfo> transports() {
  std::vector<TransportInfo> all;
  for (const TransportRow* row : transport_table)
    all.push_back({row->name, row->reason(), row->device_memory, settings_text(*row)});
  return all;
}

std::string no_network_reason(const std::string& list, bool secure) {
  std::string first = secure ? detail::tls_reason() : std::string();
  if (!first.empty()) return first;
  for (const ChosenTransport& each : choose_transports(list, secure)) {
    const std::string reason = each.row->reason();
    if (reason.empty()) return {};
    if (first.empty()) first = reason;
  }
  return first;
}

}  // namespace beeline
