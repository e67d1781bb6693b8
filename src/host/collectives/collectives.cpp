// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "beeline/host/packets.hpp"
#include "beeline/selection/preferences.hpp"
#include "host/channel_agreement.hpp"
#include "host/collectives/implementation.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"
#include "host/world/streams.hpp"

namespace beeline {

namespace {

constexpr auto sizes = detail::selection::channel_sizes;

using detail::any_host_rank;

constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + 255) & ~std::size_t{255}; }

/// Whether every rank has a GPU of its own.
bool have_own_gpus(const World& world) {
  std::set<std::string> gpus;
  for (int rank = 0; rank < world.size(); ++rank)
    if (const Device& device = world.device(rank); device.is_gpu()) gpus.insert(device.uuid);
  return gpus.size() == static_cast<std::size_t>(world.size());
}

/// Number of sessions that the blocks of every rank can use at once, beside the blocks of ranks that share its GPU. A
/// world of a few GPUs gets twice as many if the heap has room, since fewer blocks do not fill the link.
unsigned default_sessions(Team& team) {
  const World& world = team.world();
  constexpr int few = detail::selection::most_pushing_members;
  const bool are_few = &team == &world && world.size() > 1 && world.size() <= few && have_own_gpus(world);
  const bool has_room = world.config().heap_bytes >= sizes.least_heap_of_few;
  const bool spans_nodes = world_part<Routes>(world).needs_engine(team);
  const unsigned mine = spans_nodes && team.size() > static_cast<int>(max_node_ranks) ? 1
                        : any_host_rank(world) || spans_nodes                         ? 4
                        : are_few && has_room                                         ? 128
                                              : 64 / static_cast<unsigned>(world.ranks_on_device());
  return detail::least_of_all(team, "Collectives", std::max(1u, mine));
}

/// Collective. Fills in defaults for the options that the caller left open.
CollectiveOptions complete(Team& team, CollectiveOptions options) {
  const auto ranks = static_cast<std::size_t>(team.size());
  const unsigned sessions = default_sessions(team);
  if (options.sessions == 0) options.sessions = sessions;
  if (options.packet_bytes == 0)
    options.packet_bytes =
        std::max(sizes.least_packets, sizes.packets / std::max<std::size_t>(8, ranks) & ~std::size_t{15});
  if (options.staging_bytes == 0) options.staging_bytes = sizes.staging;
  return options;
}

void check(const CollectiveOptions& options) {
  require(options.sessions <= 1024, Status::invalid_argument,
          fmt::format("{} sessions of a collective channel: at most 1024", options.sessions));
  constexpr std::size_t least = 32;  // the addresses that members exchange first
  require(
      options.packet_bytes >= least && options.packet_bytes <= std::size_t{1} << 24 && options.packet_bytes % 16 == 0,
      Status::invalid_argument,
      fmt::format("packet_bytes {}: multiples of 16 from {} to 2^24", options.packet_bytes, least));
  require(options.engine_bytes.value_or(0) % 256 == 0, Status::invalid_argument,
          fmt::format("engine_bytes {}: a multiple of 256", options.engine_bytes.value_or(0)));
  require(options.staging_bytes <= std::size_t{1} << 32 && options.staging_bytes % 256 == 0, Status::invalid_argument,
          fmt::format("staging_bytes {}: multiples of 256 up to 2^32", options.staging_bytes));
}

/// Checks that the staging has at least one aligned word for each rank.
void check_staging(const CollectiveOptions& options, int ranks) {
  const std::size_t least = std::size_t{16} * static_cast<unsigned>(ranks);
  require(options.staging_bytes >= least, Status::invalid_argument,
          fmt::format("staging_bytes {} for {} ranks: at least {}", options.staging_bytes, ranks, least));
}

/// Collective.
CollectiveOptions agreed(Team& team, const CollectiveOptions& options) {
  const CollectiveOptions all = complete(team, options);
  static_cast<void>(world_part<Routes>(team.world()).to_members(team, "Collectives"));
  check(all);
  check_staging(all, team.size());
  detail::require_same_options(team, "Collectives", "collectives", all);
  return all;
}

using Layout = detail::ChannelLayout;

