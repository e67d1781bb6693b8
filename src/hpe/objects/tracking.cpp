// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "hpe/objects/futex_lock.hpp"
#include "hpe/objects/host_view.hpp"
#include "hpe/objects/userfaults.hpp"

namespace beeline::hpe::detail {

namespace {

/// A block's pages are mapped as a whole at the first access to one of them, and the kernel notes which are written.
class TrackedView final : public HostView {
 public:
  TrackedView(const Userfaults& faults, ShadowMemory& memory, std::size_t block_bytes)
      : faults_(faults), memory_(memory), block_bytes_(block_bytes), is_open_(memory.bytes() / block_bytes),
        woken_ns_(memory.bytes() / block_bytes) {
    memory.populate();
    faults_.watch(memory.program(), memory.bytes());
  }

  void close(Range range, bool /*may_read*/, std::vector<Range>& written) override {
    const std::lock_guard lock(mutex_);
    for_runs(range, true, [&](Range open) {
      faults_.unmap(memory_.program() + open.offset, open.bytes, memory_.program(), written);
      std::erase_if(refused_, [&](std::size_t page) { return page >= open.offset && page < open.end(); });
      set_open(open, false);
    });
  }
  void open(Range range, Permission, std::size_t awaited) override {
    const Range page = page_at(awaited);
    // A page of an open block that has lost its entry, as reclaimed memory does, may have been written.
    for_runs(range, true, [&](Range open) {
      if (is_inside(page, open)) map(page, false);
    });
    for_runs(range, false, [&](Range closed) {
      set_open(closed, true);  // before pages are mapped: if not all can be, later accesses map the others
      if (!is_inside(page, closed)) return map(closed, true);
      map(page, true);
      map({closed.offset, page.offset - closed.offset}, true);
      map({page.end(), closed.end() - page.end()}, true);
    });
    const std::lock_guard lock(mutex_);
    note_wakes(range);
  }
  void refuse(std::size_t offset) noexcept override {
    const std::lock_guard lock(mutex_);
    const Range page = page_at(offset);
    if (faults_.poison(memory_.program() + page.offset)) refused_.push_back(page.offset);
    note_wakes({offset / block_bytes_ * block_bytes_, block_bytes_});
  }
  void forget_refusals() override {
    const std::lock_guard lock(mutex_);
    for (const std::size_t page : refused_) faults_.remove_poison(memory_.program() + page);
    refused_.clear();
  }
  bool may_have_gone_on(std::size_t offset, std::int64_t seen_ns) override {
    {
      const std::lock_guard lock(mutex_);
      if (woken_ns_[offset / block_bytes_] < seen_ns) return false;
    }
    faults_.wake(memory_.program() + page_at(offset).offset);
    return true;
  }
  bool tracks_writes() const override { return true; }

 private:
  static Range page_at(std::size_t offset) {
    static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return {offset / bytes * bytes, bytes};
  }
  static bool is_inside(Range page, Range range) { return page.offset >= range.offset && page.end() <= range.end(); }
  void map(Range range, bool notes_writes) const {
    if (range.bytes > 0) faults_.map(memory_.program() + range.offset, range.bytes, notes_writes);
  }
  /// Calls `call(Range)` for each run of blocks of the range that are open, or are not.
  template <class Call>
  void for_runs(Range range, bool open, const Call& call) {
    const std::size_t last = range.end() / block_bytes_;
    for (std::size_t block = range.offset / block_bytes_; block < last;) {
      std::size_t next = block + 1;
      while (next < last && is_open_[next] == is_open_[block]) ++next;
      if (is_open_[block] == open) call(Range{block * block_bytes_, (next - block) * block_bytes_});
      block = next;
    }
  }
  void set_open(Range range, bool open) { fill(is_open_, range, open); }
  void note_wakes(Range range) { fill(woken_ns_, range, now_ns()); }
  template <class T>
  void fill(std::vector<T>& blocks, Range range, T value) const {
    const auto first = blocks.begin() + static_cast<std::ptrdiff_t>(range.offset / block_bytes_);
    std::fill(first, first + static_cast<std::ptrdiff_t>(range.bytes / block_bytes_), value);
  }

  const Userfaults& faults_;
  ShadowMemory& memory_;
  const std::size_t block_bytes_;
  std::vector<bool> is_open_;           ///< [blocks]
  std::mutex mutex_;                    ///< of what follows: refusals need not hold the object's lock
  std::vector<std::size_t> refused_;    ///< offsets of pages whose accesses are bus errors
  std::vector<std::int64_t> woken_ns_;  ///< [blocks] time, by `now_ns`, after waits for pages of the block were ended
};

}  // namespace

std::unique_ptr<HostView> make_tracked_view(ShadowMemory& memory, std::size_t block_bytes, std::string& why_not) {
  const Userfaults* const faults = Userfaults::of_process(why_not);
  if (faults == nullptr) return nullptr;
  return std::make_unique<TrackedView>(*faults, memory, block_bytes);
}

}  // namespace beeline::hpe::detail
