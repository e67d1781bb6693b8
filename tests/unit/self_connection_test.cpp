// SPDX-License-Identifier: Apache-2.0
/// @file
/// A connection to a port at which no program listens, for which the kernel takes the same port as the local one, as it
/// does about once in 14,000 attempts: `connect` of this program asks it to.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <string>

#include "runtime/socket.hpp"
#include "tests/support/errors.hpp"

namespace {

std::atomic<int> port_without_listener{0};

int port_of(const sockaddr* address) {
  return address->sa_family == AF_INET ? ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port) : 0;
}

}  // namespace

extern "C" int connect(int socket, const sockaddr* address, socklen_t bytes) {
  if (const int port = port_of(address); port != 0 && port == port_without_listener) ::bind(socket, address, bytes);
  static auto* const real = reinterpret_cast<decltype(&::connect)>(::dlsym(RTLD_NEXT, "connect"));
  return real(socket, address, bytes);
}

namespace beeline_test {

namespace {

using namespace beeline;

TEST(SelfConnection, IsNoConnection) {
  std::string endpoint;
  {
    const FileDescriptor listener = detail::listen_tcp("127.0.0.1");
    endpoint = detail::local_endpoint(listener.get());
  }
  port_without_listener = std::stoi(endpoint.substr(endpoint.find(':') + 1));
  check_error(Status::unreachable, {"cannot connect to the rendezvous server at " + endpoint + ": Connection refused"},
              [&] { static_cast<void>(detail::connect_tcp(endpoint, detail::Deadline(20'000'000'000))); });
  port_without_listener = 0;
}

}  // namespace

}  // namespace beeline_test
