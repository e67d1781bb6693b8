// SPDX-License-Identifier: Apache-2.0
/// @file
/// failing-rank RANK HOW: all ranks meet at a barrier; then RANK fails, and the others wait for it in vain.

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "beeline/runtime/bootstrap.hpp"

namespace {

void fail(beeline::Bootstrap& bootstrap, const std::string& how) {
  std::fprintf(stderr, "about to fail: %s\n", how.c_str());
  if (how == "kill") ::kill(::getpid(), SIGKILL);
  if (how == "segfault") {
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    ::raise(SIGSEGV);
  }
  if (how == "exit") ::_exit(0);
  if (how == "throw") throw std::runtime_error("thrown on purpose");
  if (how == "abort") {
    bootstrap.abort("on purpose");
    throw std::runtime_error("gave up");
  }
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 3) return 2;
  try {
    const auto bootstrap = beeline::join_world(beeline::Config::from_environment());
    if (bootstrap->rank() == std::atoi(arguments[1])) fail(*bootstrap, arguments[2]);
    bootstrap->barrier(20'000'000'000);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
