// SPDX-License-Identifier: Apache-2.0
/// @file
/// Names of hosts whose lookup takes longer than the deadline. getaddrinfo of this program stands in for that of the
/// system: it does not answer for the name "silent.test" until the test ends.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "runtime/socket.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/stopwatch.hpp"

namespace {

std::atomic<bool> answers{false};
std::atomic<int> waiting{0};

}  // namespace

extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints, addrinfo** found) {
  const bool is_numeric = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (host != nullptr && std::string(host) == "silent.test" && !is_numeric) {
    ++waiting;
    while (!answers) ::usleep(1000);
    --waiting;
    return EAI_NONAME;
  }
  static auto* const real = reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(host, port, hints, found);
}

namespace beeline_test {

namespace {

using namespace beeline;
using detail::Deadline;

TEST(NameLookup, EndsByTheDeadlineThoughTheResolverIsSilent) {
  const Stopwatch stopwatch;
  check_error(Status::unreachable, {"the name of \"silent.test:7\" was not found within 0.2 s"},
              [] { static_cast<void>(detail::connect_tcp("silent.test:7", Deadline(200'000'000))); });
  EXPECT_LT(stopwatch.seconds(), 10);
  EXPECT_EQ(1, waiting);
  check_error(Status::unreachable, {"the name of \"silent.test\" was not found within 0.1 s"},
              [] { detail::await_name("silent.test", Deadline(100'000'000)); });
  answers = true;
  while (waiting != 0 && stopwatch.seconds() < 10) ::usleep(1000);
  EXPECT_EQ(0, waiting);
}

TEST(NameLookup, FindsNumbersAndNamesOfThisMachine) {
  for (const char* const host : {"127.0.0.1", "localhost", "[::1]"})
    EXPECT_NO_THROW(detail::await_name(host, Deadline(20'000'000'000))) << host;
}

}  // namespace

}  // namespace beeline_test
