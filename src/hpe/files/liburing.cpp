// SPDX-License-Identifier: Apache-2.0
#include "hpe/files/liburing.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "beeline/core/error.hpp"
#include "core/fork.hpp"

namespace beeline::hpe::detail {

namespace {

void* find_in_liburing(void* library, const char* function) {
  void* const found = ::dlsym(library, function);
  require(found != nullptr, Status::unavailable, fmt::format("liburing has no {}: install version 2.3", function));
  return found;
}

UringFunctions open_liburing() {
  void* const library = ::dlopen("liburing.so.2", RTLD_NOW | RTLD_LOCAL);
  require(
      library != nullptr, Status::unavailable,
      fmt::format("liburing was not found ({}): install Debian's liburing2", library == nullptr ? ::dlerror() : ""));
  UringFunctions functions{};
#define BEELINE_LIBURING_FIND(function) \
  functions.function = reinterpret_cast<decltype(functions.function)>(find_in_liburing(library, #function));
  BEELINE_LIBURING_FUNCTIONS(BEELINE_LIBURING_FIND)
#undef BEELINE_LIBURING_FIND
  return functions;
}

}  // namespace

const UringFunctions& uring() {
  static constinit beeline::detail::ProcessValue<const UringFunctions> functions;
  return functions.get(open_liburing);
}

}  // namespace beeline::hpe::detail
