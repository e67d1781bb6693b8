// SPDX-License-Identifier: Apache-2.0
#include "hpe/bare_calls.hpp"

#include <algorithm>
#include <cstring>

#include "beeline/core/error.hpp"
#include "beeline/core/macros.hpp"
#include "beeline/runtime/device.hpp"

#if BEELINE_COMPILES_CUDA
#include <cuda_runtime_api.h>
#endif

namespace beeline::bench::hpe {

namespace {

using beeline::hpe::Device;
using beeline::hpe::Stream;

#if BEELINE_COMPILES_CUDA

void require_cuda(cudaError_t result) {
  if (result != cudaSuccess) throw Error(Status::internal, cudaGetErrorString(result));
}

cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

cudaEvent_t event_of(Device gpu) {
  cudaEvent_t event = nullptr;
  beeline::use_gpu(gpu.index());
  require_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

#endif

}  // namespace

std::string name_of_copy(Device device) { return device.is_gpu() ? "bare/cudaMemcpy" : "bare/memcpy"; }

void bare_copy(Device device, void* to, const void* from, std::size_t bytes) {
#if BEELINE_COMPILES_CUDA
  if (device.is_gpu()) return require_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
#endif
  static_cast<void>(device);
  std::memcpy(to, from, bytes);
}

void bare_enqueue(const Stream& stream, void* to, const void* from, std::size_t bytes) {
#if BEELINE_COMPILES_CUDA
  require_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, native(stream)));
#else
  static_cast<void>(stream), static_cast<void>(to), static_cast<void>(from), static_cast<void>(bytes);
#endif
}

void bare_copy_and_wait(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (!stream.device().is_gpu()) return bare_copy(stream.device(), to, from, bytes);
  bare_enqueue(stream, to, from, bytes);
#if BEELINE_COMPILES_CUDA
  require_cuda(cudaStreamSynchronize(native(stream)));
#endif
}

void copy_through(const Stream& out, const Stream& in, std::byte* buffer, void* to, const void* from,
                  std::size_t bytes) {
  bare_copy_and_wait(out, buffer, from, bytes);
  bare_copy_and_wait(in, to, buffer, bytes);
}

#if BEELINE_COMPILES_CUDA
struct DoubleBuffer::Events {
  Events(const Stream& out, const Stream& in)
      : filled{event_of(out.device()), event_of(out.device())}, emptied{event_of(in.device()), event_of(in.device())} {}
  ~Events() {
    for (const cudaEvent_t event : {filled[0], filled[1], emptied[0], emptied[1]}) cudaEventDestroy(event);
  }
  cudaEvent_t filled[2], emptied[2];
};
#else
struct DoubleBuffer::Events {
  Events(const Stream& /*out*/, const Stream& /*in*/) {}
};
#endif

DoubleBuffer::DoubleBuffer(const Stream& out, const Stream& in, std::byte* buffers, std::size_t chunk_bytes)
    : out_(out), in_(in), buffers_(buffers), chunk_bytes_(chunk_bytes),
      events_(out.device().is_gpu() ? std::make_unique<Events>(out, in) : nullptr) {}
DoubleBuffer::~DoubleBuffer() = default;

void DoubleBuffer::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t offset = 0, number = 0; offset < bytes; offset += chunk_bytes_, ++number) {
    const std::size_t chunk = std::min(chunk_bytes_, bytes - offset);
    std::byte* const buffer = buffers_ + number % 2 * chunk_bytes_;
    if (events_ == nullptr) {
      copy_through(out_, in_, buffer, to + offset, from + offset, chunk);
      continue;
    }
#if BEELINE_COMPILES_CUDA
    require_cuda(cudaStreamWaitEvent(native(out_), events_->emptied[number % 2], 0));
    bare_enqueue(out_, buffer, from + offset, chunk);
    require_cuda(cudaEventRecord(events_->filled[number % 2], native(out_)));
    require_cuda(cudaStreamWaitEvent(native(in_), events_->filled[number % 2], 0));
    bare_enqueue(in_, to + offset, buffer, chunk);
    require_cuda(cudaEventRecord(events_->emptied[number % 2], native(in_)));
#endif
  }
#if BEELINE_COMPILES_CUDA
  if (events_ != nullptr) require_cuda(cudaStreamSynchronize(native(in_)));
#endif
}

#if BEELINE_COMPILES_CUDA
BareWait::BareWait(const Stream& stream, const Stream& other)
    : stream_(stream), other_(other), event_(event_of(other.device())) {}
BareWait::~BareWait() { cudaEventDestroy(static_cast<cudaEvent_t>(event_)); }
void BareWait::enqueue() {
  require_cuda(cudaEventRecord(static_cast<cudaEvent_t>(event_), native(other_)));
  require_cuda(cudaStreamWaitEvent(native(stream_), static_cast<cudaEvent_t>(event_), 0));
}
#else
BareWait::BareWait(const Stream& stream, const Stream& other) : stream_(stream), other_(other) {}
BareWait::~BareWait() = default;
void BareWait::enqueue() { static_cast<void>(&stream_), static_cast<void>(&other_); }
#endif

}  // namespace beeline::bench::hpe
