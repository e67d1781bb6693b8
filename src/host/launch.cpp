// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <type_traits>

#include "core/exception_text.hpp"
#include "host/host_grid.hpp"
#include "host/profiler_range.hpp"
#include "host/world/grids.hpp"
#include "host/world/launches.hpp"
#include "host/world/membership.hpp"
#include "host/world/part.hpp"
#include "host/world/teams.hpp"
#include "runtime/grid_start.hpp"
#include "transport/host_workers.hpp"

namespace beeline::detail {

namespace {

std::vector<KernelCode>& kernels() {
  static std::vector<KernelCode> all;
  return all;
}

/// The name of a kernel in errors. Reading a type's name is costly, so only errors do it.
std::string text_of(const char* name, const std::type_info& type) {
  return name == nullptr ? "kernel " + readable_name(type) : name;
}

[[noreturn]] void refuse(Status code, const LaunchOptions& options, const KernelName& kernel, const std::string& why) {
  throw Error(code, fmt::format("launching {}: {}", text_of(options.name, *kernel.type), why));
}

Stream& stream_of(Team& team, const LaunchOptions& options) {
  return options.stream == nullptr ? team.world().stream() : *options.stream;
}

/// Names a grid. This struct fits into a std::function without an allocation for each launch.
struct BookedGrid {
  const void* kernel;  ///< the kernel's name if `is_named`, otherwise its type
  std::uint32_t blocks;
  std::int16_t rank;
  bool in_graph, is_named;

  std::string operator()() const {
    const std::string text =
        is_named ? static_cast<const char*>(kernel) : text_of(nullptr, *static_cast<const std::type_info*>(kernel));
    return fmt::format("rank {}'s {} ({} blocks{})", rank, text, blocks, in_graph ? ", in a graph" : "");
  }
};
static_assert(sizeof(BookedGrid) <= 16 && std::is_trivially_copyable_v<BookedGrid>);

/// Books a grid whose threads wait, and returns the grid state for it. A captured grid (`capture` is not 0) stays
/// booked as long as its graph may run.
GridState* book_waiting(World& world, const LaunchOptions& options, const KernelName& kernel, unsigned capacity,
                        std::uint64_t capture) {
  Stream& stream = stream_of(world, options);
  Grids::GraphGrid grid{stream.grid_state(), stream.grid_state()};
  if (capture != 0) grid = world_part<Grids>(world).for_graph(stream, capture);
  const bool is_named = options.name != nullptr;
  world_part<Grids>(world).ledger().claim(
      grid.booking, options.serialization_key, static_cast<double>(options.blocks) / capacity,
      BookedGrid{is_named ? static_cast<const void*>(options.name) : kernel.type, options.blocks,
                 static_cast<std::int16_t>(world.rank()), capture != 0, is_named},
      [&stream, in_graph = capture != 0] { return !in_graph && stream.drained(); });
  return grid.state;
}

/// Kernel numbers up to this value belong to types, higher numbers to names.
constexpr std::uint32_t named_types = max_named_kernels - 64;

/// The number of the kernels that are launched under a name. Takes no lock, since every collective call needs it.
std::uint16_t kernel_number(const char* name) {
  static std::array<std::atomic<const char*>, max_named_kernels - named_types> names{};
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    const char* known = names[i].load(std::memory_order_relaxed);
    if (known == nullptr && names[i].compare_exchange_strong(known, name, std::memory_order_relaxed)) known = name;
    if (known == name) return static_cast<std::uint16_t>(named_types + 1 + i);
  }
  return 0;
}

/// The context that a launch passes to its kernel. It has the kernel's number, for errors of the kernel's waits.
Context context_of(Team& team, const LaunchOptions& options, const KernelName& kernel) {
  Context context = team.context();
  context.resident = options.waits;
  context.kernel = options.name == nullptr ? kernel.number : kernel_number(options.name);
  Launches& launches = world_part<Launches>(team.world());
  if (!launches.is_named(context.kernel)) launches.name(context.kernel, text_of(options.name, *kernel.type));
  return context;
}

/// Blocks of a kernel that the rank's GPU holds at once.
unsigned gpu_capacity(const World& world, const KernelCode& kernel, unsigned threads) {
  require(kernel.address != nullptr, Status::unavailable,
          fmt::format("this kernel was compiled without CUDA; rank {} has a GPU", world.rank()));
  return gpu_resident_blocks(kernel, threads, world.device().index);
}

}  // namespace

const std::vector<KernelCode>& registered_kernels() { return kernels(); }

bool register_kernel(const KernelCode& kernel) {
  kernels().push_back(kernel);
  return true;
}

