// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_stream.cpp and cuda_recorded_work.cpp in builds without CUDA.
#include "beeline/core/error.hpp"
#include "transport/host_stream.hpp"
#include "transport/recorded_work.hpp"

namespace beeline {

std::unique_ptr<Stream> make_gpu_stream(const Device&, const Context&, std::shared_ptr<GridState>, StreamPriority) {
  throw Error(Status::unavailable, "this build has no CUDA");
}

std::unique_ptr<Stream> adopt_gpu_stream(const Device&, std::shared_ptr<GridState>, void*) {
  throw Error(Status::unavailable, "this build has no CUDA");
}

std::unique_ptr<RecordedWork> record_work(Stream&, const std::function<void()>&) {
  throw Error(Status::unavailable, "this build has no CUDA");
}

std::unique_ptr<RecordedWork> record_for_kernels(Stream&, const std::function<void()>&) {
  throw Error(Status::unavailable, "this build has no CUDA");
}

}  // namespace beeline
