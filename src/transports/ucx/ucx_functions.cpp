// SPDX-License-Identifier: Apache-2.0
#include "transports/ucx/ucx_functions.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "beeline/core/error.hpp"
#include "core/environment.hpp"
#include "transports/ucx/connection_guard.hpp"

namespace beeline {

namespace {

constexpr unsigned least_major = 1, least_minor = 13;
constexpr const char* remedy =
    "install UCX 1.13 or later: Debian's libucx0, or PyPI's libucx-cu13 with BEELINE_UCX set to its folder libucx/lib";

[[noreturn]] void fail(const std::string& what) {
  throw Error(Status::unavailable, fmt::format("ranks on several nodes need UCX: {}; {}", what, remedy));
}

/// In a folder whose libraries have no search path, each library finds those loaded before it by name. PyPI's libraries
/// have a search path, and UCX 1.22's libucm opens only with libucs: only the last library's error counts.
void* open_library() {
  const std::string folder = detail::environment("BEELINE_UCX").value_or("");
  if (folder.empty()) return ::dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
  void* opened = nullptr;
  for (const char* name : {"libucm.so.0", "libucs.so.0", "libuct.so.0", "libucp.so.0"})
    opened = ::dlopen(fmt::format("{}/{}", folder, name).c_str(), RTLD_NOW | RTLD_LOCAL);
  return opened;
}

void* find(void* library, const char* function) {
  void* const found = ::dlsym(library, function);
  if (found == nullptr) fail(fmt::format("what was found has no {}", function));
  return found;
}

UcxFunctions open_ucx() {
  void* const library = open_library();
  if (library == nullptr) fail(fmt::format("it was not found ({})", ::dlerror()));
  UcxFunctions functions{};
  functions.ucp_get_version = reinterpret_cast<decltype(functions.ucp_get_version)>(find(library, "ucp_get_version"));
  unsigned major = 0, release = 0;
  functions.ucp_get_version(&major, &functions.minor, &release);
  functions.version = fmt::format("{}.{}.{}", major, functions.minor, release);
  if (major != least_major || functions.minor < least_minor)
    fail(fmt::format("version {} was found", functions.version));
#define BEELINE_UCX_FIND(function) \
  functions.function = reinterpret_cast<decltype(functions.function)>(find(library, #function));
  BEELINE_UCX_FUNCTIONS(BEELINE_UCX_FIND)
#undef BEELINE_UCX_FIND
  functions.unguarded = guard_connections();
  return functions;
}

}  // namespace

const UcxFunctions& ucx() {
  static const UcxFunctions functions = open_ucx();
  return functions;
}

}  // namespace beeline
