// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps processes of other users of this machine from connecting to UCX. UCX does not check who connects: any process
/// that reaches its TCP port can write to any address of this process (docs/network.md).

#include <optional>
#include <string>

struct sockaddr_storage;

namespace beeline {

/// Inserts a check of each connection that UCX accepts. A connection whose other end is a socket of this machine that
/// does not belong to this process's user is closed before UCX reads from it. Connections from other machines pass.
/// Called once, after UCX has been loaded. Returns why connections are not checked; empty if they are.
[[nodiscard]] std::string guard_connections();

/// The user who owns the TCP connection from `local` to `remote`, both addresses of this machine; nothing if the
/// connection is not open (any more). Throws unavailable if the kernel does not report the user.
[[nodiscard]] std::optional<unsigned> user_of_connection(const sockaddr_storage& local, const sockaddr_storage& remote);

}  // namespace beeline
