// SPDX-License-Identifier: Apache-2.0
// The calls on streams that reduce to a root or to all by parts.
#include <fmt/format.h>

#include <algorithm>

#include "beeline/collectives/impl/reduce_names.hpp"
#include "host/collectives/checks.hpp"
#include "host/collectives/implementation.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline {

namespace {

/// Bytes of a vector or part up to which packets are taken, and those that keep a block busy.
constexpr std::size_t gpu_packet_bytes = std::size_t{512} << 10, host_packet_bytes = 4096;
/// The same of all vectors that go to a root.
constexpr std::size_t rooted_packet_bytes = std::size_t{1} << 20;
constexpr std::size_t packet_block_bytes = 4096, peer_block_bytes = 32768;

}  // namespace

void Collectives::Implementation::reduce(const detail::NamedReductionCall& call, ElementType type,
                                         const CollectiveCall& how) {
  const bool host = detail::any_host_rank(world);
  const std::size_t bytes = call.vectors.count * bytes_of(type);
  detail::NamedReductionCall chosen = call;
  chosen.algorithm = how.algorithm;
  const std::size_t others = std::max(1u, context().size - 1);
  const std::size_t packet_bytes = host            ? host_packet_bytes
                                   : call.scatters ? gpu_packet_bytes
                                                   : rooted_packet_bytes / others;
  if (how.algorithm == Algorithm::automatic)
    chosen.algorithm = context().mixed || bytes <= packet_bytes ? Algorithm::packets
                       : call.scatters                          ? Algorithm::read
                                                                : Algorithm::two_shot;
  if (!detail::reduces_by(chosen.algorithm, call.scatters, call.root != no_peer))
    throw Error(
        Status::invalid_argument,
        fmt::format("{} has no algorithm {}", call.scatters ? "reduce-scatter" : "reduce", name(chosen.algorithm)));
  if (chosen.algorithm != Algorithm::packets && context().mixed)
    throw Error(Status::unavailable, fmt::format("{}: ranks of both kinds do not reach each other's memory; packets do",
                                                 name(chosen.algorithm)));
  const std::size_t block_bytes = chosen.algorithm == Algorithm::packets ? packet_block_bytes : peer_block_bytes;
  const std::size_t wanted = host ? 1 : (bytes + block_bytes - 1) / block_bytes;
  const unsigned blocks =
      how.blocks != 0 ? how.blocks : static_cast<unsigned>(std::clamp<std::size_t>(wanted, 1, channel.sessions));
  const CollectiveOperation operation = call.scatters          ? CollectiveOperation::reduce_scatter
                                        : call.root == no_peer ? CollectiveOperation::allreduce
                                                               : CollectiveOperation::reduce;
  const LaunchOptions options = launch_options(operation, blocks, how.stream);
  if (bytes != 0 || channel.checks != 0) detail::reduction_launcher(type)(team, options, channel, chosen);
  const bool finds_out =
      chosen.algorithm == Algorithm::two_shot || (call.scatters && chosen.algorithm == Algorithm::read);
  if (bytes != 0 && finds_out) return note_by_sessions();
  note(bytes == 0 ? Transfer::none : chosen.algorithm == Algorithm::packets ? Transfer::packets : Transfer::staged);
}

void Collectives::reduce_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                   Reduction reduction, int root, const CollectiveCall& call) {
  const std::size_t bytes = detail::checked_bytes(count, 1, type);
  const std::uint32_t receiver = implementation_->checked_root(root);
  const std::size_t received = context().rank == receiver ? bytes : 0;
  detail::check_reduction(type, reduction);
  detail::check_vector("destination", destination, received, type);
  detail::check_vector("source", source, bytes, type);
  detail::check_apart({destination, received}, {source, bytes}, destination);
  implementation_->reduce({{destination, source, count, reduction}, receiver, false, call.algorithm}, type, call);
}

void Collectives::reduce_scatter_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                           Reduction reduction, const CollectiveCall& call) {
  const std::size_t members = context().size, all = detail::checked_bytes(count, members, type), bytes = all / members;
  detail::check_reduction(type, reduction);
  detail::check_vector("destination", destination, bytes, type);
  detail::check_vector("source", source, all, type);
  const bool in_place = destination == static_cast<const std::byte*>(source) + context().rank * bytes;
  if (!in_place) detail::check_apart({destination, bytes}, {source, all}, nullptr);
  implementation_->reduce({{destination, source, count, reduction}, no_peer, true, call.algorithm}, type, call);
}

}  // namespace beeline
