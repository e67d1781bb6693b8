// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "beeline/collectives/impl/one_shot_on_host.hpp"
#include "beeline/collectives/impl/reduce_names.hpp"
#include "beeline/host/packets.hpp"
#include "host/channel_agreement.hpp"
#include "host/collectives/checks.hpp"
#include "host/collectives/implementation.hpp"
#include "host/collectives/launchers.hpp"
#include "host/world_implementation.hpp"

namespace beeline {

bool detail::any_host_rank(const World& world) { return world.mixed() || !world.device().is_gpu(); }

namespace {

using detail::any_host_rank;

constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + 255) & ~std::size_t{255}; }

/// Sessions that blocks of every rank can use at once, beside those of the ranks that share its GPU.
unsigned default_sessions(Team& team) {
  const World& world = team.world();
  const unsigned mine = any_host_rank(world) ? 4 : 64 / static_cast<unsigned>(world.ranks_on_device());
  return detail::least_of_all(team, "Collectives", std::max(1u, mine));
}

/// Collective. Asked for, or what suits the ranks: packets for messages of microseconds, staging that hides a barrier.
CollectiveOptions complete(Team& team, CollectiveOptions options) {
  const auto ranks = static_cast<std::size_t>(team.size());
  const unsigned sessions = default_sessions(team);
  if (options.sessions == 0) options.sessions = sessions;
  if (options.packet_bytes == 0)
    options.packet_bytes = std::max<std::size_t>(256, 131072 / std::max<std::size_t>(8, ranks) & ~std::size_t{15});
  options.checks = options.checks || team.world().config().check_collectives;
  if (options.staging_bytes == 0) options.staging_bytes = std::size_t{256} << 10;
  return options;
}

void check(const CollectiveOptions& options) {
  require(options.sessions <= 1024, Status::invalid_argument,
          fmt::format("{} sessions of a collective channel: at most 1024", options.sessions));
  constexpr std::size_t least = 32;  // what members tell each other before an exchange
  require(
      options.packet_bytes >= least && options.packet_bytes <= std::size_t{1} << 24 && options.packet_bytes % 16 == 0,
      Status::invalid_argument,
      fmt::format("packet_bytes {}: multiples of 16 from {} to 2^24", options.packet_bytes, least));
  require(options.engine_bytes.value_or(0) % 256 == 0, Status::invalid_argument,
          fmt::format("engine_bytes {}: a multiple of 256", options.engine_bytes.value_or(0)));
  require(options.staging_bytes <= std::size_t{1} << 32 && options.staging_bytes % 256 == 0, Status::invalid_argument,
          fmt::format("staging_bytes {}: multiples of 256 up to 2^32", options.staging_bytes));
}

/// Each rank has a piece of another's staging, of at least one aligned word.
void check_staging(const CollectiveOptions& options, int ranks) {
  const std::size_t least = std::size_t{16} * static_cast<unsigned>(ranks);
  require(options.staging_bytes >= least, Status::invalid_argument,
          fmt::format("staging_bytes {} for {} ranks: at least {}", options.staging_bytes, ranks, least));
}

bool are_same(const CollectiveOptions& a, const CollectiveOptions& b) {
  return a.sessions == b.sessions && a.packet_bytes == b.packet_bytes && a.staging_bytes == b.staging_bytes &&
         a.first_round == b.first_round && a.engine_bytes == b.engine_bytes && a.checks == b.checks;
}

/// Collective.
CollectiveOptions agreed(Team& team, const CollectiveOptions& options) {
  const CollectiveOptions all = complete(team, options);
  check(all);
  check_staging(all, team.size());
  const auto describe = [](std::size_t first, const CollectiveOptions&, std::size_t rank, const CollectiveOptions&) {
    return fmt::format("ranks {} and {} give different options for collectives", first, rank);
  };
  detail::require_same(team, "Collectives", all, are_same, describe);
  return all;
}

using Layout = detail::ChannelLayout;

