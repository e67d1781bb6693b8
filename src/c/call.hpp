// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The boundary of the C interface: exceptions become statuses with a text, and arguments are checked.

#include <fmt/format.h>

#include <cstdint>
#include <type_traits>

#include "beeline/beeline.h"
#include "beeline/core/error.hpp"
#include "beeline/device/impl/route.hpp"
#include "beeline/host/team.hpp"
#include "c/handles.hpp"

namespace beeline::c {

/// Sets the calling thread's error text from the exception that is being handled, and returns the exception's status.
[[nodiscard]] beeline_status fail_with_exception(const char* function) noexcept;
/// As above, for a failed operation of `team`; the text comes from the team's records.
[[nodiscard]] beeline_status fail_with_records(const char* function, Team& team, Status status) noexcept;

/// Runs `body` and returns its status; ok if it returns nothing.
template <class Body>
[[nodiscard]] beeline_status guarded(const char* function, const Body& body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return BEELINE_OK;
    } else {
      return static_cast<beeline_status>(body());
    }
  } catch (...) {
    return fail_with_exception(function);
  }
}

/// `guarded` for an operation of CPU threads: `body(team, context)` returns its status.
template <class Body>
[[nodiscard]] beeline_status operate(const char* function, beeline_team* handle, const Body& body) noexcept {
  return guarded(function, [&] {
    Team& team = *object_of(handle, "team").team;
    const Status status = body(team, team.host_context());
    if (status == Status::ok || status == Status::timeout) [[likely]]
      return static_cast<beeline_status>(status);
    return fail_with_records(function, team, status);
  });
}

[[noreturn]] void refuse(const char* argument, const std::string& fault);

inline void require_pointer(const void* pointer, const char* argument) {
  if (pointer == nullptr) [[unlikely]]
    refuse(argument, "a null pointer");
}
/// Pointers of a transfer of 0 bytes may be null.
inline void require_memory(const void* pointer, std::size_t bytes, const char* argument) {
  if (bytes != 0) require_pointer(pointer, argument);
}
/// Requires the number of an enumerator: 0 to `count` - 1.
inline void require_enumerator(std::int32_t number, std::uint32_t count, const char* argument) {
  if (static_cast<std::uint32_t>(number) >= count) [[unlikely]]
    refuse(argument, fmt::format("{}, where 0 to {} are known", number, count - 1));
}
[[nodiscard]] inline std::uint32_t peer_of(const Team& team, std::int32_t peer, const char* argument = "peer") {
  if (static_cast<std::uint32_t>(peer) >= team.context().size) [[unlikely]]
    refuse(argument, fmt::format("rank {} of a team of {}", peer, team.size()));
  return static_cast<std::uint32_t>(peer);
}
/// The rank from which a wait expects data; `no_peer` for BEELINE_ANY_RANK.
[[nodiscard]] inline std::uint32_t source_of(const Team& team, std::int32_t peer) {
  return peer == BEELINE_ANY_RANK ? no_peer : peer_of(team, peer);
}

[[nodiscard]] inline QueueId queue_of(std::uint32_t queue) {
  if (queue >= max_queues) [[unlikely]]
    refuse("queue", fmt::format("{}, where 0 to {} are known", queue, max_queues - 1));
  return {queue};
}
/// nullptr: the default stream.
[[nodiscard]] inline Stream* stream_of(beeline_stream* stream) {
  return stream == nullptr ? nullptr : object_of(stream, "stream").stream;
}

/// Returns the structure; refuses one whose size differs from this library's.
template <class Structure>
Structure& structure_of(Structure* structure, const char* argument) {
  require_pointer(structure, argument);
  if (structure->struct_bytes != sizeof(Structure))
    refuse(argument, fmt::format("struct_bytes is {}, and the structure has {} bytes in this library",
                                 structure->struct_bytes, sizeof(Structure)));
  return *structure;
}

/// A call of a function that only one thread at a time may call for a team. Refuses a second call.
class ExclusiveCall {
 public:
  ExclusiveCall(beeline_team& team, const char* function);
  ~ExclusiveCall() { team_.caller.store(nullptr, std::memory_order_release); }
  ExclusiveCall(const ExclusiveCall&) = delete;
  ExclusiveCall& operator=(const ExclusiveCall&) = delete;

 private:
  beeline_team& team_;
};

/// `guarded` for a collective function of a team: `body(team)`.
template <class Body>
[[nodiscard]] beeline_status collective(const char* function, beeline_team* handle, const Body& body) noexcept {
  return guarded(function, [&] {
    beeline_team& team = object_of(handle, "team");
    const ExclusiveCall call(team, function);
    return body(*team.team);
  });
}
/// `guarded` for a collective function of a world: `body(world)`.
template <class Body>
[[nodiscard]] beeline_status collective_of_world(const char* function, beeline_world* handle,
                                                 const Body& body) noexcept {
  return guarded(function, [&] {
    beeline_world& world = object_of(handle, "world");
    const ExclusiveCall call(world.team, function);
    return body(*world.world);
  });
}

}  // namespace beeline::c
