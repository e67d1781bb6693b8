// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The program's view of an object in host memory, and how a protocol opens and closes it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hpe/objects/shadow_memory.hpp"

namespace beeline::hpe::detail {

/// Part of an object, in bytes from its start.
struct Range {
  std::size_t offset = 0;
  std::size_t bytes = 0;
  [[nodiscard]] std::size_t end() const { return offset + bytes; }
};

/// What threads of the program may do with a part of their mapping.
enum class Permission { none, read, write };

/// The program's mapping of an object, under one protocol. Its callers hold the object's lock. Ranges are whole blocks.
class HostView {
 public:
  virtual ~HostView() = default;
  /// Takes access away: afterwards no thread reads or writes the range, or none writes it if `may_read`; one that tries
  /// waits in a fault.
  /// Appends to `written` the pages that were written since the range was last closed, in the order of addresses, if
  /// the protocol tracks writes.
  virtual void close(Range range, bool may_read, std::vector<Range>& written) = 0;
  /// Gives access to a range whose pages are current.
  ///   awaited  offset of an access, whose thread may go on before the rest is open; it may lie outside the range
  virtual void open(Range range, Permission permission, std::size_t awaited) = 0;
  /// Ends the waits of threads in a fault at `offset`, whose block cannot be made current: their access fails. Does
  /// nothing in a protocol whose faults are signals, since the signal's handler reports the failure.
  virtual void refuse(std::size_t offset) noexcept = 0;
  /// Accesses to pages that were refused are faults again.
  virtual void forget_refusals() = 0;
  /// Whether the thread of an access at `offset`, which was noticed at `seen_ns` (of `now_ns`), may have gone on since,
  /// because its page was opened for another access. If the thread still waits, it repeats the access. False in a
  /// protocol whose faults are signals: their handlers wait themselves.
  [[nodiscard]] virtual bool may_have_gone_on(std::size_t offset, std::int64_t seen_ns) = 0;
  /// Whether writes are found by `close`. Otherwise the first write to a block is a fault.
  [[nodiscard]] virtual bool tracks_writes() const = 0;
};

/// By the protection of pages: a first access is a SIGSEGV (fault_handler.hpp).
[[nodiscard]] std::unique_ptr<HostView> make_protected_view(ShadowMemory& memory);
/// By userfaultfd. nullptr, with the reason, where the kernel or the process's rights do not permit it.
[[nodiscard]] std::unique_ptr<HostView> make_tracked_view(ShadowMemory& memory, std::size_t block_bytes,
                                                          std::string& why_not);

}  // namespace beeline::hpe::detail
