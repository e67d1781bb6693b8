// SPDX-License-Identifier: Apache-2.0
#include "transports/staging.hpp"

#include <utility>

namespace beeline {

const char* Staging::read(DeviceLane& lane, const Rows& rows, bool is_known, Read end) {
  StagedBytes bytes = out_buffers_.take();  // the bytes leave this rank, whatever the lane
  const RowMove move{bytes.get(), rows.first, rows.rows, rows.row_bytes, rows.row_bytes, rows.stride, is_known, true};
  const std::size_t count = rows.bytes();
  return lane.begin(move, std::move(bytes),
                    [end = std::move(end), count](std::uint64_t, StagedBytes read) { end(std::move(read), count); });
}

const char* Staging::write(const Rows& rows, bool is_known, StagedBytes bytes, Changed end) {
  const RowMove move{rows.first, bytes.get(), rows.rows, rows.row_bytes, rows.stride, rows.row_bytes, true, is_known};
  return in_.begin(move, std::move(bytes), [end = std::move(end)](std::uint64_t, const StagedBytes&) { end(0); });
}

const char* Staging::change(const Command& command, std::byte* at, Changed end) {
  return in_.begin(command, at, [end = std::move(end)](std::uint64_t held, const StagedBytes&) { end(held); });
}

}  // namespace beeline
