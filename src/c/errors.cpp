// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "c/call.hpp"

namespace beeline::c {

namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

void set_last_error(const char* function, const char* text) noexcept {
  try {
    last_error() = fmt::format("{}: {}", function, text);
  } catch (const std::exception&) {
    last_error().clear();  // there is no memory for a text
  }
}

}  // namespace

beeline_status fail_with_exception(const char* function) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    set_last_error(function, error.what());
    return static_cast<beeline_status>(error.code());
  } catch (const std::bad_alloc&) {
    set_last_error(function, "no memory");
    return BEELINE_NO_RESOURCE;
  } catch (const std::exception& error) {
    set_last_error(function, error.what());
    return BEELINE_INTERNAL;
  } catch (...) {
    set_last_error(function, "an exception of an unknown type");
    return BEELINE_INTERNAL;
  }
}

beeline_status fail_with_records(const char* function, Team& team, Status status) noexcept {
  try {
    team.world().check();
    set_last_error(function, name(status));
  } catch (const std::exception& error) {
    set_last_error(function, error.what());
  }
  return static_cast<beeline_status>(status);
}

void refuse(const char* argument, const std::string& fault) {
  throw Error(Status::invalid_argument, fmt::format("argument {}: {}", argument, fault));
}

void refuse_handle(const void* handle, const char* argument) {
  refuse(argument, handle == nullptr ? "a null handle" : "a handle of another type, or one that was destroyed");
}

ExclusiveCall::ExclusiveCall(beeline_team& team, const char* function) : team_(team) {
  const char* other = nullptr;
  if (!team.caller.compare_exchange_strong(other, function, std::memory_order_acq_rel))
    throw Error(
        Status::invalid_argument,
        fmt::format("another thread is in {}: one thread at a time calls the collective functions of a team", other),
        team.team->world().rank());
}

}  // namespace beeline::c

using namespace beeline;

const char* beeline_last_error(void) noexcept { return c::last_error().c_str(); }
const char* beeline_status_name(beeline_status status) noexcept { return name(static_cast<Status>(status)); }
int32_t beeline_version(void) noexcept { return BEELINE_VERSION; }

static_assert(sizeof(std::size_t) == 8 && sizeof(void*) == 8);
static_assert(BEELINE_OK == static_cast<int>(Status::ok) &&
              BEELINE_IN_PROGRESS == static_cast<int>(Status::in_progress));
static_assert(BEELINE_TIMEOUT == static_cast<int>(Status::timeout));
static_assert(BEELINE_NO_RESOURCE == static_cast<int>(Status::no_resource));
static_assert(BEELINE_DEADLINE == static_cast<int>(Status::deadline));
static_assert(BEELINE_ABORTED == static_cast<int>(Status::aborted));
static_assert(BEELINE_UNREACHABLE == static_cast<int>(Status::unreachable));
static_assert(BEELINE_INVALID_ARGUMENT == static_cast<int>(Status::invalid_argument));
static_assert(BEELINE_UNAVAILABLE == static_cast<int>(Status::unavailable));
static_assert(BEELINE_PEER_DIED == static_cast<int>(Status::peer_died));
static_assert(BEELINE_INTERNAL == static_cast<int>(Status::internal));
