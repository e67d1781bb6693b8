// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ranges that profilers such as Nsight Systems show (NVTX, domain `beeline`): nothing where the build has no CUDA
/// toolkit, and a look at a null pointer where no profiler is attached.

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define BEELINE_HAS_NVTX 1
#else
#define BEELINE_HAS_NVTX 0
#endif

namespace beeline::detail {

#if BEELINE_HAS_NVTX

/// From its construction on, on the calling thread.
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

  /// The destructor leaves it to end(), which another function calls on this thread.
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
