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

/// A file's number of millionths; none with the reason.
Reading micro(const fs::path& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (file == nullptr) {
    const int why = errno;
    const char* advice = why == EACCES ? "; only root may read it, unless an administrator allows it (chmod a+r)" : "";
    return {{}, {}, fmt::format("{}: {}{}", path.string(), std::strerror(why), advice)};
  }
  char text[32];
  const std::size_t length = std::fread(text, 1, sizeof text, file.get());
  std::uint64_t value = 0;
  if (std::from_chars(text, text + length, value).ec != std::errc{})
    return {{}, {}, fmt::format("{}: \"{}\" is no number", path.string(), std::string_view(text, length))};
  return {static_cast<double>(value) / 1e6, {}, {}};
}

class RaplSource : public Source {
 public:
  RaplSource(Component component, fs::path counter) : Source(std::move(component)), counter_(std::move(counter)) {}
  Reading read(std::int64_t /*now_ns*/) override { return micro(counter_); }

 private:
  fs::path counter_;
};

/// Zones of RAPL in the folder: packages (intel-rapl:0), and what lies in them (intel-rapl:0:1). Those of
/// intel-rapl-mmio are the packages once more.
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
    Component component{.kind = kind,
                        .name = fmt::format("{}{}", name(kind), found[static_cast<int>(kind)]++),
                        .device = zone.filename(),
                        .tick_ns = 1'000'000,
                        .range_joules = micro(zone / "max_energy_range_uj").joules,
                        .most_watts = 2000};
    sources.push_back(std::make_unique<RaplSource>(std::move(component), zone / "energy_uj"));
  }
  for (const Kind kind : {Kind::cpu, Kind::dram})
    if (found[static_cast<int>(kind)] == 0)
      sources.push_back(synthetic_source(
          {.kind = kind, .name = name(kind), .device = {}, .range_joules = {}},
          [reason = fmt::format("{} shows no RAPL zone of the {}", powercap, name(kind))](std::int64_t) {
            return Reading{.joules = {}, .watts = {}, .reason = reason};
          }));
  return sources;
}

Sources machine_sources(const std::vector<std::string>& gpus, const std::string& powercap) {
  Sources sources = gpu_sources(gpus);
  for (auto& source : rapl_sources(powercap.empty() ? Config::from_environment().powercap : powercap))
    sources.push_back(std::move(source));
  return sources;
}

}  // namespace beeline::energy
