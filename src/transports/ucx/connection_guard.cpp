// SPDX-License-Identifier: Apache-2.0
// UCX calls `accept` of the C library through a slot of a table that the dynamic linker fills (ELF: .got.plt, or .got),
// and offers no hook of its own. The address of `checked_accept` is stored into this slot, in all copies of libucs in
// this process. So UCX never reads from a connection that was not checked.
#include "transports/ucx/connection_guard.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/runtime/file_descriptor.hpp"

namespace beeline {

namespace {

/// The bytes of a socket's address, and its port in network order.
struct AddressView {
  std::span<const std::byte> address;
  std::uint16_t port;
};

AddressView view_of(const sockaddr_storage& socket) {
  if (socket.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(socket);
    return {std::as_bytes(std::span(&v6.sin6_addr, 1)), v6.sin6_port};
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(socket);
  return {std::as_bytes(std::span(&v4.sin_addr, 1)), v4.sin_port};
}

/// Whether an address belongs to this host (or network namespace): other addresses cannot be bound.
bool is_of_this_host(sockaddr_storage address) {
  const bool is_v6 = address.ss_family == AF_INET6;
  (is_v6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port : reinterpret_cast<sockaddr_in&>(address).sin_port) = 0;
  const FileDescriptor probe(::socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  require(static_cast<bool>(probe), Status::no_resource, fmt::format("no socket: {}", std::strerror(errno)));
  const auto bytes = static_cast<socklen_t>(is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  return ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), bytes) == 0;
}

/// Logs the first refusal alone: a refused process may try again without end.
void report(const std::string& reason) {
  static std::atomic<bool> reported{false};
  if (!reported.exchange(true))
    log(LogLevel::warning,
        fmt::format("refused a connection to UCX's port: {}; further ones are not reported", reason));
}

/// Whether UCX may read from an accepted connection. A connection whose other end is closed is not needed: if two ranks
/// connect to each other at the same time, UCX closes one of the two connections.
bool may_be_used(int connection) {
  sockaddr_storage own{}, peer{};
  socklen_t own_bytes = sizeof own, peer_bytes = sizeof peer;
  if (::getsockname(connection, reinterpret_cast<sockaddr*>(&own), &own_bytes) != 0 ||
      ::getpeername(connection, reinterpret_cast<sockaddr*>(&peer), &peer_bytes) != 0)
    return false;
  if (peer.ss_family != AF_INET && peer.ss_family != AF_INET6) return true;
  if (!std::ranges::equal(view_of(own).address, view_of(peer).address) && !is_of_this_host(peer)) return true;
  const std::optional<unsigned> user = user_of_connection(peer, own);
  if (user && *user != ::geteuid()) report(fmt::format("it belongs to user {} of this machine", *user));
  return user == ::geteuid();
}

/// Like `accept`, with the check. UCX is C: no exception may pass through it.
int checked_accept(int listener, sockaddr* address, socklen_t* bytes) {
  const socklen_t room = bytes == nullptr ? 0 : *bytes;
  for (;;) {
    const int connection = ::accept(listener, address, bytes);
    if (connection < 0) return connection;
    try {
      if (may_be_used(connection)) return connection;
    } catch (const std::exception& error) {
      report(error.what());
    }
    ::close(connection);
    if (bytes != nullptr) *bytes = room;
  }
}

/// The relocations of a loaded library, from its dynamic section.
struct Relocations {
  std::span<const ElfW(Rela)> of_calls, of_data;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
};

Relocations relocations_of(const ElfW(Dyn) * dynamic, std::uintptr_t base) {
  std::array<std::uintptr_t, DT_JMPREL + 1> values{};  // of the tags used here, all of which are smaller
  for (; dynamic->d_tag != DT_NULL; ++dynamic)
    if (dynamic->d_tag > 0 && dynamic->d_tag <= DT_JMPREL)
      values[static_cast<std::size_t>(dynamic->d_tag)] = dynamic->d_un.d_ptr;
  const auto address = [&](std::size_t tag) {  // glibc has added the base on most machines
    return values[tag] != 0 && values[tag] < base ? base + values[tag] : values[tag];
  };
  const auto table = [&](std::size_t tag, std::size_t bytes_tag) {
    return std::span(reinterpret_cast<const ElfW(Rela)*>(address(tag)),
                     values[tag] == 0 ? 0 : values[bytes_tag] / sizeof(ElfW(Rela)));
  };
  return {table(DT_JMPREL, DT_PLTRELSZ), table(DT_RELA, DT_RELASZ),
          reinterpret_cast<const ElfW(Sym)*>(address(DT_SYMTAB)), reinterpret_cast<const char*>(address(DT_STRTAB))};
}

/// Stores the check into a slot. Returns false if the slot is not writable.
bool redirect(std::uintptr_t slot) {
  const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto* const page = reinterpret_cast<void*>(slot / page_bytes * page_bytes);
  if (::mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;  // RELRO may have made it read-only
  std::atomic_ref(*reinterpret_cast<std::uintptr_t*>(slot))
      .store(reinterpret_cast<std::uintptr_t>(&checked_accept), std::memory_order_release);
  return true;
}

/// Redirects `accept` in a library if the library is libucs. Called for each loaded library; counts slots in `counted`.
int redirect_in(dl_phdr_info* library, std::size_t, void* counted) {
  const std::string_view path(library->dlpi_name);
  if (!path.substr(path.rfind('/') + 1).starts_with("libucs.so")) return 0;
  const auto base = static_cast<std::uintptr_t>(library->dlpi_addr);
  for (int header = 0; header < library->dlpi_phnum; ++header) {
    if (library->dlpi_phdr[header].p_type != PT_DYNAMIC) continue;
    const Relocations all =
        relocations_of(reinterpret_cast<const ElfW(Dyn)*>(base + library->dlpi_phdr[header].p_vaddr), base);
    for (const auto& table : {all.of_calls, all.of_data})
      for (const ElfW(Rela) & each : table) {
        const std::string_view name(all.names + all.symbols[ELF64_R_SYM(each.r_info)].st_name);
        if (name == "accept" && redirect(base + each.r_offset)) ++*static_cast<int*>(counted);
      }
  }
  return 0;
}

/// Why the kernel does not report the owner of a socket; empty if it does. Asks for a connection of this process to
/// itself.
std::string reason_not_to_know() {
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const FileDescriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{}, peer{};
  own.ss_family = AF_INET;
  reinterpret_cast<sockaddr_in&>(own).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(sockaddr_in);
  auto* const here = reinterpret_cast<sockaddr*>(&own);
  if (::bind(listener.get(), here, bytes) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), here, &bytes) != 0 || ::connect(client.get(), here, bytes) != 0 ||
      ::getsockname(client.get(), reinterpret_cast<sockaddr*>(&peer), &bytes) != 0)
    return fmt::format("no connection to 127.0.0.1: {}", std::strerror(errno));
  try {
    const std::optional<unsigned> user = user_of_connection(peer, own);
    return user && *user == ::geteuid() ? std::string() : "the kernel names another user of an own connection";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::optional<unsigned> user_of_connection(const sockaddr_storage& local, const sockaddr_storage& remote) {
  const auto fail = [](const char* what) {
    throw Error(Status::unavailable,
                fmt::format("the kernel does not say whose a connection is: {}: {}", what, std::strerror(errno)));
  };
  struct {
    nlmsghdr header;
    inet_diag_req_v2 question;
  } request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.question.sdiag_family = static_cast<std::uint8_t>(local.ss_family);
  request.question.sdiag_protocol = IPPROTO_TCP;
  request.question.idiag_states = ~0u;
  inet_diag_sockid& id = request.question.id;
  const AddressView from = view_of(local), to = view_of(remote);
  std::memcpy(id.idiag_src, from.address.data(), from.address.size());
  std::memcpy(id.idiag_dst, to.address.data(), to.address.size());
  id.idiag_sport = from.port, id.idiag_dport = to.port;
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  const FileDescriptor socket(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket) fail("NETLINK_SOCK_DIAG");
  if (::send(socket.get(), &request, sizeof request, 0) != static_cast<ssize_t>(sizeof request)) fail("send");
  alignas(nlmsghdr) std::array<std::byte, 8192> answer;
  const ssize_t bytes = ::recv(socket.get(), answer.data(), answer.size(), 0);
  if (bytes < static_cast<ssize_t>(sizeof(nlmsghdr))) fail("recv");
  const auto& header = *reinterpret_cast<const nlmsghdr*>(answer.data());
  if (header.nlmsg_type == NLMSG_ERROR) {
    errno = -reinterpret_cast<const nlmsgerr*>(NLMSG_DATA(&header))->error;
    if (errno == ENOENT) return std::nullopt;
    fail("SOCK_DIAG_BY_FAMILY");
  }
  // The kernel reports root as the owner of a socket that its process has closed: only an open socket counts.
  const auto& found = *reinterpret_cast<const inet_diag_msg*>(NLMSG_DATA(&header));
  return found.idiag_state == TCP_ESTABLISHED && found.idiag_inode != 0 ? std::optional(found.idiag_uid) : std::nullopt;
}

std::string guard_connections() {
  static_assert(sizeof(void*) == 8, "relocations of 64-bit ELF with addends");
  if (std::string reason = reason_not_to_know(); !reason.empty()) return reason;
  int redirected = 0;
  ::dl_iterate_phdr(&redirect_in, &redirected);
  return redirected > 0 ? std::string() : "no call of accept was found in libucs";
}

}  // namespace beeline
