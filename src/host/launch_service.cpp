// SPDX-License-Identifier: Apache-2.0
// Relocatable device code: see launch_service.hpp.
#include "host/launch_service.hpp"

#include "host/grid_room.hpp"

namespace beeline {

namespace {

using detail::DeviceAtomic;
using detail::SystemAtomic;
using detail::TaskCall;

constexpr unsigned service_threads = 32;
static_assert(detail::most_kernel_workers + 1 <= service_threads);

#if BEELINE_ON_GPU

/// One lease, run by one warp. Each thread polls a worker's call.
class LaunchService {
 public:
  __device__ LaunchService(const Context& ctx, const LaunchServiceTerms& terms) : ctx_(ctx), terms_(terms) {
    if (has_call()) started_ = call().started;
  }

  __device__ void serve() {
    if (is_first()) asleep().store(0, std::memory_order_relaxed);
    const std::uint64_t start = machine::clock_ns();
    std::uint64_t busy = start;
    const bool is_first_lease = over().load(std::memory_order_relaxed) == 0;
    for (std::uint32_t looks = 1; !is_first_lease && launched_ < most_fired_graphs; ++looks) {
      const bool is_wanted = has_call() && fired() != started_;
      if (warp_.any(is_wanted)) {
        start_kernels(is_wanted);
        busy = machine::clock_ns();
      }
      if (looks % looks_per_clock == 0 && warp_.any(is_first() && is_over(start, busy))) break;
    }
    end();
  }

 private:
  static constexpr std::uint32_t looks_per_clock = 16;

  [[nodiscard]] __device__ bool is_first() const { return warp_.thread_rank() == 0; }
  [[nodiscard]] __device__ bool has_call() const { return warp_.thread_rank() < terms_.calls; }
  [[nodiscard]] __device__ TaskCall& call() const { return terms_.kernels.calls[warp_.thread_rank()]; }
  [[nodiscard]] __device__ DeviceAtomic<std::uint64_t> asleep() const {
    return DeviceAtomic<std::uint64_t>(*terms_.kernels.asleep);
  }
  [[nodiscard]] __device__ SystemAtomic<std::uint64_t> over() const {
    return SystemAtomic<std::uint64_t>(*terms_.over);
  }
  /// Number of the last kernel that the thread's worker has requested from the service.
  [[nodiscard]] __device__ std::uint64_t fired() const {
    return DeviceAtomic<std::uint64_t>(call().fired).load(std::memory_order_relaxed);
  }
  [[nodiscard]] __device__ bool is_over(std::uint64_t start, std::uint64_t busy) const {
    const Lease& lease = terms_.kernels.service;
    const std::uint64_t now = machine::clock_ns();
    return now - start >= lease.lease_ns || now - busy >= lease.idle_ns || detail::read_abort_word(ctx_) != 0;
  }

  /// Shorter than a lease, since the time of the first refusal is lost at the end of a lease.
  [[nodiscard]] __device__ std::uint64_t retry_ns() const {
    const std::uint64_t half = terms_.kernels.service.lease_ns / 2;
    return half < LaunchServiceTerms::retry_ns ? half : LaunchServiceTerms::retry_ns;
  }

  /// Starts kernels, one thread after the other, up to the number that this graph may launch.
  __device__ void start_kernels(bool is_wanted) {
    for (std::uint32_t thread = 0; thread < terms_.calls; ++thread) {
      const bool is_mine = warp_.thread_rank() == thread && is_wanted && launched_ < most_fired_graphs;
      if (warp_.any(is_mine && start_kernel())) ++launched_;
    }
  }
  /// Launches the worker's graph; returns whether the device accepted it.
  __device__ bool start_kernel() {
    const std::uint64_t number = fired();
    // After this fence the worker's stores are visible here, and to the kernel.
    machine::fence_device();
    const cudaError_t error =
        cudaGraphLaunch(reinterpret_cast<cudaGraphExec_t>(call().graph), cudaStreamGraphFireAndForget);
    LaunchCounts& counts = *terms_.counts;
    if (error == cudaSuccess) {
      machine::reduce_add(&counts.fired, std::uint64_t{1});
      note_start(number);
      return true;
    }
    machine::reduce_add(&counts.refused, std::uint64_t{1});
    counts.last_error = error;
    const std::uint64_t now = machine::clock_ns();
    if (refused_ns_ == 0) refused_ns_ = now;
    if (now - refused_ns_ < retry_ns()) return false;
    // The task is not lost: the engine starts the kernel.
    machine::reduce_add(&counts.handed, std::uint64_t{1});
    note_start(number);
    machine::fence_system();
    terms_.kernels.ask_engine(warp_.thread_rank(), call().request);
    return false;
  }
  __device__ void note_start(std::uint64_t number) {
    started_ = number, refused_ns_ = 0;
    call().started = number;
  }

  /// Publishes that the service ends, then polls once more. A worker stores its call, then checks for this mark, so at
  /// least one of the two sees the other.
  __device__ void end() const {
    if (is_first()) asleep().store(1, std::memory_order_relaxed);
    machine::fence_device_sequential();
    warp_.sync();
    machine::fence_device_sequential();
    const bool any = warp_.any(has_call() && fired() != started_);
    if (!is_first()) return;
    if (any) terms_.kernels.service.ask();
    machine::fence_system();
    over().store(over().load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  const Warp warp_{};
  const Context& ctx_;
  const LaunchServiceTerms& terms_;
  std::uint64_t started_ = 0;     ///< the last kernel of the thread's worker that has been started
  std::uint64_t refused_ns_ = 0;  ///< time of the first refusal of the next launch; 0: none
  std::uint32_t launched_ = 0;    ///< launches by all threads
};

#endif

struct ServeLaunches {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()([[maybe_unused]] Grid& grid, [[maybe_unused]] const Context& ctx,
                                      [[maybe_unused]] const LaunchServiceTerms& terms) const {
#if BEELINE_ON_GPU
    LaunchService(ctx, terms).serve();
#endif
  }
};

struct DoNothing {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid&, const Context&, const Task&) const {}
};

}  // namespace

void launch_service(Team& team, Stream& stream, const LaunchServiceTerms& terms) {
  launch(team, {.blocks = 1, .threads = service_threads, .stream = &stream, .name = "launch service"}, ServeLaunches{},
         terms);
}

void launch_trial(Team& team, Stream& stream, TaskCall* call) {
  launch(team, {.blocks = 1, .threads = service_threads, .stream = &stream, .name = "trial of device graphs"},
         detail::TaskGrid<DoNothing>{}, call);
}

ReservedRoom room_of_launch_service(World& world) {
  return room_of_grid<ServeLaunches, LaunchServiceTerms>(world, service_threads, 1);
}

}  // namespace beeline
