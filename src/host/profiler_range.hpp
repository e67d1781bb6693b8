// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ranges that profilers such as Nsight Systems show (NVTX, domain `beeline`). Without a CUDA toolkit in the build they
/// do nothing; without a profiler they cost the test of a null pointer.

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define BEELINE_HAS_NVTX 1
#else
#define BEELINE_HAS_NVTX 0
#endif

namespace beeline::detail {

#if BEELINE_HAS_NVTX

/// A range on the calling thread, from the construction to the destruction of this object.
class ProfilerRange {
 public:
  explicit ProfilerRange(const char* name) {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
    nvtxDomainRangePushEx(domain(), &attributes);
  }
  ~ProfilerRange() {
    if (!left_open_) end();
  }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

  /// The destructor does not end the range; another function on this thread calls end().
  void leave_open() { left_open_ = true; }
  static void end() { nvtxDomainRangePop(domain()); }

 private:
  static nvtxDomainHandle_t domain() {
    static const nvtxDomainHandle_t made = nvtxDomainCreateA("beeline");
    return made;
  }
  bool left_open_ = false;
};

#else

class ProfilerRange {
 public:
  explicit ProfilerRange(const char*) {}
  void leave_open() {}
  static void end() {}
};

#endif

}  // namespace beeline::detail
