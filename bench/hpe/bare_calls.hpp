// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bare calls beside which Beeline's are measured: of CUDA on GPUs, and of the C library on the host device.

#include <cstddef>
#include <memory>
#include <string>

#include "beeline/hpe/stream.hpp"

namespace beeline::bench::hpe {

/// The name of the bare blocking call on a device: cudaMemcpy or memcpy.
[[nodiscard]] std::string name_of_copy(beeline::hpe::Device device);

/// Copies; returns when the data have arrived.
void bare_copy(beeline::hpe::Device device, void* to, const void* from, std::size_t bytes);
/// As above, by a call that enqueues on `stream` and a wait in the runtime (cudaStreamSynchronize).
void bare_copy_and_wait(const beeline::hpe::Stream& stream, void* to, const void* from, std::size_t bytes);
/// Enqueues a copy on the stream of a GPU.
void bare_enqueue(const beeline::hpe::Stream& stream, void* to, const void* from, std::size_t bytes);

/// Copies from one device to another through `bytes` of host memory at `buffer`: first all of it out, then all in.
void copy_through(const beeline::hpe::Stream& out, const beeline::hpe::Stream& in, std::byte* buffer, void* to,
                  const void* from, std::size_t bytes);
/// Copies from one device to another through two buffers in host memory, so that copies out and in overlap: a double
/// buffer as programs write it by hand.
class DoubleBuffer {
 public:
  ///   buffers  [2, chunk_bytes]
  DoubleBuffer(const beeline::hpe::Stream& out, const beeline::hpe::Stream& in, std::byte* buffers,
               std::size_t chunk_bytes);
  ~DoubleBuffer();
  DoubleBuffer(const DoubleBuffer&) = delete;
  DoubleBuffer& operator=(const DoubleBuffer&) = delete;
  /// Returns when the data have arrived.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);

 private:
  struct Events;
  const beeline::hpe::Stream& out_;
  const beeline::hpe::Stream& in_;
  std::byte* const buffers_;
  const std::size_t chunk_bytes_;
  const std::unique_ptr<Events> events_;  ///< of GPUs
};

/// Makes a GPU's stream wait for another GPU's with one event, which is recorded again for each wait.
class BareWait {
 public:
  BareWait(const beeline::hpe::Stream& stream, const beeline::hpe::Stream& other);
  ~BareWait();
  BareWait(const BareWait&) = delete;
  BareWait& operator=(const BareWait&) = delete;
  void enqueue();

 private:
  const beeline::hpe::Stream& stream_;
  const beeline::hpe::Stream& other_;
  void* event_ = nullptr;  ///< a cudaEvent_t
};

}  // namespace beeline::bench::hpe
