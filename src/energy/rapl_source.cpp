// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "beeline/core/config.hpp"
#include "beeline/energy/source.hpp"
#include "core/text_file.hpp"

namespace beeline::energy {

namespace {

namespace fs = std::filesystem;

/// Bytes of a name or a file as printable text: bytes other than printable ASCII are written in hex.
std::string printable(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : bytes)
    text += byte >= 0x20 && byte < 0x7f ? std::string(1, static_cast<char>(byte)) : fmt::format("\\x{:02x}", byte);
  return text;
}

/// A file's number, in millionths; if it cannot be read, the reason.
Reading micro(const fs::path& path) {
  const auto file = open_text(path);
  if (file == nullptr) {
    const int why = errno;
    const char* advice = why == EACCES ? "; only root may read it, unless an administrator allows it (chmod a+r)" : "";
    return {{}, {}, fmt::format("{}: {}{}", printable(path.native()), std::strerror(why), advice)};
  }
  char bytes[32];
  std::string_view text(bytes, std::fread(bytes, 1, sizeof bytes, file.get()));
  text = text.substr(0, text.find('\n'));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    return {{}, {}, fmt::format("{}: \"{}\" is no number", printable(path.native()), printable(text))};
  return {static_cast<double>(value) / 1e6, {}, {}};
}

/// The joules at which a zone's counter wraps to 0; if they cannot be read, the reason.
Reading range_of(const fs::path& zone) {
  const fs::path path = zone / "max_energy_range_uj";
  Reading range = micro(path);
  if (range.joules == 0) range = {{}, {}, fmt::format("{}: a range of 0", printable(path.native()))};
  return range;
}

/// RAPL zones in the folder: packages (intel-rapl:0) and their subzones (intel-rapl:0:1). The zones of intel-rapl-mmio
/// are left out, since they are the same packages.
std::vector<fs::path> zones(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with("intel-rapl:")) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

const char* name(Kind kind) noexcept {
  static constexpr const char* names[] = {"gpu", "cpu", "dram"};
  return names[static_cast<int>(kind)];
}

Sources rapl_sources(const std::string& powercap) {
  Sources sources;
  int found[] = {0, 0, 0};
  for (const fs::path& zone : zones(powercap)) {
    const std::string what = read_text(zone / "name");
    const bool is_package = what.starts_with("package");
    if (!is_package && !what.starts_with("dram")) continue;  // core and uncore are parts of the package
    const Kind kind = is_package ? Kind::cpu : Kind::dram;
    const Reading range = range_of(zone);
    Component component{.kind = kind,
                        .name = fmt::format("{}{}", name(kind), found[static_cast<int>(kind)]++),
                        .device = printable(zone.filename().native()),
                        .tick_ns = 1'000'000,
                        .range_joules = range.joules,
                        .most_watts = 2000};
    if (range.joules)
      sources.push_back(synthetic_source(std::move(component),
                                         [counter = zone / "energy_uj"](std::int64_t) { return micro(counter); }));
    else
      sources.push_back(unreadable_source(std::move(component), range.reason));
  }
  for (const Kind kind : {Kind::cpu, Kind::dram})
    if (found[static_cast<int>(kind)] == 0)
      sources.push_back(
          unreadable_source({.kind = kind, .name = name(kind), .device = {}, .range_joules = {}},
                            fmt::format("{} shows no RAPL zone of the {}", printable(powercap), name(kind))));
  return sources;
}

Sources machine_sources(const std::vector<std::string>& gpus, const std::string& powercap) {
  Sources sources = gpu_sources(gpus);
  for (auto& source : rapl_sources(powercap.empty() ? Config::from_environment().powercap : powercap))
    sources.push_back(std::move(source));
  return sources;
}

}  // namespace beeline::energy
