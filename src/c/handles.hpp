// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The structures behind the handles of the C interface.

#include <atomic>
#include <cstdint>
#include <memory>

#include "beeline/c/base.h"
#include "beeline/host/world.hpp"

namespace beeline {

class Collectives;
class CommandQueues;

namespace c {

/// A handle's first word is its type, since Fortran and other languages pass untyped pointers.
template <std::uint32_t type>
class Handle {
 public:
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { type_ = 0; }
  [[nodiscard]] bool is_whole() const { return type_ == type; }

 private:
  volatile std::uint32_t type_ = type;  // volatile, so that the destructor's store remains for later calls
};

/// Throws invalid_argument for a handle that is null or of another type.
[[noreturn]] void refuse_handle(const void* handle, const char* argument);

/// The object of a handle; refuses a null handle, and one of another type.
template <class Object>
[[nodiscard]] Object& object_of(Object* handle, const char* argument) {
  if (handle == nullptr || !handle->is_whole()) [[unlikely]]
    refuse_handle(handle, argument);
  return *handle;
}

}  // namespace c

}  // namespace beeline

struct beeline_team : beeline::c::Handle<0xbee10001> {
  beeline_team(beeline_world& in, beeline::Team* made, std::unique_ptr<beeline::Team> owned = nullptr)
      : world(&in), team(made), own(std::move(owned)) {}
  beeline_world* world;
  beeline::Team* team;
  std::unique_ptr<beeline::Team> own;         ///< nullptr: the world owns it
  std::atomic<const char*> caller = nullptr;  ///< the exclusive function that a thread is in; nullptr: none
};

struct beeline_stream : beeline::c::Handle<0xbee10002> {
  beeline_stream(beeline_world& in, beeline::Stream* made, std::unique_ptr<beeline::Stream> owned = nullptr)
      : world(&in), stream(made), own(std::move(owned)) {}
  beeline_world* world;
  beeline::Stream* stream;
  std::unique_ptr<beeline::Stream> own;  ///< nullptr: the world owns it
};

struct beeline_world : beeline::c::Handle<0xbee10003> {
  explicit beeline_world(beeline::World& of) : world(&of), team(*this, &of), stream(*this, &of.stream()) {}
  beeline::World* world;
  beeline_team team;
  beeline_stream stream;
  std::unique_ptr<beeline::World> own;  ///< nullptr: `beeline_run` owns it
};

struct beeline_config : beeline::c::Handle<0xbee1000c> {
  explicit beeline_config(beeline::Config settings) : config(std::move(settings)) {}
  beeline::Config config;
};

struct beeline_event : beeline::c::Handle<0xbee10004> {
  beeline_event(beeline_world& in, std::unique_ptr<beeline::Event> made) : world(&in), event(std::move(made)) {}
  beeline_world* world;
  std::unique_ptr<beeline::Event> event;
};

struct beeline_segment : beeline::c::Handle<0xbee10005> {
  beeline_segment(beeline_world& in, const beeline::Segment& made) : world(&in), segment(made) {}
  beeline_world* world;
  beeline::Segment segment;  ///< a copy, since a `destroy` that failed at its end has removed the world's own
};

struct beeline_registered : beeline::c::Handle<0xbee10006> {
  beeline_registered(beeline_world& in, const beeline::RegisteredMemory& made) : world(&in), memory(made) {}
  beeline_world* world;
  beeline::RegisteredMemory memory;  ///< a copy, as for segments
};
