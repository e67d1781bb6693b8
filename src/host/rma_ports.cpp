// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/rma_ports.hpp"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/host/world.hpp"
#include "control/adapters/rma_server.hpp"
#include "host/adapter_rings.hpp"
#include "host/channel_agreement.hpp"
#include "host/world/engines.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"

namespace beeline {

namespace {

constexpr std::uint32_t max_depth = 1u << 16, max_locks = 1u << 20;

void require_range(const char* what, std::uint32_t value, std::uint32_t least, std::uint32_t most) {
  require(value >= least && value <= most, Status::invalid_argument,
          fmt::format("RMA ports with {} {}; valid: {} to {}", value, what, least, most));
}

/// Collective.
const RmaPortOptions& checked(Team& team, const RmaPortOptions& options) {
  detail::require_same_options(team, "RmaPorts", "RMA ports", options);
  require_reach_of_adapter(team, options.engine, "an RMA port");
  require_range("ports for each rank", options.ports, 1, max_rma_ports);
  require_range("entries for each notification queue", options.depth, 2, max_depth);
  require_range("locks for each rank", options.locks, 1, max_locks);
  return options;
}

}  // namespace

class RmaPorts::Implementation {
 public:
  Implementation(Team& team, const RmaPortOptions& options)
      : team_(team), options_(checked(team, options)), memory_(team, options.ports, heap()),
        queues_(team, std::size_t{options.ports} * options.depth, heap()), locks_(team, options.locks, heap()),
        members_(team, static_cast<std::size_t>(team.size()), heap()), served_(team, options.ports, heap()) {
    show_members();
    rings_.emplace(team, served_.data(), options.ports, engine(), "engine of RMA ports (1 block)");
    view_ = {memory_.data(), queues_.data(), options.ports, options.depth, options.locks, rings_->wanted()};
    team.barrier();
  }
  ~Implementation() {
    try {
      if (!team_.world().failed() && !team_.failed()) quiet();
    } catch (const std::exception& error) {
      log(LogLevel::error, fmt::format("RMA ports end: {}", error.what()), team_.world().rank());
    }
  }

  [[nodiscard]] const RmaPortsView& view() const { return view_; }
  [[nodiscard]] std::uint32_t* locks() const { return locks_.data(); }
  [[nodiscard]] std::string refusal(std::uint32_t port) const {
    require(port < options_.ports, Status::invalid_argument, fmt::format("RMA port {} of {}", port, options_.ports));
    return rings_->refusal(port);
  }

 private:
  [[nodiscard]] Heap heap() const { return options_.engine == EngineKind::host ? Heap::pinned : Heap::symmetric; }
  [[nodiscard]] HostEngine* engine() const {
    return options_.engine == EngineKind::host ? &world_part<Engines>(team_.world()).of_queues() : nullptr;
  }

  /// Writes the table of members for the servers.
  void show_members() {
    std::vector<RmaMember> members;
    for (int rank = 0; rank < team_.size(); ++rank)
      members.push_back({memory_.at(rank), queues_.at(rank), static_cast<std::uint64_t>(team_.world_rank(rank))});
    team_.world().copy(members_.data(), members.data(), members.size() * sizeof members[0]);
    const Context& ctx = team_.host_context();
    RmaServed served{};
    served.members = members_.data();
    served.node = ctx.rank, served.nodes = ctx.size;
    served.ports = options_.ports, served.depth = options_.depth, served.locks = options_.locks;
    served.slot_shift = ctx.slot_shift, served.range = ctx.range;
    served.locks_offset = ctx.offset_in_slot(locks_.data());
    for (; served.vpid < options_.ports; ++served.vpid) {
      served.memory = memory_.data() + served.vpid;
      served.queue = queues_.data() + std::size_t{served.vpid} * options_.depth;
      team_.world().copy(&served_.data()[served.vpid], &served, sizeof served);
    }
  }
  /// Waits, up to the deadline, until all requests are complete.
  void quiet() const {
    for (std::uint32_t vpid = 0; vpid < options_.ports; ++vpid) {
      const Status status = heap() == Heap::symmetric && team_.world().device().is_gpu()
                                ? detail::await_engine(team_.host_context(), {}, [&] { return is_free(vpid); })
                                : rma_quiet(team_.host_context(), view_.port(vpid));
      require(status == Status::ok, status, fmt::format("the request of port {} is not over", vpid));
    }
  }
  /// Whether a port's page, in memory of a GPU, has no request.
  [[nodiscard]] bool is_free(std::uint32_t vpid) const {
    RmaPage page{};
    team_.world().copy(&page, &memory_.data()[vpid].page, sizeof page);
    return page.logical.words[0] == 0 && page.physical.words[0] == 0;
  }

  Team& team_;
  const RmaPortOptions options_;
  SymmetricArray<RmaPortMemory> memory_;
  SymmetricArray<RmaNotification> queues_;
  SymmetricArray<std::uint32_t> locks_;
  SymmetricArray<RmaMember> members_;
  SymmetricArray<RmaServed> served_;
  std::optional<AdapterRings<RmaServer>> rings_;
  RmaPortsView view_{};
};

RmaPorts::RmaPorts(Team& team, const RmaPortOptions& options)
    : implementation_(new Implementation(team, options), {team.life()}) {}
RmaPorts::~RmaPorts() = default;

const RmaPortsView& RmaPorts::view() const { return implementation_->view(); }
std::uint32_t* RmaPorts::locks() const { return implementation_->locks(); }
std::string RmaPorts::refusal(std::uint32_t port) const { return implementation_->refusal(port); }

const char* describe(RmaError error) noexcept {
  switch (error) {
    case RmaError::none:
      return "no error";
    case RmaError::malformed:
      return "the descriptor is malformed";
    case RmaError::command:
      return "there is no such command";
    case RmaError::notifications:
      return "the command does not have this set of notifications";
    case RmaError::port:
      return "there is no such node or port";
    case RmaError::address:
      return "memory of the request is not there";
    case RmaError::overflow:
      return "the target's notification queue was full";
  }
  return "an unknown error";
}

}  // namespace beeline
