// SPDX-License-Identifier: Apache-2.0
#include "runtime/tls/openssl.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "beeline/core/error.hpp"

namespace beeline::detail {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Error(Status::unavailable, fmt::format("encrypted connections (--secure) need OpenSSL 3: {}; install Debian's "
                                               "libssl3",
                                               what));
}

void* find(void* library, const char* function) {
  void* const found = ::dlsym(library, function);  // also looks in libcrypto, which the library has loaded
  if (found == nullptr) fail(fmt::format("what was found has no {}", function));
  return found;
}

OpenSslFunctions open_library() {
  void* const library = ::dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(fmt::format("it was not found ({})", ::dlerror()));
  OpenSslFunctions functions{};
#define BEELINE_OPENSSL_FIND(function) \
  functions.function = reinterpret_cast<decltype(functions.function)>(find(library, #function));
  BEELINE_OPENSSL_FUNCTIONS(BEELINE_OPENSSL_FIND)
#undef BEELINE_OPENSSL_FIND
  return functions;
}

}  // namespace

const OpenSslFunctions& openssl() {
  static const OpenSslFunctions functions = open_library();
  return functions;
}

}  // namespace beeline::detail
