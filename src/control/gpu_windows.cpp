// SPDX-License-Identifier: Apache-2.0
#include "control/gpu_windows.hpp"

#include <algorithm>
#include <span>

#include "beeline/core/error.hpp"

namespace beeline {

GpuWindows::GpuWindows(const EngineClient& client) : gpu_(client.device.index) {
  const auto open = [&](std::uint32_t rank) {
    const std::byte* const start = client.address_of(rank, 0);
    const std::span<const std::byte> heap = client.piece_at(start);
    if (heap.empty() || client.is_host_memory(start)) return true;
    try {
      windows_.push_back(gpu_memory::open_window(heap));
      return true;
    } catch (const Error& error) {
      if (std::find(reasons_.begin(), reasons_.end(), error.what()) == reasons_.end())
        reasons_.emplace_back(error.what());
      return false;
    }
  };
  const auto own = static_cast<std::uint32_t>(client.rank);
  if (!client.device.is_gpu() || !open(own)) return;
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(client.ranks); ++rank)
    if (rank != own && !client.is_remote(rank)) static_cast<void>(open(rank));
}

}  // namespace beeline
