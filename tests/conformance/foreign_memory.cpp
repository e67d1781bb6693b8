// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/foreign_memory.hpp"

#include <algorithm>
#include <cstdlib>

#if BEELINE_COMPILES_CUDA
#include <cuda_runtime_api.h>
#endif

namespace beeline_test {

namespace {

constexpr std::size_t alignment = 256;  // cudaMalloc's

}  // namespace

ForeignMemory::ForeignMemory(RankTest& test, std::size_t bytes, Origin origin) : world_(test.world()), origin_(origin) {
  world_.barrier();
  const std::size_t room = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
#if BEELINE_COMPILES_CUDA
  if (origin_ == Origin::cuda_device) BEELINE_CHECK(cudaMalloc(&data_, room) == cudaSuccess);
  if (origin_ == Origin::cuda_pinned) BEELINE_CHECK(cudaHostAlloc(&data_, room, cudaHostAllocPortable) == cudaSuccess);
#endif
  if (origin_ == Origin::heap) data_ = std::aligned_alloc(alignment, room);
  BEELINE_CHECK(data_ != nullptr);
  world_.barrier();
}

ForeignMemory::~ForeignMemory() {
  const auto meet = [&] {
    try {
      world_.barrier();
    } catch (const std::exception&) {  // the world has failed; its case reports why
    }
  };
  meet();
#if BEELINE_COMPILES_CUDA
  if (origin_ == Origin::cuda_device) static_cast<void>(cudaFree(data_));
  if (origin_ == Origin::cuda_pinned) static_cast<void>(cudaFreeHost(data_));
#endif
  if (origin_ == Origin::heap) std::free(data_);
  meet();
}

}  // namespace beeline_test
