// SPDX-License-Identifier: Apache-2.0
#include "host/task_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "core/exception_text.hpp"
#include "core/thread.hpp"

namespace beeline {

namespace {

using detail::TaskCall;

/// Time for which an idle engine's thread of a GPU rank polls without pause; then it sleeps between polls.
constexpr std::uint64_t spin_ns = 200'000;
/// Polling interval of a host rank's thread, which workers wake.
constexpr int woken_poll_us = 100'000;
/// Polling interval while kernels run.
constexpr int busy_poll_us = 20;
/// Number of lanes made in advance, while no kernel waits on the device; further lanes are made when needed.
constexpr std::size_t first_lanes = 3;
/// Time limit of the trial of a device graph.
constexpr std::uint64_t trial_ns = 1'000'000'000;

}  // namespace

TaskKernels::TaskKernels(Team& team, Work work)
    : team_(team), work_(std::move(work)), poll_us_(team.world().config().engine_poll_us),
      call_states_(team, work_.workers + 1),
      graphs_(team, std::size_t{work_.functions} * work_.workers * detail::graphs_of_worker), asleep_(team, 1),
      requests_(team, work_.workers + 1, Heap::pinned), over_(team, 1, Heap::pinned),
      counts_(team, 1), terms_{.kernels = {.calls = call_states_.data(),
                                           .graphs = graphs_.data(),
                                           .requests = requests_.data(),
                                           .asleep = asleep_.data(),
                                           .service = {},
                                           .engine = {.wanted = nullptr,
                                                      .asleep_mark =
                                                          reinterpret_cast<std::uintptr_t>(static_cast<Waker*>(&bell_)),
                                                      .lease_ns = 0,
                                                      .idle_ns = 0}},
                               .counts = counts_.data(),
                               .over = over_.data(),
                               .calls = work_.workers + 1},
      kernels_(work_.functions), lent_(work_.workers) {
  make_service();
  thread_ = detail::start_thread_for("the start of kernels of tasks", [this] { run(); });
}

TaskKernels::~TaskKernels() {
  service_.reset();
  closing_ = true;
  bell_.wake();
  thread_.join();
  try {
    for (const Lane& lane : lanes_) drain(*lane.stream);
    for (const Lent& lent : lent_)
      if (lent.stream != nullptr) drain(*lent.stream);
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("kernels of tasks end: {}", error.what()), team_.world().rank());
  }
}

void TaskKernels::drain(Stream& stream) const {
  const std::uint64_t start = machine::clock_ns();
  while (!stream.drained()) {
    require(machine::clock_ns() - start < team_.context().deadline_ns, Status::deadline,
            "one still runs at the deadline");
    std::this_thread::sleep_for(std::chrono::microseconds(busy_poll_us));
  }
}

/// All GPU ranks make the service, also those whose devices cannot launch graphs, since its memory is allocated
/// collectively.
void TaskKernels::make_service() {
  if (!is_gpu()) {
    why_no_graphs_ = "a host rank has no device graphs";
    return;
  }
  World& world = team_.world();
  service_ = std::make_unique<LeasedGrid>(
      team_, LeasedGrid::Work{.name = "launch service of tasks",
                              .room = room_of_launch_service(world),
                              .start = [this](Stream&, const Lease& lease) { start_lease(lease); },
                              .is_over = [this] { return is_lease_over(); },
                              .lease_ns = work_.lease_ns,
                              .idle_ns = work_.idle_ns});
  if (why_no_graphs_.empty()) why_no_graphs_ = try_graphs();
}

