// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps processes of other users of this machine from the connections of UCX, which checks nobody: whoever reaches its
/// TCP port writes to any address of the process (docs/network.md).

#include <optional>
#include <string>

struct sockaddr_storage;

namespace beeline {

/// Puts a check between UCX and each connection that it accepts. One whose other end is a socket of this machine that
/// does not belong to this process's user is closed before UCX reads from it. Connections from other machines pass.
/// Called once, after UCX has been loaded. Returns why there is no check; empty: there is.
[[nodiscard]] std::string guard_connections();

/// The user who owns the TCP connection from `local` to `remote`, both of this machine; none: it is not open (any
/// more). Throws unavailable where the kernel does not tell.
[[nodiscard]] std::optional<unsigned> user_of_connection(const sockaddr_storage& local, const sockaddr_storage& remote);

}  // namespace beeline