KernelName name_kernel(const std::type_info& type) {
  static std::atomic<std::uint32_t> names{0};
  const std::uint32_t number = names.fetch_add(1, std::memory_order_relaxed) + 1;
  return {&type, static_cast<std::uint16_t>(number <= named_types ? number : 0)};
}

GpuLaunch prepare_gpu_launch(Team& team, const LaunchOptions& options, const KernelCode& code,
                             const KernelName& kernel) {
  ProfilerRange range("launch");
  World& world = team.world();
  world_part<Launches>(world).require_own_process();
  if (code.address == nullptr)
    refuse(Status::unavailable, options, kernel,
           fmt::format("compiled without CUDA, cannot run on GPU rank {}", world.rank()));
  if (options.blocks == 0 || options.threads == 0 || options.threads > 1024)
    refuse(Status::invalid_argument, options, kernel,
           fmt::format("{} blocks of {} threads; at least one, at most 1024 threads", options.blocks, options.threads));
  use_gpu(world.device().index);
  Stream& stream = stream_of(world, options);
  const unsigned capacity = gpu_resident_blocks(code, options.threads, world.device().index);
  if (capacity == 0)
    refuse(
        Status::no_resource, options, kernel,
        fmt::format("not even one block of {} threads and {} bytes of shared memory fits a multiprocessor of rank {}'s "
                    "GPU: launch fewer threads",
                    options.threads, code.shared_bytes, world.rank()));
  const std::uint64_t capture = stream.capture();
  GridState* grid_state = options.waits ? book_waiting(world, options, kernel, capacity, capture) : nullptr;
  GpuLaunch launch{world.device().index, stream.native(), grid_state, context_of(team, options, kernel)};
  world_part<Teams>(world).note_launch(stream, launch.context, capture != 0);
  range.leave_open();
  return launch;
}

void start_gpu_launch(const GpuLaunch& launch, const LaunchOptions& options, const KernelCode& code,
                      const KernelName& kernel, bool starts_early, void** parameters) {
  constexpr int first_architecture = 90;  // for which machine::await_stream is compiled
  const bool early = starts_early && kernel_architecture(code, launch.gpu) >= first_architecture;
  start_grid(code, launch.gpu, {options.blocks, options.threads, launch.stream, early}, parameters);
  ProfilerRange::end();
  const std::string error = launch_error();
  if (!error.empty()) refuse(Status::internal, options, kernel, error);
}

unsigned host_share_of_blocks(const World& world) {
  return std::max(1u, world_part<Launches>(world).cores() / static_cast<unsigned>(world.config().host_threads));
}

unsigned gpu_share_of_blocks(World& world, const KernelCode& kernel, unsigned threads) {
  return share_of_rank(gpu_capacity(world, kernel, threads), world_part<Grids>(world).ledger().kept(),
                       world_part<Membership>(world).sharers());
}

unsigned blocks_of_multiprocessor(const World& world, const KernelCode& kernel, unsigned threads) {
  constexpr unsigned four_warps = 128;
  const unsigned whole = (threads + four_warps - 1) / four_warps * four_warps;
  const unsigned all = gpu_capacity(world, kernel, whole);
  require(all > 0, Status::no_resource,
          fmt::format("not even one block of {} threads and {} bytes of shared memory fits a multiprocessor of rank "
                      "{}'s GPU",
                      threads, kernel.shared_bytes, world.rank()));
  return all / static_cast<unsigned>(world.device().multiprocessors);
}

void launch_on_host(Team& team, const LaunchOptions& options, const KernelName& kernel, HostBlock block) {
  const ProfilerRange range("launch");
  World& world = team.world();
  world_part<Launches>(world).require_own_process();
  if (options.blocks == 0 || options.threads == 0)
    refuse(Status::invalid_argument, options, kernel,
           fmt::format("{} blocks of {} threads; at least one", options.blocks, options.threads));
  constexpr std::uint64_t no_capture = 0;
  const bool together = options.waits;
  const auto team_size = static_cast<unsigned>(world.config().host_threads);
  GridState* grid_state =
      together ? book_waiting(world, options, kernel, std::max(1u, max_host_threads / team_size), no_capture) : nullptr;
  Stream& stream = stream_of(world, options);
  const Context context = context_of(team, options, kernel);
  world_part<Teams>(world).note_launch(stream, context, false);
  const HostGrid grid{*stream.workers(), world_part<Launches>(world).cores(), team_size, grid_state, context};
  stream.enqueue([=, block = std::move(block), blocks = options.blocks] {
    for (unsigned first = 0; first < blocks; first += together ? blocks : 1)
      run_blocks(grid, block, first, together ? blocks : first + 1);
  });
}

}  // namespace beeline::detail
