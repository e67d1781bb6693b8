// SPDX-License-Identifier: Apache-2.0
// The C functions through which torch's caching allocator takes segments from the symmetric heap.
//
// Taking a segment is collective: all ranks request the same sizes in the same order. Giving a segment back is not,
// since ranks release tensors at different times. A segment is kept until, in a later request, all ranks find that each
// has given back its segment of this number; then all ranks free it. Python's lock is neither taken nor released: torch
// may hold a lock of its own here, and a thread with Python's lock may wait for that.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "joined_world.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

/// torch's requests to one rank's heap. The object keeps the world's memory mapped.
class MemoryPool {
 public:
  explicit MemoryPool(std::shared_ptr<JoinedWorld> world) : world_(std::move(world)) {}

  [[nodiscard]] const JoinedWorld& joined() const { return *world_; }
  [[nodiscard]] int gpu() const { return world_->known().device().is_gpu() ? world_->known().device().index : -1; }
  /// Whether the world was left and all segments were given back.
  [[nodiscard]] bool is_over() {
    const std::lock_guard lock(mutex_);
    return world_->has_left() && held_.empty();
  }

  /// Collective. `stream` is the stream that will use the segment.
  [[nodiscard]] void* allocate(std::size_t bytes, void* stream) {
    const std::lock_guard one_at_a_time(requests_);
    World& world = world_->world();
    if (world.device().is_gpu()) keep_stream(world, stream);
    free_what_all_gave_back(world);
    void* const segment = world.allocate(bytes, Heap::symmetric);
    const std::lock_guard lock(mutex_);
    held_[segment] = next_++;
    return segment;
  }

  /// Not collective: see above. Returns false for a segment of another pool.
  [[nodiscard]] bool give_back(void* segment, void* stream) {
    const std::lock_guard lock(mutex_);
    const auto place = held_.find(segment);
    if (place == held_.end()) return false;
    const std::uint64_t number = place->second;
    held_.erase(place);
    if (world_->has_left()) return true;
    std::shared_ptr<Event> used;
    if (const auto on = streams_.find(stream); on != streams_.end()) {  // a host rank's work is over
      if (on->second->capture() != 0) return true;                      // lost: the graph may run at any time
      used = on->second->make_event();
      on->second->record(*used);
    }
    given_back_[number] = {segment, std::move(used)};
    return true;
  }

 private:
  struct GivenBack {
    void* segment;
    std::shared_ptr<Event> used;  ///< recorded after the earlier work of its stream
  };

  void keep_stream(World& world, void* stream) {
    const std::lock_guard lock(mutex_);
    if (!streams_.contains(stream)) streams_[stream] = world.adopt_stream(stream);
  }

  void free_what_all_gave_back(World& world) {
    std::vector<std::uint64_t> mine;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [number, segment] : given_back_) mine.push_back(number);
    }
    std::vector<std::uint64_t> common = mine;
    for (const auto& bytes : world.allgather(std::as_bytes(std::span(mine)))) {
      std::vector<std::uint64_t> theirs(bytes.size() / sizeof(std::uint64_t));
      if (!theirs.empty()) std::memcpy(theirs.data(), bytes.data(), theirs.size() * sizeof(std::uint64_t));
      std::erase_if(common,
                    [&](std::uint64_t number) { return !std::binary_search(theirs.begin(), theirs.end(), number); });
    }
    for (const std::uint64_t number : common) {
      GivenBack given;
      {
        const std::lock_guard lock(mutex_);
        given = given_back_.extract(number).mapped();
      }
      if (given.used) world.synchronize(*given.used);
      world.free(given.segment);
    }
  }

  std::shared_ptr<JoinedWorld> world_;
  std::mutex requests_;  ///< held in collective functions
  std::mutex mutex_;     ///< of the members below
  std::map<void*, std::unique_ptr<Stream>> streams_;
  std::map<void*, std::uint64_t> held_;  ///< segments by address; the numbers agree on all ranks
  std::map<std::uint64_t, GivenBack> given_back_;
  std::uint64_t next_ = 0;
};

