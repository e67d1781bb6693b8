// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <optional>

#include "common/program.hpp"
#include "common/reference.hpp"
#include "common/sampling.hpp"

namespace merge_sort {

namespace {

using apps::Json;
using apps::Sample;

constexpr int default_sorts = 5;

/// A timed sort.
struct Timed {
  Sample sample;
  Phases phases;
};

/// Measures methods on one number of keys.
class Session {
 public:
  Session(const apps::Devices& devices, const Options& options, std::size_t keys)
      : setup_{devices, {keys, options.bits, 1}}, options_(options) {
    if (options.verify) expected_ = contents_of(setup_.problem, apps::hardware_threads());
  }

  /// Returns whether the result was right.
  bool run(const MethodInfo& info) {
    const int sorts = options_.sorts > 0 ? options_.sorts : default_sorts;
    apps::Progress progress(info.name, sorts + 2);
    const std::unique_ptr<Method> method = info.make(setup_);
    static_cast<void>(timed(*method));
    progress.advance();
    std::vector<Timed> all;
    for (int sort = 0; sort < sorts; ++sort) {
      all.push_back(timed(*method));
      progress.advance();
    }
    std::optional<Checked> checked;  // the keys of the last timed sort
    if (expected_) checked = check_keys(method->gather());
    progress.advance();
    print_result(info, all, checked);
    return !checked || is_right(*checked);
  }

 private:
  static Timed timed(Method& method) {
    Timed one{};
    method.reset();
    one.sample = apps::timed_run([&] { one.phases = method.sort(); });
    return one;
  }

  [[nodiscard]] bool is_right(const Checked& checked) const {
    return checked.in_order && checked.contents == *expected_;
  }

  void print_result(const MethodInfo& info, const std::vector<Timed>& all, const std::optional<Checked>& checked) {
    std::vector<Timed> sorted = all;
    std::ranges::sort(sorted, {}, [](const Timed& one) { return one.sample.seconds; });
    const Timed& median = sorted[sorted.size() / 2];
    const Phases& phases = median.phases;
    const double seconds = median.sample.seconds;
    Json line = apps::result_line("merge_sort", info, setup_.devices);
    line.update({{"keys", setup_.problem.keys},
                 {"key_bits", setup_.problem.bits},
                 {"sorts", all.size()},
                 {"seconds", seconds},
                 {"keys_per_second", static_cast<double>(setup_.problem.keys) / seconds},
                 {"sort_seconds", phases.sort},
                 {"search_seconds", phases.search},
                 {"swap_seconds", phases.swap},
                 {"merge_seconds", phases.merge},
                 {"communication_share", (phases.search + phases.swap) / phases.all()},
                 {"cpu_seconds", median.sample.cpu_seconds}});
    line["verified"] = checked ? Json(is_right(*checked)) : Json();
    std::vector<Sample> samples;
    for (const Timed& one : all) samples.push_back(one.sample);
    line["samples_seconds"] = apps::samples_seconds(samples);
    apps::print_line(0, line);
  }

  Setup setup_;
  const Options& options_;
  std::optional<Contents> expected_;
};

}  // namespace

bool measure(const apps::Devices& devices, const Options& options) {
  return apps::measure_on<Session>(devices, options, options.keys);
}

}  // namespace merge_sort
