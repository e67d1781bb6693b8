// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Routes: how this rank reaches memory of another rank (by loads and stores, by copies of a device, by its engine, or
/// not at all), and why. No other file decides this.

#include <atomic>
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

/// How this rank's device copies to and from each rank's memory: by its own copies, or by copies of another device.
/// Called before memory is mapped, since the mappings depend on the result.
[[nodiscard]] std::vector<MemoryMember> find_copy_paths(const Membership& membership, bool has_peer_access);

/// Each member's index in a rank's contexts. In a team of few members it is the member's rank. In a team of many only
/// the members on this node have an index, numbered in their order; the others get `no_place`.
[[nodiscard]] std::vector<std::uint32_t> places_of(const Membership& membership, const std::vector<int>& ranks);
inline constexpr std::uint32_t no_place = 0xffffffffu;

/// Constant after `ask`, except for `lose`, so thread-safe from then on.
class Routes {
 public:
  ///   paths             as of find_copy_paths
  ///   areas, addresses  outlive this object
  ///   is_gpu_memory     whether an address of the range is GPU memory
  Routes(const Membership& membership, std::vector<MemoryMember> paths, const Areas& areas,
         const AddressBook& addresses, std::function<bool(const void*)> is_gpu_memory);
  /// Asks the engine for the route to each peer, and publishes the reasons of routes that are not direct.
  void ask(const Engine& engine);
  /// Refuses later copies to and from a rank of another node that has ended. The engine drops operations
  /// of kernels that have no result.
  void lose(int peer) { lost_[static_cast<std::size_t>(peer)] = true; }

  // --- To a rank ------------------------------------------------------------------------------------------------

  /// The route for operations of kernels and CPU threads: direct, engine or refused.
  [[nodiscard]] Route to(int peer) const;
  /// The route for mappings of the peer's GPU memory by this rank's GPU, and for kernels that load and store there:
  /// direct or refused.
  [[nodiscard]] Route to_gpu_of(int peer) const;
  /// Whether the route to some member is not direct.
  [[nodiscard]] bool has_indirect(const std::vector<int>& ranks) const;
  /// Fills a context's table of routes, if the context needs one.
  ///   places  as of places_of
  void add_to(Context& context, const std::vector<int>& ranks, const std::vector<std::uint32_t>& places,
              bool for_host) const;
  /// Why loads and stores do not reach a peer, for refusals; empty: they do.
  [[nodiscard]] std::string why_not_direct(int peer) const;
  [[nodiscard]] PathToRank describe(int peer) const;

  // --- To all members of a team ---------------------------------------------------------------------------------

  /// Whether collectives and messages of a team use the engine, since some members are on other nodes.
  [[nodiscard]] bool needs_engine(const Team& team) const { return membership_.spans_nodes(team); }
  /// The route for collectives and messages: direct within a node, engine if members are on several nodes. Throws
  /// unreachable, with the reason, if loads and stores do not reach a member on this node.
  ///   what  the caller, named in errors
  [[nodiscard]] Route to_members(const Team& team, const char* what) const;
  /// Throws unreachable, with the reason, if loads and stores do not reach a member. `what`: the caller, named in
  /// errors.
  void require_direct(const Team& team, const char* what) const;
  /// Throws unavailable if the team has members on other nodes. `what`: the caller, which needs memory that all members
  /// share.
  void require_one_node(const Team& team, const char* what) const;

  // --- To an address --------------------------------------------------------------------------------------------

  /// The route for copies: direct, copy or engine. Throws unreachable, with the reason.
  [[nodiscard]] Route of_copy(const void* address) const;
  /// Whether the engine makes the copies to and from an address. Throws unreachable, with the reason.
  [[nodiscard]] bool needs_engine(const void* address) const {
    return has_engine_ && of_copy(address).kind == RouteKind::engine;
  }
  /// The route for loads and stores of this rank's kernels: direct; refused if only copies reach the address. Throws
  /// unreachable if nothing reaches it.
  [[nodiscard]] Route of_kernel(const void* address) const;
  /// Whether every device of this process copies to and from an address: host memory in this rank's slot.
  [[nodiscard]] bool all_devices_reach(const void* address) const;
  /// Whether this rank's engine, which sends the bytes of a copy, does not read the source: it would copy them to host
  /// memory itself.
  [[nodiscard]] bool is_staged_by_engine(const void* destination, const void* source) const;
  /// Whether other devices make some of this rank's copies.
  [[nodiscard]] bool has_staged_copies() const { return has_staged_copies_; }
  /// Whether this rank's own device makes all its copies.
  [[nodiscard]] bool has_own_copies_only() const { return !has_staged_copies_ && !has_engine_; }

 private:
  [[nodiscard]] CopyPath copies_to(std::uint32_t rank) const { return paths_[rank].copies; }
  /// Whether an address is GPU memory, of the ranks or of the program.
  [[nodiscard]] bool is_on_gpu(const void* address) const;
  /// Whether only another rank's GPU reaches `address`, so copies must be staged. Throws unreachable if none does.
  [[nodiscard]] bool is_gpu_memory_elsewhere(const void* address, std::uint32_t owner) const;

  const Membership& membership_;
  const std::vector<MemoryMember> paths_;
  const Areas& areas_;
  const AddressBook& addresses_;
  const std::function<bool(const void*)> is_gpu_memory_;
  std::vector<PeerRoute> peers_;         ///< [ranks]
  std::vector<std::atomic<bool>> lost_;  ///< [ranks]
  bool has_engine_ = false;
  const bool has_staged_copies_;
};

}  // namespace beeline