/// All pools of the process. Never destroyed, because torch gives segments back until the process ends.
struct Pools {
  std::mutex mutex;
  std::vector<std::shared_ptr<MemoryPool>> all;
};

Pools& pools() {
  static Pools& the_only = *new Pools;
  return the_only;
}

/// The pool on this GPU (-1: a CPU) whose world was not left.
std::shared_ptr<MemoryPool> pool_on(int gpu) {
  const std::lock_guard lock(pools().mutex);
  for (const auto& pool : pools().all)
    if (pool->gpu() == gpu && !pool->joined().has_left()) return pool;
  return nullptr;
}

std::vector<std::shared_ptr<MemoryPool>> all_pools() {
  const std::lock_guard lock(pools().mutex);
  return pools().all;
}

std::string describe(int gpu) { return gpu < 0 ? "the CPU" : fmt::format("GPU {}", gpu); }

/// Makes the C functions below serve a world's GPU. Each GPU of a process serves one world at a time.
void serve_pool(const std::shared_ptr<JoinedWorld>& world) {
  const int rank = world->world().rank();
  const auto mine = std::make_shared<MemoryPool>(world);
  std::vector<std::shared_ptr<MemoryPool>> over;  // destroyed without the lock: their worlds may end, too
  const std::lock_guard lock(pools().mutex);
  const auto is_alive = [](const auto& pool) { return !pool->is_over(); };
  const auto first_over = std::stable_partition(pools().all.begin(), pools().all.end(), is_alive);
  over.assign(first_over, pools().all.end());
  pools().all.erase(first_over, pools().all.end());
  for (const auto& pool : pools().all) {
    if (&pool->joined() == world.get()) return;
    require(pool->gpu() != mine->gpu() || pool->joined().has_left(), Status::unavailable,
            fmt::format("a pool of another world serves {} in this process: rank {} cannot have one beside it",
                        describe(mine->gpu()), rank));
  }
  pools().all.push_back(mine);
}

}  // namespace

void bind_memory_pool(nb::module_& module) {
  module.def("_serve_pool", serve_pool, nb::arg("world"),
             "Lets `beeline_pool_allocate` and `beeline_pool_free` serve the world's device in this process.");
}

}  // namespace beeline::python

using beeline::LogLevel;

/// Collective over the world that serves `gpu` in this process. Returns a segment of its symmetric heap, 256-byte
/// aligned, at the same offset on all ranks. Returns nullptr, with a line in the log, when the heap is full, or the
/// ranks do not make equal requests by the deadline. torch.cuda.memory.CUDAPluggableAllocator prescribes the
/// signatures.
extern "C" __attribute__((visibility("default"))) void* beeline_pool_allocate(std::ptrdiff_t bytes, int gpu,
                                                                              void* stream) {
  try {
    const auto pool = beeline::python::pool_on(gpu);
    beeline::require(
        pool != nullptr, beeline::Status::unavailable,
        fmt::format("no world serves {}: see beeline.torch_backend.mem_pool", beeline::python::describe(gpu)));
    return pool->allocate(static_cast<std::size_t>(bytes), stream);
  } catch (const std::exception& error) {
    beeline::log(LogLevel::error, fmt::format("no segment of {} bytes for torch: {}", bytes, error.what()));
    return nullptr;
  }
}

/// Gives a segment back; does not block. The segment is free for others when all ranks have given theirs back, and the
/// work that `stream` had at that time is over.
extern "C" __attribute__((visibility("default"))) void beeline_pool_free(void* segment, std::ptrdiff_t /*bytes*/,
                                                                         int /*gpu*/, void* stream) {
  if (segment == nullptr) return;
  try {
    for (const auto& pool : beeline::python::all_pools())
      if (pool->give_back(segment, stream)) return;
  } catch (const std::exception& error) {
    beeline::log(LogLevel::error, fmt::format("a segment of torch's is lost until the world ends: {}", error.what()));
  }
}
