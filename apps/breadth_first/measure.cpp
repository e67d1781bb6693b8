// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <numeric>

#include "common/core_share.hpp"
#include "common/metered.hpp"
#include "common/program.hpp"
#include "common/reference.hpp"
#include "common/sampling.hpp"
#include "serial.hpp"
#include "statistics.hpp"
#include "validate.hpp"

namespace breadth_first {

namespace {

using apps::Json;

/// What the searches of a method have taken.
struct Searches {
  std::vector<double> seconds, edges;
  double cpu_seconds = 0, search_ns = 0, exchange_ns = 0;
  std::uint64_t levels = 0, validated = 0;
  std::string fault;  ///< of the first wrong tree
};

Json as_json(const Statistics& all) {
  return {{"minimum", all.minimum},    {"first_quartile", all.first_quartile},
          {"median", all.median},      {"third_quartile", all.third_quartile},
          {"maximum", all.maximum},    {"mean", all.mean},
          {"deviation", all.deviation}};
}

/// Collective. Levels of the serial reference, on rank 0 alone. The others wait for it in short calls: however long the
/// reference takes, only a lost rank lets them reach the deadline.
std::vector<std::int32_t> reference_levels(beeline::World& world, const Kronecker& graph, std::uint32_t root) {
  apps::Progress progress(world, "reference", 1);
  std::future<std::vector<std::int32_t>> levels;
  if (world.rank() == 0)
    levels = std::async(std::launch::async, [&graph, root] {
      apps::leave_core();
      return Serial(graph, apps::hardware_threads()).levels(root);
    });
  for (bool works = true; works;) {
    const bool mine = levels.valid() && levels.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready;
    works = world.allreduce(mine ? 1u : 0u) != 0;
  }
  progress.advance();
  return levels.valid() ? levels.get() : std::vector<std::int32_t>();
}

/// Measures methods with one graph.
class Session {
 public:
  Session(beeline::World& world, const Options& options)
      : world_(world), options_(options), metered_(world, options.energy_seconds), graph_(world, options.scale),
        roots_(roots()) {
    if (options.verify || options.validate) check_.emplace(graph_);
    if (options.verify) expected_ = reference_levels(world, graph_.kronecker(), roots_.front());
  }

  /// Collective. Returns whether the trees were right.
  bool run(const MethodInfo& info) {
    apps::Progress progress(world_, info.name, static_cast<int>(roots_.size()));
    const std::unique_ptr<Method> method = info.make(graph_);
    search(*method, roots_.front());  // warms up, as the official program does
    Searches all;
    for (std::size_t i = 0; i < roots_.size() && all.fault.empty(); ++i) {
      one_search(*method, roots_[i], all);
      if (options_.validate || (options_.verify && i == 0)) validate(roots_[i], i == 0, all);
      progress.advance();
    }
    print_result(info, *method, all);
    return all.fault.empty();
  }

 private:
  /// Collective. Throws on all ranks or on none: all have the same order of vertices.
  [[nodiscard]] std::vector<std::uint32_t> roots() const {
    if (options_.root) {
      beeline::require(
          graph_.has_edges(*options_.root), beeline::Status::invalid_argument,
          fmt::format("--root: vertex {} has no edges in the graph of scale {}", *options_.root, options_.scale));
      return {*options_.root};
    }
    std::vector<std::uint32_t> found = choose_roots(graph_.kronecker(), options_.roots,
                                                    [&](std::uint32_t vertex) { return graph_.has_edges(vertex); });
    beeline::require(
        found.size() == options_.roots, beeline::Status::invalid_argument,
        fmt::format("--roots: {} roots asked for, and the rules of Graph500 find {} in the graph of scale {}",
                    options_.roots, found.size(), options_.scale));
    return found;
  }

  Course search(Method& method, std::uint32_t root) {
    const Course course = method.search(graph_.order().positions[root]);
    graph_.name_parents();
    return course;
  }
  void one_search(Method& method, std::uint32_t root, Searches& all) {
    Course course{};
    const apps::Sample sample = apps::timed_run(world_, [&] { course = search(method, root); });
    all.seconds.push_back(sample.seconds), all.cpu_seconds += sample.cpu_seconds;
    all.edges.push_back(static_cast<double>(graph_.edges_of_tree()));
    all.search_ns += static_cast<double>(course.search_ns), all.exchange_ns += static_cast<double>(course.exchange_ns);
    all.levels = std::max(all.levels, course.levels);
  }
  void validate(std::uint32_t root, bool is_first, Searches& all) {
    const Faults faults = check_->check(root);
    ++all.validated;
    const auto fault = [&](const std::string& text) { all.fault = fmt::format("root {}: {}", root, text); };
    if (!faults.none())
      fault(faults.text());
    else if (static_cast<double>(check_->edges()) != all.edges.back())
      fault(fmt::format("{:.0f} edges were counted, and the input has {}", all.edges.back(), check_->edges()));
    else if (options_.verify && is_first && world_.allreduce(agrees() ? 0u : 1u) != 0)
      fault("levels differ from those of the serial reference");
  }
  /// Whether the levels are those of the reference, which only rank 0 has.
  [[nodiscard]] bool agrees() const { return expected_.empty() || expected_ == check_->levels(); }

  void print_result(const MethodInfo& info, Method& method, const Searches& all) {
    Json line = apps::result_line("breadth_first", info, world_);
    const Statistics seconds = statistics_of(all.seconds), edges = statistics_of(all.edges),
                     rates = rates_of(all.seconds, all.edges);
    const auto searches = static_cast<double>(all.seconds.size());
    line["scale"] = options_.scale;
    line["edge_factor"] = edge_factor;
    line["vertices"] = graph_.order().vertices;
    line["largest_degree"] = graph_.order().largest_degree;
    line["roots"] = all.seconds.size();
    line["generation_seconds"] = graph_.generation_seconds();
    line["construction_seconds"] = graph_.construction_seconds();
    line["seconds"] = seconds.mean;
    line["teps"] = rates.mean;
    line["levels"] = all.levels;
    line["communication_share"] = all.exchange_ns / all.search_ns;
    line["cpu_seconds"] = all.cpu_seconds / searches;
    line["statistics"] = {{"seconds", as_json(seconds)}, {"edges", as_json(edges)}, {"teps", as_json(rates)}};
    line["seconds_of_roots"] = all.seconds;
    line["validated_roots"] = all.validated;
    line["fault"] = all.fault.empty() ? Json() : Json(all.fault);
    line["verified"] = all.validated > 0 ? Json(all.fault.empty()) : Json();
    const double edges_of_all = std::accumulate(all.edges.begin(), all.edges.end(), 0.0);
    metered_.add(line, "edges_per_joule", edges_of_all, [&] {
      for (const std::uint32_t root : roots_) search(method, root);
    });
    apps::print_line(world_.rank(), line);
  }

  beeline::World& world_;
  const Options& options_;
  apps::Metered metered_;
  Graph graph_;
  const std::vector<std::uint32_t> roots_;
  std::optional<TreeCheck> check_;
  std::vector<std::int32_t> expected_;  ///< levels from the first root: on rank 0, if it verifies
};

}  // namespace

bool measure(beeline::World& world, const Options& options) {
  Session session(world, options);
  bool all_right = true;
  for (const MethodInfo& info : options.methods) all_right &= session.run(info);
  return all_right;
}

}  // namespace breadth_first
