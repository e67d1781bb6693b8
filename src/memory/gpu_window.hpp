// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// GPU memory as CPU threads see it. Two implementations: cuda_window.cpp, and no_cuda_window.cpp without CUDA.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace beeline::gpu_memory {

/// An allocation in the memory of a GPU that is mapped for CPU threads, too. They store there as to a device: stores
/// are posted, and are ordered and leave the CPU with a fence alone. Loads take about a microsecond.
class Window {
 public:
  virtual ~Window() = default;
  /// Where CPU threads see `address`, from which on all `bytes` lie in the allocation; nullptr: they do not.
  [[nodiscard]] std::byte* seen(const void* address, std::size_t bytes) const {
    const std::size_t offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - piece_.data());
    return offset < piece_.size() && bytes <= piece_.size() - offset ? seen_ + offset : nullptr;
  }
  [[nodiscard]] int gpu() const { return gpu_; }
  /// Returns when all that this thread has stored here is in the memory of the GPU: a load comes back behind it.
  void settle() const {
#if defined(__x86_64__)
    __builtin_ia32_mfence();  // a load does not wait for stores before it
#endif
    static_cast<void>(*reinterpret_cast<const volatile std::uint64_t*>(seen_));
  }

 protected:
  Window(std::span<const std::byte> piece, int gpu) : piece_(piece), gpu_(gpu) {}
  const std::span<const std::byte> piece_;
  const int gpu_;
  std::byte* seen_ = nullptr;
};

/// Orders this thread's stores to windows and to other memory before its later ones, and sends them to the GPUs.
inline void fence_windows() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

/// Opens a window on an allocation of symmetric memory of a GPU, which outlives it; users of the process share it.
/// Throws unavailable with the reason.
[[nodiscard]] std::shared_ptr<const Window> open_window(std::span<const std::byte> piece);

}  // namespace beeline::gpu_memory
