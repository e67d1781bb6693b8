// SPDX-License-Identifier: Apache-2.0
// The calls on streams that reduce.

#include "host/collectives/implementation.hpp"
#include "host/collectives/launchers.hpp"
#include "host/ranges.hpp"

namespace beeline {

void Collectives::Implementation::reduce(detail::VectorCall call, const CollectiveCall& choice,
                                         const LaunchOptions& launch) {
  if (choice.algorithm == Algorithm::copy_engine) return reduce_by_engine(call, choice);
  const Operation operation = call.what.operation;
  const bool scatters = operation == Operation::reduce_scatter;
  detail::VectorMappings mappings;
  if (choice.mappings != nullptr && !context().mixed &&
      choice.algorithm == (scatters ? Algorithm::read : Algorithm::two_shot)) {
    const std::size_t bytes = detail::bytes_of(call.what);
    const bool is_reached = operation == Operation::allreduce || call.what.root == context().rank;
    mappings = mappings_of(choice, {call.destination, is_reached ? bytes : 0},
                           {call.source, scatters ? bytes * context().size : bytes});
    call.mappings = &mappings, call.tables = tables;
  }
  detail::reduction_launchers(call.what.element.type, call.what.reduction).reduce({team, launch, channel}, call);
}

void Collectives::Implementation::reduce_by_engine(const detail::VectorCall& call, const CollectiveCall& choice) {
  const auto check_asserted = [&](const char* argument, const void* vector) {
    if (choice.symmetric && world.owner_of(vector) != world.rank())
      detail::refuse_not_symmetric(world, {name(call.what.operation), argument}, vector);
  };
  check_asserted("destination", call.destination);
  check_asserted("source", call.source);
  if (engine == nullptr) make_engine();
  engine->allreduce({.destination = static_cast<std::byte*>(call.destination),
                     .source = static_cast<const std::byte*>(call.source),
                     .call = call.what,
                     .stream = choice.stream == nullptr ? &world.stream() : choice.stream,
                     .symmetric = choice.symmetric});
}

}  // namespace beeline
