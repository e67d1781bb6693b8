// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// GPU memory mapped for CPU threads. Two implementations: cuda_window.cpp, and no_cuda_window.cpp without CUDA.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace beeline::gpu_memory {

/// A GPU allocation that is mapped for CPU threads, too. Their stores are posted, as stores to a device are: only a
/// fence orders them and flushes them out of the CPU. Loads take about a microsecond.
class Window {
 public:
  virtual ~Window() = default;
  /// The address at which CPU threads access `address`; nullptr unless all `bytes` from `address` on are in the
  /// allocation.
  [[nodiscard]] std::byte* seen(const void* address, std::size_t bytes) const {
    const std::size_t offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - piece_.data());
    return offset < piece_.size() && bytes <= piece_.size() - offset ? seen_ + offset : nullptr;
  }
  [[nodiscard]] int gpu() const { return gpu_; }
  /// Waits until this thread's stores to the window are in the GPU's memory: a load returns only after them.
  void settle() const {
#if defined(__x86_64__)
    __builtin_ia32_mfence();  // without it the load would not wait for earlier stores
#endif
    static_cast<void>(*reinterpret_cast<const volatile std::uint64_t*>(seen_));
  }

 protected:
  Window(std::span<const std::byte> piece, int gpu) : piece_(piece), gpu_(gpu) {}
  const std::span<const std::byte> piece_;
  const int gpu_;
  std::byte* seen_ = nullptr;
};

/// Orders this thread's stores to windows and other memory before its later stores, and flushes them to the GPUs.
inline void fence_windows() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

/// Opens a window on an allocation of symmetric GPU memory, which must outlive the window; all users in the process
/// share it. Throws unavailable with the reason.
[[nodiscard]] std::shared_ptr<const Window> open_window(std::span<const std::byte> piece);

}  // namespace beeline::gpu_memory
