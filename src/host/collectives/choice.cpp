// SPDX-License-Identifier: Apache-2.0
// The choice of algorithm, blocks and threads for calls on streams, and its record.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "beeline/host/packets.hpp"
#include "beeline/selection/preferences.hpp"
#include "host/channel_agreement.hpp"
#include "host/collectives/checks.hpp"
#include "host/collectives/implementation.hpp"
#include "host/world/part.hpp"
#include "host/world/routes.hpp"

namespace beeline {

namespace selection = detail::selection;

void detail::check_row(Operation operation, Algorithm algorithm) {
  if (has_algorithm(operation, algorithm, Control::stream)) return;
  std::vector<const char*> had;
  for (const MethodRow& row : method_rows)
    if (row.operation == operation && row.is_by(Control::stream)) had.push_back(name(row.algorithm));
  throw Error(Status::invalid_argument,
              fmt::format("{} has no algorithm {}; it has {}", name(operation), name(algorithm), fmt::join(had, ", ")));
}

namespace {

/// Number of threads of a block for `bytes` of the vector, or of every piece: threads without work make others wait.
///   most  number of threads for large blocks
unsigned threads_for(Operation operation, Algorithm algorithm, std::size_t bytes, std::size_t members, unsigned most) {
  const bool moves = contains(selection::moves, operation), is_known = moves || operation == Operation::allreduce;
  const Protocol protocol = info_of(algorithm).protocol;
  if (!is_known || (protocol != Protocol::ll && protocol != Protocol::ll128)) return most;
  if (protocol == Protocol::ll)
    return detail::whole_warps(moves ? (bytes / 8 + 1) * std::max<std::size_t>(1, members - 1) : (bytes + 7) / 8);
  const std::size_t part = info_of(algorithm).schedule == Schedule::two_shot ? bytes / members + 1 : bytes;
  const std::size_t lines = part / line_payload_bytes + 1, at_once = most / line_threads;
  const std::size_t rounds = moves ? 1 : (lines + at_once - 1) / at_once;  // rounds of equal length
  return detail::whole_warps((lines + rounds - 1) / rounds * line_threads);
}

/// Whether the members exchange the addresses of vectors during the call.
bool finds_out(Operation operation, Algorithm algorithm) {
  return algorithm == Algorithm::two_shot || (operation == Operation::reduce_scatter && algorithm == Algorithm::read) ||
         (contains(selection::moves | selection::varied, operation) && info_of(algorithm).path != Path::copy_engine &&
          info_of(algorithm).path != Path::network);
}

}  // namespace

std::string reason_against(Team& team, Algorithm algorithm) {
  if (algorithm == Algorithm::automatic) return {};
  const std::uint32_t asked = info_of(algorithm).needs;
  const bool spans_nodes = world_part<Routes>(team.world()).needs_engine(team);
  if (spans_nodes != ((asked & needs::several_nodes) != 0))
    return spans_nodes ? "some members are on other nodes; across_nodes serves" : "all members are on one node";
  if ((asked & needs::loads_and_stores) != 0 && team.context().mixed)
    return "ranks of both kinds do not reach each other's memory; the algorithms in packets do";
  if ((asked & needs::whole_lines) == 0) return {};
  const std::string reason = no_ll128_reason(team);
  return reason.empty() ? reason : reason + "; the algorithms in packets serve instead";
}

void detail::check_members(Team& team, Algorithm algorithm) {
  if (const std::string reason = reason_against(team, algorithm); !reason.empty())
    throw Error(Status::unavailable, fmt::format("{}: {}", name(algorithm), reason));
}

Situation Collectives::Implementation::situation(Operation operation, const CollectiveCall& call) const {
  const bool on_hosts = detail::any_host_rank(world);
  const bool moves = contains(selection::moves, operation);
  return {.members = context().size,
          .on_hosts = on_hosts,
          .mixed = context().mixed,
          .nodes = across_nodes == nullptr ? 1 : across_nodes->nodes(),
          .has_lines = channel.area_lines != 0,
          .has_engines = call.blocks == 0 && !on_hosts && (moves || takes_engines()),
          .knows_symmetric = call.symmetric};
}

CollectiveCall Collectives::Implementation::choose(const CallDescription& what, const CollectiveCall& call) const {
  if (call.algorithm != Algorithm::automatic) detail::check_row(what.operation, call.algorithm);
  // Every call passes here, so texts are made for errors only.
  if (call.algorithm == Algorithm::copy_engine && call.blocks != 0)
    throw Error(
        Status::invalid_argument,
        fmt::format("copy_engine: {} blocks were asked for, and engines have none; leave blocks 0", call.blocks));
  detail::check_members(team, call.algorithm);
  const Situation here = situation(what.operation, call);
  const std::size_t bytes = detail::bytes_of(what);
  CollectiveCall choice = call;
  if (choice.algorithm == Algorithm::automatic)
    choice.algorithm = choose_on_stream(what.operation, here, bytes, what.count);
  if (choice.blocks == 0 && choice.algorithm != Algorithm::copy_engine)
    choice.blocks = choose_blocks(what.operation, choice.algorithm, here, bytes, channel.sessions);
  return choice;
}

LaunchOptions Collectives::Implementation::launch_options(const CallDescription& what,
                                                          const CollectiveCall& choice) const {
  if (choice.blocks > channel.sessions)
    throw Error(Status::invalid_argument,
                fmt::format("{} blocks on a channel of {} sessions (CollectiveOptions::sessions)", choice.blocks,
                            channel.sessions));
  const unsigned blocks = across_nodes != nullptr ? 1 : std::max(1u, choice.blocks);
  const unsigned most =
      std::min(detail::collective_threads, detail::whole_warps(selection::most_call_threads / blocks));
  return {.blocks = blocks,
          .threads = choice.algorithm == Algorithm::automatic
                         ? most
                         : threads_for(what.operation, choice.algorithm, detail::bytes_of(what) / blocks,
                                       context().size, most),
          .waits = true,
          .stream = choice.stream,
          .serialization_key = memory.data(),
          .name = name(what.operation)};
}

detail::VectorMappings Collectives::Implementation::mappings_of(const CollectiveCall& call,
                                                                SegmentMappings::Vector destination,
                                                                SegmentMappings::Vector source) {
  const Stream& stream = call.stream == nullptr ? world.stream() : *call.stream;
  return call.mappings->find(team, destination, source, stream.capture() != 0);
}

void Collectives::Implementation::note(const CallDescription& what, const CollectiveCall& choice) {
  noted_algorithm = choice.algorithm;
  const Protocol protocol = info_of(choice.algorithm).protocol;
  if (detail::is_empty(what))
    noted = Transfer::none;
  else if (protocol == Protocol::ll || protocol == Protocol::ll128)
    noted = Transfer::packets;
  else if (choice.algorithm == Algorithm::copy_engine)
    noted = choice.symmetric ? Transfer::in_place : Transfer::staged;
  else if (finds_out(what.operation, choice.algorithm))
    noted.reset();  // the first session, which is part of every call, sets it (`Session::note`)
  else
    noted = Transfer::staged;
}

CollectiveCall Collectives::choice(Operation operation, std::size_t count, ElementType type,
                                   const CollectiveCall& call) const {
  constexpr Operations with_pieces_of_one_length =
      selection::moves | selection::allreduce_only | selection::reductions_to_some;
  require(contains(with_pieces_of_one_length, operation), Status::invalid_argument,
          fmt::format("{}: no choice by size is made for it", name(operation)));
  static_cast<void>(detail::checked_bytes(count, team().context().size, type));
  const CallDescription what{.operation = operation, .element = {type}, .count = count};
  const CollectiveCall chosen = implementation_->choose(what, call);
  static_cast<void>(implementation_->launch_options(what, chosen));  // throws what the call would throw
  return chosen;
}

}  // namespace beeline
