// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// TCP sockets and descriptors on which the bootstraps wait. All are non-blocking and closed on exec.

#include <string>
#include <thread>

#include "beeline/runtime/file_descriptor.hpp"
#include "runtime/deadline.hpp"

namespace beeline::detail {

/// Listens on `address`, host[:port], with IPv6 addresses in brackets ("[::1]"). Without a port the system chooses one.
/// Throws unreachable or invalid_argument.
[[nodiscard]] FileDescriptor listen_tcp(const std::string& address);

/// The host:port that `listener` is bound to, in the form that connect_tcp takes.
[[nodiscard]] std::string local_endpoint(int listener);

/// Whether `endpoint` is host:port, and not a host alone.
[[nodiscard]] bool has_port(const std::string& endpoint);

/// Waits until the name of host[:port] is known. Throws unreachable at the deadline.
void await_name(const std::string& endpoint, const Deadline& deadline);

/// Waits until the name in host:port is known, then connects. Throws unreachable (also if the host does not answer for
/// 8 s), deadline, or invalid_argument if `endpoint` is not of that form.
[[nodiscard]] FileDescriptor connect_tcp(const std::string& endpoint, const Deadline& deadline);

/// Sets options: small frames are sent at once, and the connection to a vanished machine breaks within half a minute.
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

/// Starts a thread that receives no signals: those belong to the program's own threads. Throws no_resource, with
/// `purpose` in the text.
[[nodiscard]] std::thread start_thread(const char* purpose, void (*body)(void*), void* argument);

/// The text of an errno.
[[nodiscard]] std::string system_message(int error);

}  // namespace beeline::detail
