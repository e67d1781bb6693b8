// SPDX-License-Identifier: Apache-2.0
#include "host/world/areas.hpp"

#include <fmt/format.h>

#include "beeline/core/operation.hpp"

namespace beeline {

std::string Areas::describe_offset(std::uint64_t offset) const {
  if (offset < slot_.device_segments_offset())
    return fmt::format("offset {:#x} of its own symmetric heap", offset - offset_in_slot(heap_start()));
  if (offset >= slot_.host_area_offset() && offset < slot_.host_segments_offset())
    return fmt::format("offset {:#x} of its own pinned heap",
                       offset - slot_.host_area_offset() - aligned(sizeof(HostAreaHeader)));
  return fmt::format("offset {:#x} of its own slot", offset);
}

std::string Areas::describe_awaited(const WaitRecord& record) const {
  if (record.operation != static_cast<std::uint32_t>(Operation::wait) || record.sequence == 0) return "";
  return " at " + describe_offset(record.sequence);
}

}  // namespace beeline