/// Lines of an area: for each of the two steps of an all-reduce as much payload as an area of packets has.
std::uint32_t area_lines_of(const CollectiveOptions& options) {
  return 2 * static_cast<std::uint32_t>((options.packet_bytes + line_payload_bytes - 1) / line_payload_bytes);
}

bool has_hosts_only(const World& world) { return !world.mixed() && !world.device().is_gpu(); }

Layout layout_of(const Team& team, const CollectiveOptions& options, bool has_lines) {
  Layout layout{};
  layout.area_lines = has_lines ? area_lines_of(options) : 0;
  const auto after = [](std::size_t offset, std::size_t bytes) { return whole_lines(offset + bytes); };
  const std::size_t words = std::size_t{options.sessions} * max_ranks * sizeof(PaddedWord);
  layout.arrived = after(0, std::size_t{options.sessions} * sizeof(SessionState));
  layout.finished = after(layout.arrived, words);
  layout.packets = after(layout.finished, words);
  const std::size_t areas = std::size_t{options.sessions} * 2 * static_cast<std::size_t>(team.size());
  layout.lines = after(layout.packets, areas * (options.packet_bytes / 8) * sizeof(machine::PacketPair));
  layout.vectors = after(layout.lines, areas * layout.area_lines * line_bytes);
  layout.vector_bytes = has_hosts_only(team.world()) ? whole_lines(options.packet_bytes) : 0;
  layout.staging = after(layout.vectors, areas * layout.vector_bytes);
  layout.tables = after(layout.staging, std::size_t{options.sessions} * 2 * options.staging_bytes);
  layout.bytes = after(layout.tables, std::size_t{options.sessions} * 4 * max_ranks * sizeof(std::size_t));
  return layout;
}

CollectiveChannel make_channel(std::byte* memory, const Layout& layout, const CollectiveOptions& options) {
  return {.states = reinterpret_cast<SessionState*>(memory),
          .arrived = reinterpret_cast<PaddedWord*>(memory + layout.arrived),
          .finished = reinterpret_cast<PaddedWord*>(memory + layout.finished),
          .packets = reinterpret_cast<machine::PacketPair*>(memory + layout.packets),
          .lines = reinterpret_cast<machine::PacketPair*>(memory + layout.lines),
          .vectors = memory + layout.vectors,
          .staging = memory + layout.staging,
          .sessions = options.sessions,
          .checks = options.checks ? 1u : 0u,
          .area_pairs = static_cast<std::uint32_t>(options.packet_bytes / 8),
          .area_lines = layout.area_lines,
          .vector_bytes = layout.vector_bytes,
          .staging_bytes = options.staging_bytes};
}

}  // namespace

Collectives::Implementation::Implementation(Team& members, const CollectiveOptions& options)
    : team(members), world(team.world()), no_lines_reason(no_packets128_reason(team)),
      layout(layout_of(team, options, no_lines_reason.empty())),
      memory(team, layout.bytes, world.mixed() ? Heap::pinned : Heap::symmetric),
      channel(make_channel(memory.data(), layout, options)),
      tables(reinterpret_cast<std::size_t*>(memory.data() + layout.tables)) {
  if (options.first_round != 0) start_at(options);
  make_engine_scratch(options.engine_bytes);
  // A stream cannot be made on a GPU while another rank's kernel spins there, nor in a capture what `automatic` takes.
  if (!context().mixed && (engine_scratch || world.ranks_on_device() > 1)) {
    if (scratch().size() >= detail::CopyEngines::least_bytes(context().size)) make_engine();
    make_stream_beside();
  }
  team.barrier();
}

LaunchOptions Collectives::Implementation::launch_options(CollectiveOperation operation, unsigned blocks,
                                                          Stream* stream) const {
  if (blocks > channel.sessions)
    throw Error(Status::invalid_argument,
                fmt::format("{} blocks on a channel of {} sessions", blocks, channel.sessions));
  return {.blocks = blocks,
          .threads = detail::collective_threads,
          .waits = true,
          .stream = stream,
          .serialization_key = channel.states,
          .name = name(operation)};
}

