// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The one place that says how this rank reaches memory of another: by loads and stores, by copies of a device, by its
/// engine, or not at all, and why.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "beeline/host/paths.hpp"
#include "beeline/transport/engine.hpp"
#include "host/address_book.hpp"
#include "host/world/areas.hpp"
#include "host/world/membership.hpp"
#include "memory/node_memory.hpp"
#include "transport/route.hpp"

namespace beeline {

/// How this rank's device copies to and from each rank's memory: by copies of its own, or of another device. Asked
/// before there is memory, whose mappings depend on it.
[[nodiscard]] std::vector<MemoryMember> find_copy_paths(const Membership& membership, bool has_peer_access);

/// Each member's place in a rank's contexts: of a few members all have one, in their order. Of many only those on this
/// node have; in their order from the first on, if they are neighbours.
[[nodiscard]] std::vector<std::uint32_t> places_of(const Membership& membership, const std::vector<int>& ranks);
inline constexpr std::uint32_t no_place = 0xffffffffu;

/// Constant once the engine is known, so any thread may ask.
class Routes {
 public:
  ///   paths             as of find_copy_paths
  ///   areas, addresses  outlive it
  ///   is_gpu_memory     whether an address of the range is
  Routes(const Membership& membership, std::vector<MemoryMember> paths, const Areas& areas,
         const AddressBook& addresses, std::function<bool(const void*)> is_gpu_memory);
  /// Asks the engine for the route to each peer, and publishes the reasons of those that are not direct.
  void ask(const Engine& engine);

  // --- To a rank ------------------------------------------------------------------------------------------------

  /// For operations of kernels and CPU threads: direct, engine or refused.
  [[nodiscard]] Route to(int peer) const;
  /// For mappings of its GPU's memory by this rank's GPU, and for kernels that load and store there: direct or refused.
  [[nodiscard]] Route to_gpu_of(int peer) const;
  /// Whether some of the members have routes that are not direct.
  [[nodiscard]] bool has_indirect(const std::vector<int>& ranks) const;
  /// Fills a context's table of routes, where it needs one.
  ///   places  as of places_of
  void add_to(Context& context, const std::vector<int>& ranks, const std::vector<std::uint32_t>& places,
              bool for_host) const;
  /// Why loads and stores do not reach a peer, for refusals; empty: they do.
  [[nodiscard]] std::string why_not_direct(int peer) const;
  [[nodiscard]] PathToRank describe(int peer) const;

  // --- To all members of a team ---------------------------------------------------------------------------------

  /// Whether collectives and messages of a team go by the engine: some members are on other nodes.
  [[nodiscard]] bool needs_engine(const Team& team) const { return membership_.spans_nodes(team); }
  /// For collectives and messages: direct within a node, engine where members are on several nodes. Throws unreachable,
  /// with the reason, where loads and stores do not reach a member on this node.
  ///   what  needs the route, named in errors
  [[nodiscard]] Route to_members(const Team& team, const char* what) const;
  /// Throws unreachable, with the reason, where loads and stores do not reach a member: `what` takes them.
  void require_direct(const Team& team, const char* what) const;
  /// Throws unavailable where the team has members on other nodes: `what` needs memory that all of them share.
  void require_one_node(const Team& team, const char* what) const;

  // --- To an address --------------------------------------------------------------------------------------------

  /// For copies: direct, copy or engine. Throws unreachable, with the reason.
  [[nodiscard]] Route of_copy(const void* address) const;
  /// Whether copies to and from an address are the engine's. Throws unreachable, with the reason.
  [[nodiscard]] bool needs_engine(const void* address) const {
    return has_engine_ && of_copy(address).kind == RouteKind::engine;
  }
  /// For loads and stores of this rank's kernels: direct, or refused but for copies. Throws unreachable where none
  /// reaches it.
  [[nodiscard]] Route of_kernel(const void* address) const;
  /// Whether some copies of this rank are made by other devices.
  [[nodiscard]] bool has_staged_copies() const { return has_staged_copies_; }
  /// Whether all copies are made by this rank's own device.
  [[nodiscard]] bool has_own_copies_only() const { return !has_staged_copies_ && !has_engine_; }

 private:
  [[nodiscard]] CopyPath copies_to(std::uint32_t rank) const { return paths_[rank].copies; }
  /// Whether only the GPU of another rank reaches it, for staged copies. Throws unreachable where none does.
  [[nodiscard]] bool is_gpu_memory_elsewhere(const void* address, std::uint32_t owner) const;

  const Membership& membership_;
  const std::vector<MemoryMember> paths_;
  const Areas& areas_;
  const AddressBook& addresses_;
  const std::function<bool(const void*)> is_gpu_memory_;
  std::vector<PeerRoute> peers_;  ///< [ranks]
  bool has_engine_ = false;
  const bool has_staged_copies_;
};

}  // namespace beeline
