// SPDX-License-Identifier: Apache-2.0
#include "cufft.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "beeline/core/error.hpp"
#include "beeline/runtime/device.hpp"

namespace fft {

namespace {

using beeline::require;
using beeline::Status;

/// The functions of cuFFT's C interface that are used; each returns 0 or an error.
struct Library {
  int (*plan)(int* plan, int count, int type, int batch) = nullptr;
  int (*set_stream)(int plan, void* stream) = nullptr;
  int (*execute)(int plan, Complex* in, Complex* out, int direction) = nullptr;
  int (*destroy)(int plan) = nullptr;
  std::string why_not;
};

Library open_library() {
  Library library;
  void* handle = nullptr;
  for (const char* name : {"libcufft.so.12", "libcufft.so.11", "libcufft.so"})
    if (handle == nullptr) handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    library.why_not = "GPUs transform by cuFFT, and libcufft.so is not in the linker's path (LD_LIBRARY_PATH)";
    return library;
  }
  const auto load = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr) library.why_not = fmt::format("cuFFT has no function {}", name);
  };
  load(library.plan, "cufftPlan1d");
  load(library.set_stream, "cufftSetStream");
  load(library.execute, "cufftExecC2C");
  load(library.destroy, "cufftDestroy");
  return library;
}

const Library& library() {
  static const Library opened = open_library();
  return opened;
}

void require_done(int error, const char* function, beeline::hpe::Device gpu) {
  constexpr int no_memory = 2;  // CUFFT_ALLOC_FAILED
  require(error == 0, error == no_memory ? Status::no_resource : Status::internal,
          fmt::format("{} on {}: cuFFT's error {}", function, gpu.name(), error));
}

}  // namespace

std::string why_no_cufft() { return library().why_not; }

CufftTransform::CufftTransform(beeline::hpe::Device gpu, std::size_t count, std::size_t transforms) : gpu_(gpu) {
  constexpr int complex_to_complex = 0x29;  // CUFFT_C2C
  constexpr std::size_t largest = std::size_t{1} << 30;
  require(why_no_cufft().empty(), Status::unavailable, why_no_cufft());
  require(count * transforms <= largest, Status::invalid_argument,
          fmt::format("{} elements on {}: cuFFT's plans have at most {}", count * transforms, gpu.name(), largest));
  beeline::use_gpu(gpu.index());  // cuFFT works on the current GPU
  require_done(library().plan(&plan_, static_cast<int>(count), complex_to_complex, static_cast<int>(transforms)),
               "cufftPlan1d", gpu_);
}

CufftTransform::~CufftTransform() {
  beeline::use_gpu(gpu_.index());
  library().destroy(plan_);
}

Complex* CufftTransform::enqueue(beeline::hpe::Stream& stream, Complex* elements, Complex* /*other*/) {
  constexpr int forward = -1;
  beeline::use_gpu(gpu_.index());
  require_done(library().set_stream(plan_, stream.native()), "cufftSetStream", gpu_);
  require_done(library().execute(plan_, elements, elements, forward), "cufftExecC2C", gpu_);
  return elements;
}

}  // namespace fft