/// Number of lines of an area: for each of the two steps of an all-reduce, as much payload as an area of packets has.
std::uint32_t area_lines_of(const CollectiveOptions& options) {
  return 2 * static_cast<std::uint32_t>((options.packet_bytes + line_payload_bytes - 1) / line_payload_bytes);
}

bool has_hosts_only(const World& world) { return !world.mixed() && !world.device().is_gpu(); }

Layout layout_of(const Team& team, const CollectiveOptions& options, bool has_lines) {
  Layout layout{};
  if (world_part<Routes>(team.world()).needs_engine(team)) {
    layout.across = std::size_t{options.sessions} * sizeof(SessionState);
    layout.bytes = layout.across + options.sessions * sizeof(detail::PairChannel);
    return layout;
  }
  layout.area_lines = has_lines ? area_lines_of(options) : 0;
  const auto after = [](std::size_t offset, std::size_t bytes) { return whole_lines(offset + bytes); };
  const std::size_t words = std::size_t{options.sessions} * max_node_ranks * sizeof(PaddedWord);
  layout.arrived = after(0, std::size_t{options.sessions} * sizeof(SessionState));
  layout.finished = after(layout.arrived, words);
  layout.packets = after(layout.finished, words);
  const std::size_t areas = std::size_t{options.sessions} * 2 * static_cast<std::size_t>(team.size());
  layout.lines = after(layout.packets, areas * (options.packet_bytes / 8) * sizeof(machine::PacketPair));
  layout.vectors = after(layout.lines, areas * layout.area_lines * line_bytes);
  layout.vector_bytes = has_hosts_only(team.world()) ? whole_lines(options.packet_bytes) : 0;
  layout.staging = after(layout.vectors, areas * layout.vector_bytes);
  layout.tables = after(layout.staging, std::size_t{options.sessions} * 2 * options.staging_bytes);
  layout.bytes = after(layout.tables, std::size_t{options.sessions} * 4 * max_node_ranks * sizeof(std::size_t));
  return layout;
}

CollectiveChannel make_channel(std::byte* memory, const Layout& layout, const CollectiveOptions& options) {
  if (layout.across != 0)
    return {.states = reinterpret_cast<SessionState*>(memory),
            .sessions = options.sessions,
            .across = reinterpret_cast<detail::PairChannel*>(memory + layout.across)};
  return {.states = reinterpret_cast<SessionState*>(memory),
          .arrived = reinterpret_cast<PaddedWord*>(memory + layout.arrived),
          .finished = reinterpret_cast<PaddedWord*>(memory + layout.finished),
          .packets = reinterpret_cast<machine::PacketPair*>(memory + layout.packets),
          .lines = reinterpret_cast<machine::PacketPair*>(memory + layout.lines),
          .vectors = memory + layout.vectors,
          .staging = memory + layout.staging,
          .sessions = options.sessions,
          .area_pairs = static_cast<std::uint32_t>(options.packet_bytes / 8),
          .area_lines = layout.area_lines,
          .vector_bytes = layout.vector_bytes,
          .staging_bytes = options.staging_bytes,
          .across = nullptr};
}

}  // namespace

Collectives::Implementation::Implementation(Team& members, const CollectiveOptions& options)
    : team(members), world(team.world()), calls(world_part<Streams>(world).blocking(), world.rank()),
      no_lines_reason(no_ll128_reason(team)), layout(layout_of(team, options, no_lines_reason.empty())),
      memory(team, layout.bytes, world.mixed() ? Heap::pinned : Heap::symmetric),
      channel(make_channel(memory.data(), layout, options)),
      tables(reinterpret_cast<std::size_t*>(memory.data() + layout.tables)) {
  if (world_part<Routes>(world).needs_engine(team)) {
    require(options.engine_bytes.value_or(0) == 0, Status::unavailable,
            "engine_bytes: copy engines do not serve members on several nodes");
    across_nodes = std::make_unique<detail::AcrossNodes>(team, options.sessions);
    world.copy(memory.data() + layout.across, across_nodes->kernel_channels().data(), layout.bytes - layout.across);
    team.barrier();
    return;
  }
  if (options.first_round != 0) start_at(options);
  make_engine_scratch(options.engine_bytes);
  // Made now, since no stream can be made on a GPU while another rank's kernel spins there, and none during a
  // capture.
  if (!context().mixed && (engine_scratch || world.ranks_on_device() > 1)) {
    if (scratch().size() >= detail::CopyEngines::least_bytes(context().size)) make_engine();
    make_stream_beside();
  }
  team.barrier();
}

