// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The kernel's userfaultfd and scan of page tables, for one process. Definitions that older headers of the kernel lack
/// are here; the kernel is asked at run time.
/// Sources: ioctl_userfaultfd(2), PAGEMAP_SCAN in Documentation/admin-guide/mm/pagemap.rst of Linux 6.7.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "beeline/runtime/file_descriptor.hpp"
#include "hpe/objects/host_view.hpp"

namespace beeline::hpe::detail {

class Userfaults {
 public:
  /// The process's descriptor. nullptr, with the reason, where the kernel or the process's rights do not permit it.
  [[nodiscard]] static Userfaults* of_process(std::string& why_not);

  /// A thread that waits in a fault.
  struct Event {
    std::byte* address;  ///< start of the page
    bool is_write;
    pid_t thread;  ///< by `gettid`
  };
  /// For `poll`: readable while there are events.
  [[nodiscard]] int descriptor() const { return faults_.get(); }
  /// The next event, without waiting; no value if there is none.
  [[nodiscard]] std::optional<Event> next() const;

  /// From now on first accesses to pages of the mapping that have no entry in the page tables are events, in system
  /// calls, too, and the kernel notes which pages are written. Throws internal.
  void watch(std::byte* start, std::size_t bytes) const;
  /// Maps pages, which exist in the file, and ends the waits for them. Pages that are mapped already stay as they are.
  ///   notes_writes  whether the kernel notes a later write; otherwise the pages count as written
  void map(std::byte* start, std::size_t bytes, bool notes_writes) const;
  /// Removes the pages from the page tables. Appends those that were written since `map` to `written`, as ranges of
  /// addresses from `base` on. No write can come between: a page table's entry keeps the mark of a page that was not
  /// written when the page is removed, so that a removed page without a mark was written.
  void unmap(std::byte* start, std::size_t bytes, const std::byte* base, std::vector<Range>& written) const;
  /// Ends the waits for a page: threads repeat their accesses.
  void wake(std::byte* page) const noexcept;
  /// From now on, accesses to the page are bus errors; threads that wait for it get one. Returns false, and only ends
  /// their waits, if the page is mapped.
  [[nodiscard]] bool poison(std::byte* page) const noexcept;
  /// Accesses to a page of `poison` are events again.
  void remove_poison(std::byte* page) const;

 private:
  Userfaults() = default;
  [[nodiscard]] std::string open();
  [[nodiscard]] std::string find_defect() const;
  void mark(std::byte* start, std::size_t bytes) const;
  [[nodiscard]] bool set_marks(std::byte* start, std::size_t bytes, std::uint64_t mode) const noexcept;

  FileDescriptor faults_;
  FileDescriptor page_map_;
};

}  // namespace beeline::hpe::detail
