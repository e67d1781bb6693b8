// SPDX-License-Identifier: Apache-2.0
// The calls on streams that reduce.
#include <fmt/format.h>

#include "host/collectives/checks.hpp"
#include "host/collectives/implementation.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline {

using detail::checked_bytes;

void Collectives::Implementation::reduce(const detail::VectorCall& asked, const CollectiveCall& options) {
  detail::VectorCall call = asked;
  CallDescription& what = call.what;
  detail::check_reduction(what.element.type, what.reduction);
  const CollectiveCall choice = choose(what, options);
  const LaunchOptions launch = launch_options(what, choice);
  what.algorithm = choice.algorithm;
  if (detail::is_empty(what))
    make_empty(what, launch);
  else if (choice.algorithm == Algorithm::copy_engine)
    reduce_by_engine(call, choice);
  else
    launch_reduction(call, choice, launch);
  note(what, choice);
}

void Collectives::Implementation::launch_reduction(detail::VectorCall& call, const CollectiveCall& choice,
                                                   const LaunchOptions& launch) {
  const Operation operation = call.what.operation;
  const bool reduces_all = operation == Operation::allreduce && choice.algorithm == Algorithm::two_shot;
  const bool scatters = operation == Operation::reduce_scatter && choice.algorithm == Algorithm::read;
  detail::VectorMappings mappings;
  if (choice.mappings != nullptr && !context().mixed && (reduces_all || scatters)) {
    const SegmentMappings::Vector source{call.source, detail::bytes_of(call.what) * (scatters ? context().size : 1)};
    mappings = mappings_of(choice, scatters ? source : SegmentMappings::Vector{call.destination, source.bytes}, source);
    call.mappings = &mappings, call.tables = tables;
  }
  detail::reduction_launcher(call.what.element.type, call.what.reduction)(team, launch, channel, call);
}

void Collectives::Implementation::reduce_by_engine(const detail::VectorCall& call, const CollectiveCall& choice) {
  for (const void* vector : {static_cast<const void*>(call.destination), call.source})
    require(
        !choice.symmetric || world.owner_of(vector) == world.rank(), Status::invalid_argument,
        "symmetric: the caller asserts that vectors lie at the same place of the symmetric heap on all ranks; one of "
        "these lies outside it");
  if (engine == nullptr) make_engine();
  engine->allreduce({.destination = static_cast<std::byte*>(call.destination),
                     .source = static_cast<const std::byte*>(call.source),
                     .call = call.what,
                     .stream = choice.stream == nullptr ? &world.stream() : choice.stream,
                     .symmetric = choice.symmetric});
}

void Collectives::allreduce_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                      Reduction reduction, const CollectiveCall& call) {
  const std::size_t bytes = checked_bytes(count, 1, type);
  detail::check_vector("destination", destination, bytes, type);
  detail::check_vector("source", source, bytes, type);
  detail::check_apart({destination, bytes}, {source, bytes}, destination);
  const CallDescription what{
      .operation = Operation::allreduce, .element = {type}, .reduction = reduction, .count = count};
  implementation_->reduce({what, destination, source}, call);
}

void Collectives::reduce_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                   Reduction reduction, int root, const CollectiveCall& call) {
  const std::size_t bytes = checked_bytes(count, 1, type);
  const std::uint32_t receiver = implementation_->checked_root(root);
  const std::size_t received = context().rank == receiver ? bytes : 0;
  detail::check_vector("destination", destination, received, type);
  detail::check_vector("source", source, bytes, type);
  detail::check_apart({destination, received}, {source, bytes}, destination);
  const CallDescription what{
      .operation = Operation::reduce, .element = {type}, .reduction = reduction, .root = receiver, .count = count};
  implementation_->reduce({what, destination, source}, call);
}

void Collectives::reduce_scatter_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                           Reduction reduction, const CollectiveCall& call) {
  const std::size_t members = context().size, all = checked_bytes(count, members, type), bytes = all / members;
  detail::check_vector("destination", destination, bytes, type);
  detail::check_vector("source", source, all, type);
  const bool in_place = destination == static_cast<const std::byte*>(source) + context().rank * bytes;
  if (!in_place) detail::check_apart({destination, bytes}, {source, all}, nullptr);
  const CallDescription what{
      .operation = Operation::reduce_scatter, .element = {type}, .reduction = reduction, .count = count};
  implementation_->reduce({what, destination, source}, call);
}

}  // namespace beeline
