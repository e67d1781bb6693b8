// SPDX-License-Identifier: Apache-2.0
#include "beeline/energy/meter.hpp"

#include <chrono>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "beeline/core/error.hpp"
#include "core/fork.hpp"
#include "core/thread.hpp"
#include "energy/counter.hpp"
#include "energy/cpu_use.hpp"
#include "energy/window.hpp"

namespace beeline::energy {

namespace {

using Mark = Counter::Mark;

constexpr std::int64_t poll_ns = 1'000'000;              // while a tick is awaited
constexpr std::int64_t longest_wait_ns = 1'000'000'000;  // 10 ticks of NVML: a counter without one stands still
constexpr int rest_of_reading = 250;                     // pause after a reading, in reading times: 0.4 % of a core
constexpr std::size_t most_samples = std::size_t{1} << 20;

double cpu_seconds_of_this_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace

Clock Clock::steady() {
  using Steady = std::chrono::steady_clock;
  return {.now_ns = [] { return std::chrono::nanoseconds(Steady::now().time_since_epoch()).count(); },
          .sleep_ns = [](std::int64_t time) { std::this_thread::sleep_for(std::chrono::nanoseconds(time)); }};
}

struct Meter::Implementation {
  explicit Implementation(Sources sources, Clock given) : clock(std::move(given)) {
    for (auto& source : sources) counters.emplace_back(std::move(source));
    made_ns = clock.now_ns();
    read_all();
  }

  void read_all() {
    const std::lock_guard lock(mutex);
    for (Counter& counter : counters) counter.read(clock);
  }

  std::vector<Mark> marks() {
    const std::lock_guard lock(mutex);
    std::vector<Mark> all;
    for (const Counter& counter : counters) all.push_back(counter.mark());
    return all;
  }

  std::vector<Mark> next_ticks();
  /// Replaces the marks of counters without long ticks by current ones.
  void mark_quick_ones(std::vector<Mark>& marks);
  void sample(std::int64_t period_ns);

