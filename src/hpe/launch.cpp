// SPDX-License-Identifier: Apache-2.0
#include "beeline/hpe/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "beeline/core/error.hpp"
#include "core/exception_text.hpp"
#include "host/host_grid.hpp"
#include "hpe/gpu.hpp"
#include "hpe/stream_state.hpp"
#include "runtime/grid_start.hpp"

namespace beeline::hpe::detail {

namespace {

/// A launch's kernel and device, for errors.
struct LaunchText {
  const char* name;
  const std::type_info* kernel;
  Device device;

  [[nodiscard]] std::string operator()() const {
    return fmt::format("{} on {}", name == nullptr ? "kernel " + beeline::detail::readable_name(*kernel) : name,
                       device.name());
  }
  [[noreturn]] void refuse(Status code, const std::string& why) const {
    throw Error(code, fmt::format("launching {}: {}", (*this)(), why));
  }
};

void check_shape(const LaunchOptions& options, unsigned max_threads, const LaunchText& text) {
  if (options.blocks == 0 || options.threads == 0 || options.threads > max_threads)
    text.refuse(Status::invalid_argument, fmt::format("{} blocks of {} threads; at least one, at most {} threads",
                                                      options.blocks, options.threads, max_threads));
  if (options.waits || options.stream != nullptr || options.serialization_key != nullptr)
    text.refuse(Status::invalid_argument, "waits, stream and serialization_key are options of launches in worlds");
}

std::uint64_t bit_of(int gpu) { return std::uint64_t{1} << gpu % 64; }
bool is_loaded(const LoadedKernel& kernel, int gpu) {
  return (kernel.gpus.load(std::memory_order_acquire) & bit_of(gpu)) != 0;
}

/// Loads the kernel's code on the current GPU, and checks that a block fits.
void load(LoadedKernel& loaded, int gpu, const LaunchOptions& options, const LaunchText& text) {
  if (!is_loaded(loaded, gpu)) {
    load_kernel(loaded.code, gpu);
    loaded.gpus.fetch_or(bit_of(gpu), std::memory_order_release);
  }
  if (gpu_resident_blocks(loaded.code, options.threads, gpu) == 0)
    text.refuse(Status::no_resource,
                fmt::format("not even one block of {} threads and {} bytes of shared memory fits a multiprocessor: "
                            "launch fewer threads",
                            options.threads, loaded.code.shared_bytes));
}

constexpr unsigned max_gpu_threads = 1024;
constexpr unsigned any_number = ~0u;

}  // namespace

void launch_on_host(Stream& stream, const LaunchOptions& options, const std::type_info& kernel,
                    beeline::detail::HostBlock block) {
  StreamState& state = stream.state();
  const LaunchText text{options.name, &kernel, state.device().device()};
  check_shape(options, any_number, text);
  const auto team_size = static_cast<unsigned>(Runtime::get().config().host_threads);
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  state.enqueue_own([&](beeline::Stream& own) {
    const beeline::detail::HostGrid grid{*own.workers(), cores, team_size, nullptr, state.device().context()};
    own.enqueue([=, block = std::move(block), blocks = options.blocks] {
      try {
        for (unsigned each = 0; each < blocks; ++each) run_blocks(grid, block, each, each + 1);
      } catch (...) {
        std::throw_with_nested(Error(
            Status::internal, fmt::format("{} has failed: {}", text(), beeline::detail::current_exception_text())));
      }
    });
  });
}

void launch_on_gpu(Stream& stream, const LaunchOptions& options, const std::type_info& kernel, LoadedKernel& loaded,
                   void** parameters) {
  StreamState& state = stream.state();
  const int gpu = stream.device().index();
  const LaunchText text{options.name, &kernel, stream.device()};
  if (loaded.code.address == nullptr) text.refuse(Status::unavailable, "the calling file is compiled without CUDA");
  check_shape(options, max_gpu_threads, text);
  state.device().require_working();
  const auto start = [&] {
    load(loaded, gpu, options, text);
    state.enqueue_own([&](beeline::Stream& own) {
      start_grid(loaded.code, gpu, {options.blocks, options.threads, own.native(), false}, parameters);
      if (const std::string error = launch_error(); !error.empty()) text.refuse(Status::internal, error);
    });
  };
  if (is_loaded(loaded, gpu) && gpu::is_current(gpu)) return start();  // captures permit launches
  gpu::on(gpu, start);
}

}  // namespace beeline::hpe::detail
