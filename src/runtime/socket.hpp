// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// TCP sockets and descriptors that the bootstraps wait on. All are non-blocking and closed on exec.

#include <string>
#include <thread>

#include "beeline/runtime/file_descriptor.hpp"
#include "runtime/deadline.hpp"

namespace beeline::detail {

/// Listens on `address`, host[:port]; without a port the system chooses one. "::1" is "[::1]". Throws unreachable or
/// invalid_argument.
[[nodiscard]] FileDescriptor listen_tcp(const std::string& address);

/// host:port that `listener` is bound to, as connect_tcp takes it.
[[nodiscard]] std::string local_endpoint(int listener);

/// Connects to host:port. Throws unreachable, deadline, or invalid_argument when `endpoint` is none.
[[nodiscard]] FileDescriptor connect_tcp(const std::string& endpoint, const Deadline& deadline);

/// Small frames leave at once, and a peer whose machine has vanished breaks the connection within half a minute.
void tune_connection(int socket);

enum class Ready { yes, cancelled, deadline };

/// Waits until `descriptor` has one of `events` (of poll), or `cancel` (-1: none) is readable.
[[nodiscard]] Ready wait_ready(int descriptor, short events, int cancel, const Deadline& deadline);

/// A flag that poll() can wait for: readable while it is raised.
class Event {
 public:
  Event();
  void raise() const noexcept;
  void lower() const noexcept;
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }

 private:
  FileDescriptor descriptor_;
};

/// Starts a thread that receives no signals: they belong to the program's own threads. Throws no_resource, which names
/// what it is for.
[[nodiscard]] std::thread start_thread(const char* purpose, void (*body)(void*), void* argument);

/// Text of an errno.
[[nodiscard]] std::string system_message(int error);

}  // namespace beeline::detail