/// Lets the launch service start a kernel as a test. Returns the reason if it cannot; empty if it can.
std::string TaskKernels::try_graphs() {
  World& world = team_.world();
  TaskCall* const call = call_states_.data() + work_.workers;  // belongs to no worker
  try {
    const std::unique_ptr<Stream> stream = world.make_stream();
    recorded_.push_back(record_for_kernels(*stream, [&] { launch_trial(team_, *stream, call); }));
    const std::uint64_t graph = recorded_.back()->handle(), number = 1;
    world.copy(&call->graph, &graph, sizeof graph);
    world.copy(&call->asked, &number, sizeof number);
    world.copy(&call->fired, &number, sizeof number);
    detail::SystemAtomic<std::uint64_t>(*service_->terms().wanted).store(1, std::memory_order_release);
    std::uint64_t ended = 0;
    for (const std::uint64_t start = machine::clock_ns(); ended != number;) {
      if (machine::clock_ns() - start > trial_ns) {
        world.copy(&call->started, &number, sizeof number);  // the service stops trying
        LaunchCounts counts{};
        world.copy(&counts, counts_.data(), sizeof counts);
        return fmt::format("a graph that the device launched did not run within {} s; error {} of {} launches",
                           trial_ns / 1'000'000'000, counts.last_error, counts.refused);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(busy_poll_us));
      world.copy(&ended, &call->ended, sizeof ended);
    }
    const LaunchCounts none{};
    world.copy(counts_.data(), &none, sizeof none);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void TaskKernels::start_lease(const Lease& lease) {
  if (leases_begun_++ == 0) {  // all leases have the same arguments; the first ends at once
    terms_.kernels.service = lease;
    terms_.kernels.service.lease_ns = work_.lease_ns;
    for (std::size_t i = 0; i < std::min<std::size_t>(work_.workers + 1, first_lanes); ++i) add_lane();
  }
  // A lane in use has at least one running kernel, and the requesting worker has none, so the number of lanes is small.
  const auto is_free = [](const Lane& lane) { return lane.stream->drained(); };
  const auto free = std::find_if(lanes_.begin(), lanes_.end(), is_free);
  lane_ = static_cast<std::size_t>(free - lanes_.begin());
  if (free == lanes_.end()) add_lane();
  lanes_[lane_].lease->run(*lanes_[lane_].stream);
}

void TaskKernels::add_lane() {
  Lane lane{team_.world().make_stream(StreamPriority::high), nullptr};
  lane.lease = record_work(*lane.stream, [&] { launch_service(team_, *lane.stream, terms_); });
  lanes_.push_back(std::move(lane));
}

bool TaskKernels::is_lease_over() {
  if (lanes_[lane_].stream->idle()) return true;
  return detail::load_acquired(*over_.data()) == leases_begun_;
}

void TaskKernels::check_shape(std::uint32_t function, const Kernel& kernel) {
  require(kernel.shape.blocks > 0 && kernel.shape.threads > 0, Status::invalid_argument,
          fmt::format("{} blocks of {} threads; at least one", kernel.shape.blocks, kernel.shape.threads));
  if (!is_gpu()) return;
  const std::unique_ptr<Stream> stream = team_.world().make_stream();
  LaunchOptions options = kernel.shape;
  options.stream = stream.get();
  static_cast<void>(record_work(*stream, [&] { work_.start(function, options, call_states_.data()); }));
}

void TaskKernels::record_graphs(std::uint32_t function, Kernel& kernel) {
  const std::unique_ptr<Stream> stream = team_.world().make_stream();
  LaunchOptions options = kernel.shape;
  options.stream = stream.get();
  for (std::uint32_t worker = 0; worker < work_.workers; ++worker)
    for (std::uint32_t i = 0; i < detail::graphs_of_worker; ++i) {
      recorded_.push_back(
          record_for_kernels(*stream, [&] { work_.start(function, options, call_states_.data() + worker); }));
      kernel.graphs.push_back(recorded_.back()->handle());
    }
}

void TaskKernels::prepare(std::uint32_t function, const TaskKernelShape& shape) {
  Kernel kernel{.shape = {.blocks = shape.blocks, .threads = shape.threads, .name = nullptr},
                .start = {KernelStarter::engine, {}},
                .graphs = {}};
  check_shape(function, kernel);
  const bool by_graph = shape.start != KernelStarter::engine;
  if (!by_graph) kernel.start.reason = "the registration says so";
  if (by_graph && why_no_graphs_.empty()) try {
      record_graphs(function, kernel);
      kernel.start.by = KernelStarter::device_graph;
    } catch (const Error& error) {
      kernel.graphs.clear();
      kernel.start.reason = error.what();
    }
  else if (by_graph)
    kernel.start.reason = why_no_graphs_;
  require(shape.start != KernelStarter::device_graph || kernel.start.by == KernelStarter::device_graph,
          Status::unavailable, "no start by a device graph: " + kernel.start.reason);
  kernel.graphs.resize(std::size_t{work_.workers} * detail::graphs_of_worker, 0);
  prepared_ = std::move(kernel);
}

void TaskKernels::adopt(std::uint32_t function) {
  kernels_[function] = std::move(prepared_);
  const std::vector<std::uint64_t>& graphs = kernels_[function].graphs;
  team_.world().copy(graphs_.data() + function * graphs.size(), graphs.data(), graphs.size() * sizeof graphs[0]);
}

void TaskKernels::count(TaskStatistics& sums) const {
  LaunchCounts counts{};
  team_.world().copy(&counts, counts_.data(), sizeof counts);
  sums.kernels_by_graph += counts.fired;
  sums.kernels_by_engine += by_engine_;
  sums.handed_kernels += counts.handed;
  sums.refused_launches += counts.refused;
  if (service_ != nullptr) sums.launch_leases += service_->leases();
}

void TaskKernels::run() {
  std::uint64_t busy = machine::clock_ns();
  try {
    if (is_gpu()) use_gpu(team_.world().device().index);  // CUDA gives other threads a context on GPU 0
    while (!closing_) {
      if (serve()) busy = machine::clock_ns();
      const bool spins = is_gpu() && (poll_us_ == 0 || machine::clock_ns() - busy < spin_ns);
      const bool is_awaiting = std::any_of(lent_.begin(), lent_.end(), [](const Lent& lent) { return lent.is_busy; });
      if (spins)
        std::this_thread::yield();
      else
        bell_.wait(is_awaiting ? busy_poll_us : is_gpu() ? poll_us_ : woken_poll_us);
    }
  } catch (const std::exception& error) {
    team_.give_up(fmt::format("the engine that starts kernels of tasks: {}", error.what()));
  }
}

bool TaskKernels::serve() {
  bool any = false;
  for (std::uint32_t worker = 0; worker < work_.workers; ++worker) {
    Lent& lent = lent_[worker];
    const std::uint64_t request = detail::load_acquired(requests_.data()[worker]);
    try {
      if (request != lent.request) {
        start(worker, request);
        any = true;
      }
      if (lent.is_busy && lent.stream->idle()) lent.is_busy = false;
    } catch (...) {  // of any type, since the kernel is user code
      lent.is_busy = false;
      team_.give_up(fmt::format("{}: {}", work_.name(worker), detail::current_exception_text()));
    }
  }
  return any;
}

void TaskKernels::start(std::uint32_t worker, std::uint64_t request) {
  Lent& lent = lent_[worker];
  if (lent.stream == nullptr) lent.stream = team_.world().make_stream();
  lent.request = request, lent.is_busy = true;
  const std::uint32_t function = TaskCall::function_of(request);
  LaunchOptions options = kernels_[function].shape;
  options.stream = lent.stream.get();
  work_.start(function, options, call_states_.data() + worker);
  by_engine_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace beeline
