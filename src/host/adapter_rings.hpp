// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The service of a software adapter's rings: by threads of a host engine, or by a resident block of the device.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/host/world.hpp"
#include "control/adapters/adapter_source.hpp"
#include "control/host_engine.hpp"
#include "host/resident_adapter.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"

namespace beeline {

/// Throws unavailable if members are on several nodes; for a block of the device unreachable if it does not reach the
/// rings of a member.
///   what  the caller, named in errors
inline void require_reach_of_adapter(Team& team, EngineKind engine, const std::string& what) {
  const Routes& routes = world_part<Routes>(team.world());
  routes.require_one_node(team, what.c_str());
  if (engine == EngineKind::host) return;
  const std::string of_block = what + " of a device engine";
  routes.require_direct(team, of_block.c_str());
  require(!team.host_context().mixed, Status::unreachable,
          fmt::format("{}: members on CPUs do not reach the rings of members on GPUs", of_block));
}

template <class Server>
class AdapterRings {
 public:
  using Ring = typename Server::Ring;
  /// Collective. The rings are served from now on.
  ///   rings  [count] in this rank's memory
  ///   host   the engine, which outlives this object; nullptr: a block of the device
  ///   name   of the block, for errors
  AdapterRings(Team& team, Ring* rings, std::uint32_t count, HostEngine* host, const char* name)
      : rings_(rings), host_(host), sources_(host == nullptr ? 0 : count) {
    if (host == nullptr) resident_.emplace(team, rings, count, name);
    for (std::uint32_t ring = 0; ring < sources_.size(); ++ring) serve(ring);
  }
  /// Collective for a block of the device. Requests in flight may remain undone.
  ~AdapterRings() {
    for (const auto& source : sources_)
      if (source != nullptr) host_->remove(*source);
  }
  AdapterRings(const AdapterRings&) = delete;
  AdapterRings& operator=(const AdapterRings&) = delete;

  /// The word that a poster sets if it finds a block asleep; nullptr: a host engine serves the rings.
  [[nodiscard]] std::uint64_t* wanted() const { return resident_ ? resident_->wanted() : nullptr; }
  /// Calls `change` while a ring is not served.
  template <class Change>
  void change(std::uint32_t ring, const Change& change) {
    if (resident_) return resident_->between_leases(change);
    host_->remove(*sources_[ring]);
    sources_[ring].reset();
    change();
    serve(ring);
  }
  /// Why a host engine last refused a request of a ring; empty if it has refused none.
  [[nodiscard]] std::string refusal(std::uint32_t ring) const {
    const char* const reason = resident_ ? nullptr : sources_[ring]->refusal();
    return reason == nullptr ? "" : reason;
  }

 private:
  void serve(std::uint32_t ring) {
    sources_[ring] = std::make_unique<AdapterSource<Server>>(rings_[ring]);
    host_->add(*sources_[ring]);
  }

  Ring* const rings_;
  HostEngine* const host_;
  std::vector<std::unique_ptr<AdapterSource<Server>>> sources_;  ///< [count] for a host engine
  std::optional<ResidentAdapter<Server>> resident_;              ///< for a device engine
};

}  // namespace beeline