void Collectives::Implementation::start_at(const CollectiveOptions& options) {
  const auto period = static_cast<std::uint32_t>(options.first_round >> 30);
  std::vector<SessionState> states(options.sessions);
  for (SessionState& state : states) {
    state.round = state.exchanged = options.first_round;
    state.swept[0] = state.swept[1] = period;
  }
  world.copy(channel.states, states.data(), states.size() * sizeof(SessionState));
  // Fresh memory would pass for round 2^32, which may come before the first sweep.
  const std::uint64_t stale = options.first_round << 32;
  const std::vector<machine::PacketPair> unsent((layout.lines - layout.packets) / sizeof(machine::PacketPair),
                                                {stale, stale});
  world.copy(channel.packets, unsent.data(), unsent.size() * sizeof(machine::PacketPair));
}

namespace {

/// Whether all ranks have GPUs, each one of its own.
bool have_own_gpus(const World& world) {
  std::set<std::string> gpus;
  for (int rank = 0; rank < world.size(); ++rank)
    if (const Device& device = world.device(rank); device.is_gpu()) gpus.insert(device.uuid);
  return gpus.size() == static_cast<std::size_t>(world.size());
}

/// Of the symmetric heap, what a channel takes for engines without being asked: one part in so many at most.
constexpr std::size_t heap_share = 8;

}  // namespace

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
  const std::size_t wanted = std::min(detail::CopyEngines::most_bytes(members), world.config().heap_bytes / heap_share);
  for (std::size_t bytes = wanted; bytes >= detail::CopyEngines::useful_bytes(members); bytes /= 2) {
    try {
      engine_scratch.emplace(team, bytes);
      return;
    } catch (const Error& error) {  // the same on all ranks: no room, or not at the same place
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

void Collectives::Implementation::run_engine(detail::EngineCall call) {
  require(!context().mixed, Status::unavailable,
          "copy_engine: ranks of both kinds do not reach each other's memory; the algorithms in packets do");
  for (const void* vector : {static_cast<const void*>(call.destination), static_cast<const void*>(call.source)})
    require(
        !call.symmetric || call.call.count == 0 || world.owner_of(vector) == world.rank(), Status::invalid_argument,
        "symmetric: the caller asserts that vectors lie at the same place of the symmetric heap on all ranks; one of "
        "these lies outside it");
  if (engine == nullptr) make_engine();
  if (call.stream == nullptr) call.stream = &world.stream();
  engine->allreduce(call);
  note(call.symmetric ? Transfer::in_place : Transfer::staged);
}

void detail::refuse_blocks(const CollectiveCall& call) {
  require(call.algorithm != Algorithm::copy_engine || call.blocks == 0, Status::invalid_argument,
          fmt::format("copy_engine: {} blocks were asked for, and engines have none; leave blocks 0", call.blocks));
}

void Collectives::Implementation::require_lines(Algorithm algorithm) const {
  require(channel.area_lines != 0, Status::unavailable,
          fmt::format("{}: {}; the algorithms in packets serve instead", name(algorithm), no_lines_reason));
}

Collectives::Collectives(Team& team, const CollectiveOptions& options)
    : implementation_(std::make_unique<Implementation>(team, agreed(team, options))) {}

Collectives::~Collectives() = default;

const CollectiveChannel& Collectives::channel() const { return implementation_->channel; }

Team& Collectives::team() const { return implementation_->team; }

namespace {

/// Up to which size an algorithm is taken, in bytes of the vector, or of what a rank sends.
struct Limits {
  std::size_t one_shot_traffic;    ///< in packets
  std::size_t packets128_traffic;  ///< in packets of 128 bytes, in one shot
  std::size_t packets;             ///< in two shots
  std::size_t packets128;          ///< the same
  std::size_t stores;              ///< of the kernel's threads, where copy engines may put results where they belong
};
constexpr std::size_t kib = 1024, mib = kib * kib;
/// The same where engines go through scratch memory (bench/records/2026-11-23_2xH200_default-calls.jsonl).
constexpr std::size_t stores_beside_staged_engines = 192 * mib;
constexpr Limits gpu_limits{512 * kib, 0, 512 * kib, 0, 32 * mib};
constexpr Limits limits_with_lines{96 * kib, 768 * kib, 0, 3 * mib, 32 * mib};
constexpr Limits limits_of_two{24 * kib, 256 * kib, 0, 8 * mib, 96 * mib};  ///< two members with lines

/// Bytes that keep a block busy: a packet for every other thread, or four loads of 16 bytes for each.
constexpr std::size_t packet_block_bytes = 1024, packet128_block_bytes = 2048, peer_block_bytes = 32768;
/// Blocks of one call at most: reads from one peer need more on their way than reads from several.
constexpr std::size_t blocks_for_one_peer = 64, blocks_for_peers = 24;

/// Where a rank of the world runs on a CPU.
Algorithm host_choice(std::size_t bytes, const Context& ctx) {
  if (!ctx.mixed)
    return detail::suits_one_shot_on_host(bytes, ctx.size) ? Algorithm::packets_one_shot : Algorithm::two_shot;
  return bytes * (ctx.size - 1) <= 2 * kib ? Algorithm::packets_one_shot : Algorithm::packets_two_shot;
}

/// `has_engines`: they may be taken.
Algorithm gpu_choice(std::size_t bytes, std::size_t members, bool has_lines, bool has_engines, bool symmetric) {
  const Limits& with_lines = members == 2 ? limits_of_two : limits_with_lines;
  const Limits& limits = has_lines ? with_lines : gpu_limits;
  const std::size_t traffic = bytes * (members - 1);
  if (traffic <= limits.one_shot_traffic) return Algorithm::packets_one_shot;
  if (traffic <= limits.packets128_traffic) return Algorithm::packets128_one_shot;
  if (bytes <= limits.packets) return Algorithm::packets_two_shot;
  if (bytes <= limits.packets128) return Algorithm::packets128_two_shot;
  const std::size_t stores = symmetric ? limits.stores : stores_beside_staged_engines;
  return has_engines && bytes > stores ? Algorithm::copy_engine : Algorithm::two_shot;
}

bool is_packets(Algorithm algorithm) {
  return algorithm == Algorithm::packets_one_shot || algorithm == Algorithm::packets_two_shot;
}

}  // namespace

CollectiveCall Collectives::allreduce_choice(std::size_t count, ElementType type, const CollectiveCall& call) const {
  const Context& ctx = implementation_->context();
  const bool host = any_host_rank(implementation_->world);
  const std::size_t bytes = detail::checked_bytes(count, ctx.size, type) / ctx.size;
  detail::refuse_blocks(call);
  CollectiveCall choice = call;
  const bool may_take_engines = call.blocks == 0 && implementation_->takes_engines();
  if (choice.algorithm == Algorithm::automatic)
    choice.algorithm = count < ctx.size ? Algorithm::packets_one_shot  // there is no work to share
                       : host           ? host_choice(bytes, ctx)
                              : gpu_choice(bytes, ctx.size, implementation_->channel.area_lines != 0, may_take_engines,
                                           call.symmetric);
  if (choice.blocks == 0 && choice.algorithm != Algorithm::copy_engine) {
    const std::size_t block_bytes = is_packets(choice.algorithm)      ? packet_block_bytes
                                    : is_packets128(choice.algorithm) ? packet128_block_bytes
                                                                      : peer_block_bytes;
    const bool reads_peers = !is_packets(choice.algorithm) && !is_packets128(choice.algorithm) && ctx.size > 2;
    const std::size_t most = host ? 1 : reads_peers ? blocks_for_peers : blocks_for_one_peer;
    const std::size_t wanted = std::min(most, (bytes + block_bytes - 1) / block_bytes);
    choice.blocks = static_cast<unsigned>(std::clamp<std::size_t>(wanted, 1, implementation_->channel.sessions));
  }
  return choice;
}

namespace {

/// Threads of a block that sends vectors of so many bytes in packets: threads without work make others wait.
unsigned threads_for(Algorithm algorithm, std::size_t block_bytes, std::size_t members) {
  std::size_t threads = (block_bytes + 7) / 8;  // one for each word
  if (is_packets128(algorithm)) {
    const std::size_t part = algorithm == Algorithm::packets128_two_shot ? block_bytes / members + 1 : block_bytes;
    const std::size_t lines = part / line_payload_bytes + 1, most = detail::collective_threads / line_threads;
    const std::size_t turns = (lines + most - 1) / most;  // all of a length
    threads = (lines + turns - 1) / turns * line_threads;
  }
  return detail::whole_warps(threads);
}

void check_algorithm(ElementType type, Algorithm algorithm) {
  const bool exists = algorithm == Algorithm::automatic || algorithm == Algorithm::copy_engine ||
                      detail::reduces_by(algorithm, false, false) ||
                      detail::allreduce_launcher(type, algorithm) != nullptr;
  if (!exists) throw Error(Status::invalid_argument, fmt::format("all-reduce has no algorithm {}", name(algorithm)));
}

}  // namespace

void Collectives::allreduce_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                      Reduction reduction, const CollectiveCall& call) {
  const std::size_t bytes = detail::checked_bytes(count, 1, type);
  detail::check_reduction(type, reduction);
  check_algorithm(type, call.algorithm);
  detail::check_vector("destination", destination, bytes, type);
  detail::check_vector("source", source, bytes, type);
  detail::check_apart({destination, bytes}, {source, bytes}, destination);
  if (count == 0 && implementation_->channel.checks == 0) return implementation_->note(Transfer::none);
  CollectiveCall asked = call;
  if (count == 0) asked.algorithm = Algorithm::packets_one_shot;  // the members compare the call, and move nothing
  const CollectiveCall choice = allreduce_choice(count, type, asked);
  if (choice.algorithm == Algorithm::copy_engine) {
    const CallSignature signature{.operation = CollectiveOperation::allreduce,
                                  .type = type,
                                  .reduction = reduction,
                                  .algorithm = choice.algorithm,
                                  .count = count};
    return implementation_->run_engine({.destination = static_cast<std::byte*>(destination),
                                        .source = static_cast<const std::byte*>(source),
                                        .call = signature,
                                        .stream = choice.stream,
                                        .symmetric = choice.symmetric});
  }
  LaunchOptions options = implementation_->launch_options(CollectiveOperation::allreduce, choice.blocks, choice.stream);
  if (is_packets(choice.algorithm) || is_packets128(choice.algorithm))
    options.threads = threads_for(choice.algorithm, bytes / choice.blocks, context().size);
  const bool is_named = detail::reduces_by(choice.algorithm, false, false);
  const detail::ReductionLauncher launcher = detail::allreduce_launcher(type, choice.algorithm);
  if (is_packets128(choice.algorithm)) implementation_->require_lines(choice.algorithm);
  if (context().mixed && (is_named || choice.algorithm == Algorithm::two_shot))
    throw Error(Status::unavailable,
                fmt::format("{}: ranks of both kinds do not reach each other's memory; the algorithms in packets do",
                            name(choice.algorithm)));
  const detail::ReductionCall vectors{destination, source, count, reduction};
  if (is_named)
    detail::reduction_launcher(type)(implementation_->team, options, implementation_->channel,
                                     {vectors, no_peer, false, choice.algorithm});
  else
    launcher(implementation_->team, options, implementation_->channel, vectors);
  if (choice.algorithm == Algorithm::two_shot)
    implementation_->note_by_sessions();
  else
    implementation_->note(count == 0 ? Transfer::none : is_named ? Transfer::staged : Transfer::packets);
}

Transfer Collectives::last_transfer() const {
  if (implementation_->noted) return *implementation_->noted;
  SessionState state;
  implementation_->world.copy(&state, implementation_->channel.states, sizeof state);
  return static_cast<Transfer>(state.transfer);
}

}  // namespace beeline
