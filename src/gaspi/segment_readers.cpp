// SPDX-License-Identifier: Apache-2.0
#include "gaspi/segment_readers.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <vector>

namespace beeline::gaspi {

namespace {

/// All sheets, and those whose threads have ended. Never destroyed: threads may end after static objects.
struct Sheets {
  std::mutex mutex;
  std::vector<std::unique_ptr<SegmentReaders::Sheet>> all;
  std::vector<SegmentReaders::Sheet*> unused;
};
Sheets& sheets() {
  static Sheets* const made = new Sheets;
  return *made;
}

/// Gives a sheet back when its thread ends.
struct Adopted {
  SegmentReaders::Sheet* sheet;
  ~Adopted() {
    const std::lock_guard lock(sheets().mutex);
    sheets().unused.push_back(sheet);
  }
};

bool barrier_of_all_threads(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

void SegmentReaders::prepare() {
  uses_need_fences = !barrier_of_all_threads(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

SegmentReaders::Sheet& SegmentReaders::adopt_sheet() {
  const std::lock_guard lock(sheets().mutex);
  if (sheets().unused.empty()) {
    own = sheets().all.emplace_back(std::make_unique<Sheet>()).get();
  } else {
    own = sheets().unused.back();
    sheets().unused.pop_back();
  }
  thread_local const Adopted adopted{own};
  return *own;
}

bool SegmentReaders::Earlier::have_ended() {
  const auto is_unused = [this](const Sheet* sheet) { return (*sheet)[id_].load(std::memory_order_acquire) == 0; };
  if (!is_listed_) {
    // Where the barrier fails although it was registered, a use might not be seen: then none counts as ended.
    if (!uses_need_fences && !barrier_of_all_threads(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return false;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::lock_guard lock(sheets().mutex);
    for (const auto& sheet : sheets().all) in_use_.push_back(sheet.get());
    is_listed_ = true;
  }
  std::erase_if(in_use_, is_unused);
  return in_use_.empty();
}

}  // namespace beeline::gaspi
