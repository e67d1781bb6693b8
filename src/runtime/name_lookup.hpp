// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Looking up names of hosts, with a deadline.

#include <netdb.h>

#include <memory>
#include <string>

#include "runtime/deadline.hpp"

namespace beeline::detail {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// The addresses of a name, or the error of getaddrinfo.
struct Lookup {
  AddressList list;
  int error;
};

/// As getaddrinfo, but the wait ends at the deadline with `EAI_AGAIN`: getaddrinfo itself has no limit but the settings
/// of the system's resolver, often 30 s. A thread calls it, and ends itself later if the caller no longer waits.
/// Numeric addresses need no thread. Throws no_resource; aborted if a signal of the program ends the wait.
///   port  a number
[[nodiscard]] Lookup look_up(const std::string& host, const std::string& port, const addrinfo& hints,
                             const Deadline& deadline);

}  // namespace beeline::detail
