// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Memory that the world did not allocate.

#include <cstddef>

#include "tests/conformance/rank_test.hpp"

namespace beeline_test {

enum class Origin { heap, cuda_device, cuda_pinned };

/// Memory from malloc, or on a GPU rank from CUDA.
class ForeignMemory {
 public:
  /// Collective, like the destructor: CUDA may wait for the kernels of all ranks on the GPU.
  ForeignMemory(RankTest& test, std::size_t bytes, Origin origin);
  /// Memory where the rank's kernels run: from cudaMalloc, or on a host rank from malloc.
  ForeignMemory(RankTest& test, std::size_t bytes)
      : ForeignMemory(test, bytes, test.on_gpu() ? Origin::cuda_device : Origin::heap) {}
  ~ForeignMemory();
  ForeignMemory(const ForeignMemory&) = delete;
  ForeignMemory& operator=(const ForeignMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  beeline::World& world_;
  const Origin origin_;
  void* data_ = nullptr;
};

}  // namespace beeline_test
