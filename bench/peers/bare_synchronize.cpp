// SPDX-License-Identifier: Apache-2.0
#include "peers/bare_synchronize.hpp"

#include <string>

#include "beeline/core/error.hpp"
#include "beeline/core/macros.hpp"

namespace beeline::bench {

#if BEELINE_COMPILES_CUDA

namespace {

void check(cudaError_t error) {
  require(error == cudaSuccess, Status::internal, std::string("a bare wait: ") + cudaGetErrorString(error));
}

cudaEvent_t event_with(unsigned flags) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags));
  return event;
}

void synchronize_event(cudaEvent_t event, cudaStream_t stream) {
  check(cudaEventRecord(event, stream));
  check(cudaEventSynchronize(event));
}

}  // namespace

void bare_synchronize(Stream& stream, BareWait wait) {
  require(stream.device().is_gpu(), Status::unavailable, "a wait for a GPU");
  static const cudaEvent_t event = event_with(cudaEventDisableTiming);
  static const cudaEvent_t blocking = event_with(cudaEventDisableTiming | cudaEventBlockingSync);
  const auto native = static_cast<cudaStream_t>(stream.native());
  switch (wait) {
    case BareWait::device:
      return check(cudaDeviceSynchronize());
    case BareWait::stream:
      return check(cudaStreamSynchronize(native));
    case BareWait::event:
      return synchronize_event(event, native);
    case BareWait::blocking_event:
      return synchronize_event(blocking, native);
  }
}

#else

void bare_synchronize(Stream&, BareWait) { throw Error(Status::unavailable, "a wait for a GPU"); }

#endif

}  // namespace beeline::bench