  Clock clock;
  const std::uint32_t fork_depth = detail::fork_depth();
  std::int64_t made_ns = 0;
  mutable std::mutex mutex;
  std::deque<Counter> counters;
  std::vector<Sample> samples;
  std::uint64_t dropped = 0;
  double sampling_seconds = 0;
  std::condition_variable ended;
  bool ending = false;
  std::thread sampler;
};

/// Marks at each counter's next tick; for counters without long ticks, and for broken ones, current marks.
std::vector<Mark> Meter::Implementation::next_ticks() {
  std::vector<std::uint64_t> before;
  std::vector<std::optional<Mark>> found(counters.size());
  {
    const std::lock_guard lock(mutex);
    for (Counter& counter : counters) {
      counter.read(clock);  // an advance since the last reading is not an observed tick
      before.push_back(counter.ticks());
    }
  }
  const std::int64_t end_ns = clock.now_ns() + longest_wait_ns;
  for (bool waits = true; waits;) {
    waits = false;
    const bool is_late = clock.now_ns() >= end_ns;
    {
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < counters.size(); ++i) {
        if (found[i]) continue;
        Counter& counter = counters[i];
        counter.read(clock);
        if (!counter.has_long_ticks() || !counter.is_good() || counter.ticks() != before[i] || is_late) {
          found[i] = counter.mark();
          found[i]->stands_still = counter.has_long_ticks() && counter.ticks() == before[i];
        }
        waits |= !found[i];
      }
    }
    if (waits) clock.sleep_ns(poll_ns);
  }
  std::vector<Mark> marks;
  for (const auto& mark : found) marks.push_back(*mark);
  return marks;
}

void Meter::Implementation::mark_quick_ones(std::vector<Mark>& marks) {
  const std::lock_guard lock(mutex);
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (!counters[i].has_long_ticks()) {
      counters[i].read(clock);
      marks[i] = counters[i].mark();
    }
}

void Meter::Implementation::sample(std::int64_t period_ns) {
  using Steady = std::chrono::steady_clock;
  std::vector<Steady::time_point> due(counters.size());
  std::unique_lock lock(mutex);
  for (auto next = Steady::now(); !ending; ended.wait_until(lock, next, [&] { return ending; })) {
    for (std::size_t i = 0; i < counters.size(); ++i) {
      const auto begin = Steady::now();
      if (begin < due[i]) {
        if (const auto watts = counters[i].quick_watts())
          samples.push_back(
              {.component = i, .time_ns = clock.now_ns() - made_ns, .joules = {}, .watts = watts, .reason = {}});
        continue;
      }
      counters[i].read(clock);
      samples.push_back(counters[i].sample(i, made_ns));
      const auto end = Steady::now();
      due[i] = end + std::min<Steady::duration>(rest_of_reading * (end - begin), std::chrono::seconds(2));
    }
    if (samples.size() > most_samples) {
      samples.erase(samples.begin(), samples.begin() + most_samples / 2);
      dropped += most_samples / 2;
    }
    sampling_seconds = cpu_seconds_of_this_thread();
    next = std::max(next + std::chrono::nanoseconds(period_ns), Steady::now());
  }
}

Meter::Meter(Sources sources, Clock clock)
    : implementation_(std::make_unique<Implementation>(std::move(sources), std::move(clock))) {}

Meter::~Meter() {
  Implementation& mine = *implementation_;
  if (mine.fork_depth != detail::fork_depth()) {  // the thread belongs to the parent process
    static_cast<void>(implementation_.release());
    return;
  }
  {
    const std::lock_guard lock(mine.mutex);
    mine.ending = true;
  }
  mine.ended.notify_all();
  if (mine.sampler.joinable()) mine.sampler.join();
}

std::vector<Component> Meter::components() const {
  std::vector<Component> all;
  for (const Counter& counter : implementation_->counters) all.push_back(counter.component());
  return all;
}

Meter::Window Meter::start() {
  Window window;
  window.marks_ = implementation_->next_ticks();
  implementation_->mark_quick_ones(window.marks_);
  window.cpu_ = cpu_use();
  window.begin_ns_ = implementation_->clock.now_ns();
  return window;
}

Measured Meter::stop(const Window& window, ShortWindow short_window) {
  Implementation& mine = *implementation_;
  require(window.marks_.size() == mine.counters.size(), Status::invalid_argument,
          "Meter::stop: the window was not started by this meter");
  const std::int64_t end_ns = mine.clock.now_ns();
  Measured measured;
  measured.cpu = difference(cpu_use(), window.cpu_);
  measured.seconds = static_cast<double>(end_ns - window.begin_ns_) / 1e9;
  mine.read_all();
  const std::vector<Mark> low = mine.marks(), high = mine.next_ticks();
  const std::lock_guard lock(mine.mutex);
  for (std::size_t i = 0; i < low.size(); ++i) {
    const Counter& counter = mine.counters[i];
    const Mark& end = counter.has_long_ticks() ? high[i] : low[i];
    measured.components.push_back(
        energy_of(counter, {window.marks_[i], low[i], end, window.begin_ns_, end_ns}, short_window));
  }
  return measured;
}

void Meter::sample_every(std::int64_t period_ns) {
  require(period_ns >= 1'000'000, Status::invalid_argument, "Meter::sample_every: the period is at least 1 ms");
  require(!implementation_->sampler.joinable(), Status::invalid_argument, "Meter::sample_every: it samples already");
  // Only the program's own threads shall get signals.
  const detail::AllSignalsBlocked blocked;
  implementation_->sampler =
      detail::start_thread_for("the samples of a meter", [this, period_ns] { implementation_->sample(period_ns); });
}

std::vector<Sample> Meter::take_samples() {
  const std::lock_guard lock(implementation_->mutex);
  return std::exchange(implementation_->samples, {});
}

std::uint64_t Meter::dropped_samples() const {
  const std::lock_guard lock(implementation_->mutex);
  return implementation_->dropped;
}

double Meter::sampling_seconds() const {
  const std::lock_guard lock(implementation_->mutex);
  return implementation_->sampling_seconds;
}

std::optional<double> Measured::joules(Kind kind) const {
  std::optional<double> sum;
  for (const ComponentEnergy& part : components) {
    if (part.component.kind != kind) continue;
    if (!part.joules) return std::nullopt;
    sum = sum.value_or(0) + *part.joules;
  }
  return sum;
}

std::optional<double> Measured::joules() const {
  std::optional<double> sum;
  for (const Kind kind : {Kind::gpu, Kind::cpu, Kind::dram})
    if (const auto part = joules(kind)) sum = sum.value_or(0) + *part;
  return sum;
}

}  // namespace beeline::energy
