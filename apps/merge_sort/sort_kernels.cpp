// SPDX-License-Identifier: Apache-2.0
#include "sort_kernels.hpp"

#include <algorithm>

#include "beeline/core/error.hpp"
#include "beeline/hpe/launch.hpp"

#if BEELINE_COMPILES_CUDA
#include <cub/device/device_merge.cuh>
#include <cub/device/device_radix_sort.cuh>
#endif

namespace merge_sort {

namespace {

namespace hpe = beeline::hpe;

constexpr unsigned block_threads = 256;

struct FillWithKeys {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, Key* keys, const Problem& problem, const Range& range) const {
    for (std::size_t at = grid.thread_rank(); at < range.count; at += grid.size())
      keys[at] = initial_key(problem, range.first + at);
  }
};

/// A thread for each end of the output.
struct SearchPivots {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Sequence& left, const Sequence& right, const Range& output,
                                      std::size_t* pivots) const {
    for (unsigned end = grid.thread_rank(); end < 2; end += grid.size())
      pivots[end] = pivot(left, right, output.first + end * output.count, [](const Key* key) { return *key; });
  }
};

#if BEELINE_COMPILES_CUDA

/// Makes the stream's GPU current, as CUB expects.
cudaStream_t cub_stream(const hpe::Stream& stream) {
  beeline::use_gpu(stream.device().index());
  return static_cast<cudaStream_t>(stream.native());
}

void require_cub(cudaError_t error, const char* call) {
  beeline::require(error == cudaSuccess, beeline::Status::internal,
                   std::string("CUB's ") + call + ": " + cudaGetErrorString(error));
}

std::size_t cub_scratch_bytes(std::size_t count) {
  std::size_t sorts = 0, merges = 0;
  cub::DoubleBuffer<Key> buffers;
  const Key* none = nullptr;
  const auto keys = static_cast<std::int64_t>(count);
  require_cub(cub::DeviceRadixSort::SortKeys(nullptr, sorts, buffers, keys), "SortKeys");
  require_cub(cub::DeviceMerge::MergeKeys(nullptr, merges, none, keys, none, keys, static_cast<Key*>(nullptr)),
              "MergeKeys");
  return std::max(sorts, merges);
}

Key* cub_sort(hpe::Stream& stream, Key* keys, Key* other, std::size_t count, const hpe::DeviceMemory& scratch) {
  cub::DoubleBuffer<Key> buffers(keys, other);
  std::size_t bytes = scratch.bytes();
  const cudaStream_t native = cub_stream(stream);
  require_cub(cub::DeviceRadixSort::SortKeys(scratch.data(), bytes, buffers, static_cast<std::int64_t>(count), 0,
                                             8 * sizeof(Key), native),
              "SortKeys");
  return buffers.Current();
}

void cub_merge(hpe::Stream& stream, const Run& left, const Run& right, Key* merged, const hpe::DeviceMemory& scratch) {
  std::size_t bytes = scratch.bytes();
  const cudaStream_t native = cub_stream(stream);
  require_cub(
      cub::DeviceMerge::MergeKeys(scratch.data(), bytes, left.keys, static_cast<std::int64_t>(left.count), right.keys,
                                  static_cast<std::int64_t>(right.count), merged, ::cuda::std::less<>{}, native),
      "MergeKeys");
}

#else

/// Builds without CUDA see no GPUs.
std::size_t cub_scratch_bytes(std::size_t) { throw beeline::Error(beeline::Status::unavailable, "built without CUDA"); }
Key* cub_sort(hpe::Stream&, Key*, Key*, std::size_t count, const hpe::DeviceMemory&) {
  static_cast<void>(cub_scratch_bytes(count));
  return nullptr;
}
void cub_merge(hpe::Stream&, const Run& left, const Run&, Key*, const hpe::DeviceMemory&) {
  static_cast<void>(cub_scratch_bytes(left.count));
}

#endif

}  // namespace

void enqueue_keys(hpe::Stream& stream, Key* keys, const Problem& problem, Range range) {
  constexpr std::size_t most = 1 << 16;
  const auto blocks = static_cast<unsigned>(std::clamp<std::size_t>(range.count / block_threads, 1, most));
  const bool on_gpu = stream.device().is_gpu();
  hpe::launch(stream, {.blocks = on_gpu ? blocks : 1, .threads = on_gpu ? block_threads : 1}, FillWithKeys{}, keys,
              problem, range);
}

void enqueue_search(hpe::Stream& stream, const Sequence& left, const Sequence& right, const Range& output,
                    std::size_t* pivots) {
  const unsigned threads = stream.device().is_gpu() ? 2 : 1;
  hpe::launch(stream, {.blocks = 1, .threads = threads}, SearchPivots{}, left, right, output, pivots);
}

std::size_t scratch_bytes(hpe::Device device, std::size_t count) {
  return std::max<std::size_t>(1, device.is_gpu() ? cub_scratch_bytes(count) : 0);
}

Key* enqueue_sort(hpe::Stream& stream, Key* keys, Key* other, std::size_t count, const hpe::DeviceMemory& scratch) {
  if (stream.device().is_gpu()) return cub_sort(stream, keys, other, count, scratch);
  stream.enqueue([=] { std::sort(keys, keys + count); });
  return keys;
}

void enqueue_merge(hpe::Stream& stream, const Run& left, const Run& right, Key* merged,
                   const hpe::DeviceMemory& scratch) {
  if (stream.device().is_gpu()) return cub_merge(stream, left, right, merged, scratch);
  stream.enqueue([=] { std::merge(left.keys, left.keys + left.count, right.keys, right.keys + right.count, merged); });
}

}  // namespace merge_sort
