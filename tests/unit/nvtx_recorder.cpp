// SPDX-License-Identifier: Apache-2.0
// An NVTX tool that counts ranges: NVTX_INJECTION64_PATH names it, and NVTX calls InitializeInjectionNvtx2 at the first
// use in the process. Source: nvtx3/nvtxDetail/nvtxTypes.h.
#include "tests/unit/nvtx_recorder.hpp"

#include <nvtx3/nvToolsExt.h>

#include <map>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::map<std::string, int> pushed;
int popped = 0, open_ranges = 0, foreign = 0;
int beeline_domain = 0, other_domain = 0;  // the addresses of these are the handles

nvtxDomainHandle_t create_domain(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(std::string(name) == "beeline" ? &beeline_domain : &other_domain);
}

bool is_beeline(nvtxDomainHandle_t domain) { return reinterpret_cast<int*>(domain) == &beeline_domain; }

int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const std::lock_guard lock(mutex);
  if (!is_beeline(domain)) return ++foreign;
  ++pushed[attributes->message.ascii];
  return ++open_ranges;
}

int pop(nvtxDomainHandle_t domain) {
  const std::lock_guard lock(mutex);
  if (!is_beeline(domain)) return 0;
  ++popped;
  return --open_ranges;
}

}  // namespace

extern "C" {

beeline_test::NvtxCounts beeline_nvtx_counts(const char* name) {
  const std::lock_guard lock(mutex);
  return {pushed[name], popped, open_ranges, foreign};
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, nullptr) == 0)
    return 0;
  *functions[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(&create_domain);
  *functions[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(&push);
  *functions[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  return 1;
}
}
