// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ports of an RMA-style software adapter: kernels and CPU threads post requests to them (control/rma.hpp), and this
/// rank's engine carries these out (docs/adapters.md).

#include <cstdint>
#include <memory>
#include <string>

#include "beeline/control/rma.hpp"
#include "beeline/host/command_queues.hpp"
#include "beeline/host/team.hpp"

namespace beeline {

/// Options of `RmaPorts`.
struct RmaPortOptions {
  /// host: pages, notification queues and locks in pinned host memory, served by threads of the host; kernels and CPU
  /// threads post. device: in the memory of the rank's device, served by a thread block of the device; kernels post.
  EngineKind engine = EngineKind::host;
  std::uint32_t ports = 1;   ///< of each rank; 1 to `max_rma_ports`
  std::uint32_t depth = 64;  ///< entries of each notification queue; 2 to 65,536
  std::uint32_t locks = 64;  ///< 32-bit words of each rank's lock address space, initially 0; 1 to 1,048,576

  bool operator==(const RmaPortOptions&) const = default;
};

/// The ports of the calling rank, in a team whose members are on one node. A port takes 512 bytes and 16 for each entry
/// of its queue.
class RmaPorts {
 public:
  /// Collective. Throws invalid_argument for options that members pass differently, or that are outside their range;
  /// unavailable if members are on several nodes; unreachable for a device engine if kernels do not reach a member;
  /// no_resource if waiting kernels leave no room for a device engine; otherwise see `Team::allocate`.
  explicit RmaPorts(Team& team, const RmaPortOptions& options = {});
  /// Collective. Kernels and threads that post must have ended. Waits, up to the deadline, until all requests are
  /// complete.
  ~RmaPorts();
  RmaPorts(const RmaPorts&) = delete;
  RmaPorts& operator=(const RmaPorts&) = delete;

  /// The ports for kernels, or for CPU threads; pass them by value.
  [[nodiscard]] const RmaPortsView& view() const;
  /// The lock address space of this rank, [locks], in memory of the device for a device engine.
  [[nodiscard]] std::uint32_t* locks() const;
  /// Why a host engine last refused a request of a port; empty if it has refused none. Descriptors that the adapter
  /// itself refuses are not included: their notifications have the reason.
  [[nodiscard]] std::string refusal(std::uint32_t port) const;

 private:
  class Implementation;
  detail::TeamOwned<Implementation> implementation_;
};

/// An error of a notification in words.
[[nodiscard]] const char* describe(RmaError error) noexcept;

}  // namespace beeline
