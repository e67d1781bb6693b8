// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>

#include "bandwidths.hpp"
#include "common/program.hpp"
#include "common/reference.hpp"
#include "common/sampling.hpp"
#include "serial.hpp"

namespace fft {

namespace {

using apps::Json;
using apps::Sample;
using beeline::require;
using beeline::Status;

constexpr int samples = 3;
constexpr double seconds_of_a_sample = 0.25;
constexpr int phases = 1 + samples + 2;  // warm-up, timed runs, runs without communication, verification
constexpr double largest_error = 1e-6;   // relative, of a transform in single precision

/// Relative L2 error of `observed`; infinite if a value is not a number.
double relative_error(const std::vector<std::complex<double>>& expected, const std::vector<Complex>& observed) {
  double difference = 0, all = 0;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    difference += std::norm(expected[k] - std::complex<double>(observed[k].re, observed[k].im));
    all += std::norm(expected[k]);
  }
  const double error = std::sqrt(difference / all);
  return std::isnan(error) ? INFINITY : error;
}

void write_file(const std::string& path, const std::vector<Complex>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(Complex)));
  file.close();
  require(file.good(), Status::invalid_argument, fmt::format("--write: cannot write {}", path));
}

/// Measures methods with vectors of one length.
class Session {
 public:
  Session(const apps::Devices& devices, const Options& options, std::size_t count)
      : options_(options), all_{devices, count}, one_{{devices.front()}, count} {
    if (options.verify) expected_ = serial_transform(count, apps::hardware_threads());
  }

  /// Returns whether the result was right.
  bool run(const MethodInfo& info) {
    apps::Progress progress(info.name, phases);
    const Setup& setup = info.on_one_device ? one_ : all_;
    const std::unique_ptr<Method> method = info.make(setup);
    const int transforms = options_.transforms > 0 ? options_.transforms : choose_transforms(*method);
    progress.advance();
    std::vector<Sample> timed;
    for (int sample = 0; sample < samples; ++sample) {
      timed.push_back(timed_transforms(*method, transforms, true));
      progress.advance();
    }
    const double local_seconds = timed_transforms(*method, transforms, false).seconds / transforms;
    progress.advance();
    const std::optional<double> error = verify(*method);
    const bool is_right = !error || *error <= largest_error;
    progress.advance();
    Json line = apps::result_line("fft", info, setup.devices);
    add_timing(line, timed, transforms, local_seconds);
    add_bound(line, *method);
    line["relative_error"] = error ? Json(*error) : Json();
    line["verified"] = error ? Json(is_right) : Json();
    apps::print_line(0, line);
    return is_right;
  }

 private:
  /// Each run has as many transforms as keep the values in range, and starts with fresh elements; filling is not timed.
  Sample timed_transforms(Method& method, int transforms, bool communicate) {
    const int at_once = transforms_in_range(all_.count);
    Sample all{0, 0};
    for (int left = transforms; left > 0; left -= at_once) {
      method.reset();
      const Sample some = apps::timed_run([&] { method.run(std::min(left, at_once), communicate); });
      all.seconds += some.seconds, all.cpu_seconds += some.cpu_seconds;
    }
    return all;
  }

  /// Chooses how many transforms a timed run has; also warms up.
  int choose_transforms(Method& method) {
    constexpr int fewest = 3, most = 10'000;
    static_cast<void>(timed_transforms(method, 1, true));
    return apps::runs_of_sample(seconds_of_a_sample, timed_transforms(method, 1, true).seconds, fewest, most);
  }

  /// The error of one more transform; none without verification.
  std::optional<double> verify(Method& method) {
    if (!options_.verify && options_.file.empty()) return std::nullopt;
    method.reset();
    method.run(1);
    const std::vector<Complex> observed = method.gather();
    if (!options_.file.empty()) write_file(options_.file, observed);
    if (!options_.verify) return std::nullopt;
    return relative_error(expected_, observed);
  }

  void add_timing(Json& line, const std::vector<Sample>& timed, int transforms, double local_seconds) const {
    const Sample one = apps::median(timed);
    line["elements"] = all_.count;
    line["bytes"] = all_.count * sizeof(Complex);
    line["transforms"] = transforms;
    line["seconds"] = one.seconds / transforms;
    line["local_seconds"] = local_seconds;
    line["transfer_share"] = std::max(0.0, 1 - local_seconds * transforms / one.seconds);
    line["cpu_seconds"] = one.cpu_seconds / transforms;
    line["samples_seconds"] = apps::samples_seconds(timed, transforms);
  }

  static void add_bound(Json& line, Method& method) {
    const Bandwidths found = measure_bandwidths(method.parts());
    const double bound = bound_seconds(method.parts(), found);
    const double seconds = line["seconds"], local_seconds = line["local_seconds"];
    line["link_bytes_per_second"] = found.link > 0 ? Json(found.link) : Json();
    line["memory_bytes_per_second"] = found.memory;
    line["bound_seconds"] = bound;
    line["share_of_bound"] = bound / seconds;
    line["share_of_exchange_bound"] = (exchange_seconds(method.parts(), found) + local_seconds) / seconds;
  }

  const Options& options_;
  Setup all_, one_;
  std::vector<std::complex<double>> expected_;
};

}  // namespace

bool measure(const apps::Devices& devices, const Options& options) {
  return apps::measure_on<Session>(devices, options, options.counts);
}

}  // namespace fft
