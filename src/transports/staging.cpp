// SPDX-License-Identifier: Apache-2.0
#include "transports/staging.hpp"

#include <utility>

namespace beeline {

namespace {

/// The command that moves rows from or to contiguous bytes.
Command move_of(Verb verb, const Rows& rows, const std::byte* bytes) {
  Command command{};
  command.verb = verb;
  command.rows = rows.rows, command.row_bytes = rows.row_bytes;
  command.remote_stride = rows.rows == 1 ? rows.row_bytes : rows.stride, command.local_stride = rows.row_bytes;
  command.local = reinterpret_cast<std::uintptr_t>(bytes);
  return command;
}

}  // namespace

const char* Staging::read(DeviceLane& lane, const Rows& rows, StagedBytes bytes, Read end) {
  const Command command = move_of(Verb::get, rows, bytes.get());
  const std::size_t count = rows.bytes();
  return lane.begin(command, rows.first, std::move(bytes),
                    [end = std::move(end), count](std::uint64_t, StagedBytes read) { end(std::move(read), count); });
}

const char* Staging::write(const Rows& rows, StagedBytes bytes, Changed end) {
  const Command command = move_of(Verb::put, rows, bytes.get());
  return in_.begin(command, rows.first, std::move(bytes),
                   [end = std::move(end)](std::uint64_t, const StagedBytes&) { end(0); });
}

const char* Staging::change(const Command& command, std::byte* at, Changed end) {
  return in_.begin(command, at, {}, [end = std::move(end)](std::uint64_t held, const StagedBytes&) { end(held); });
}

}  // namespace beeline