void Collectives::Implementation::start_at(const CollectiveOptions& options) {
  const std::uint64_t round = options.first_round * detail::one_round;
  std::vector<SessionState> states(options.sessions);
  for (SessionState& state : states) {
    state.round = round;
    const std::uint64_t first = options.first_round << 32;  // published calls, as if all earlier rounds had run
    for (auto& call : state.calls) call[0] = call[1] = {first, first};
  }
  world.copy(channel.states, states.data(), states.size() * sizeof(SessionState));
  // Zeroed memory would look like round 2^16, which may occur before the first refresh of the flags.
  const std::uint64_t stale = round << 32;
  const std::vector<machine::PacketPair> unsent((layout.lines - layout.packets) / sizeof(machine::PacketPair),
                                                {stale, stale});
  world.copy(channel.packets, unsent.data(), unsent.size() * sizeof(machine::PacketPair));
}

/// Collective.
void Collectives::Implementation::make_engine_scratch(std::optional<std::size_t> asked) {
  if (asked) {
    if (*asked == 0) return;
    require(!world.mixed(), Status::unavailable, "engine_bytes: copy engines do not serve ranks of both kinds");
    engine_scratch.emplace(team, *asked);
    return;
  }
  const auto members = static_cast<std::size_t>(team.size());
  if (&team != &world || members == 1 || !have_own_gpus(world)) return;
  const std::size_t wanted =
      std::min(detail::CopyEngines::most_bytes(members), world.config().heap_bytes / sizes.heap_share);
  for (std::size_t bytes = wanted; bytes >= detail::CopyEngines::useful_bytes(members); bytes /= 2) {
    try {
      engine_scratch.emplace(team, bytes);
      return;
    } catch (const Error& error) {  // the same error on all ranks: no room, or no common offset
      if (error.code() != Status::no_resource && error.code() != Status::invalid_argument) throw;
    }
  }
  log(LogLevel::info,
      fmt::format("the heap of {} bytes has no room for copy engines ({} bytes, in an eighth of it): `automatic` does "
                  "without them",
                  world.config().heap_bytes, detail::CopyEngines::useful_bytes(members)),
      world.rank());
}

bool Collectives::Implementation::takes_engines() const {
  return world.device().is_gpu() && engine_scratch &&
         engine_scratch->bytes() >= detail::CopyEngines::useful_bytes(context().size);
}

std::span<std::byte> Collectives::Implementation::scratch() const {
  if (engine_scratch) return {engine_scratch->data(), engine_scratch->bytes()};
  return {channel.staging, std::size_t{channel.sessions} * 2 * channel.staging_bytes};
}

void Collectives::Implementation::make_engine() {
  require(scratch().size() >= detail::CopyEngines::least_bytes(context().size), Status::no_resource,
          fmt::format("copy_engine: the channel has {} bytes for it (engine_bytes, or else two times staging_bytes on "
                      "each session), and needs {}",
                      scratch().size(), detail::CopyEngines::least_bytes(context().size)));
  engine = std::make_unique<detail::CopyEngines>(team, channel, scratch());
}

Collectives::Collectives(Team& team, const CollectiveOptions& options)
    : implementation_(new Implementation(team, agreed(team, options)), detail::DeleteWithTeam{team.life()}) {}

Collectives::~Collectives() = default;

const CollectiveChannel& Collectives::channel() const { return implementation_->channel; }

Team& Collectives::team() const { return implementation_->team; }

Algorithm Collectives::last_algorithm() const { return implementation_->noted_algorithm; }

Transfer Collectives::last_transfer() const {
  if (implementation_->noted) return *implementation_->noted;
  SessionState state;
  implementation_->world.copy(&state, implementation_->channel.states, sizeof state);
  return static_cast<Transfer>(state.transfer);
}

}  // namespace beeline
