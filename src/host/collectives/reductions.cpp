// SPDX-License-Identifier: Apache-2.0
// The calls on streams that reduce.
#include <fmt/format.h>

#include "host/collectives/checks.hpp"
#include "host/collectives/implementation.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline {

using detail::checked_bytes;

void Collectives::Implementation::reduce(const detail::ReductionCall& reduction, const CollectiveCall& call) {
  detail::check_reduction(reduction.type, reduction.reduction);
  const std::size_t bytes = reduction.count * bytes_of(reduction.type);
  const detail::CallSize size{reduction.operation, bytes, reduction.count, bytes == 0};
  const CollectiveCall choice = choose(size, call);
  const LaunchOptions options = launch_options(size, choice);
  if (choice.algorithm == Algorithm::copy_engine)
    reduce_by_engine(reduction, choice);
  else if (!size.is_empty || channel.checks != 0)
    detail::reduction_launcher(reduction.type)(team, options, channel, reduction, choice.algorithm);
  note(size, choice);
}

void Collectives::Implementation::reduce_by_engine(const detail::ReductionCall& reduction,
                                                   const CollectiveCall& choice) {
  if (reduction.count == 0 && channel.checks == 0) return;
  for (const void* vector : {static_cast<const void*>(reduction.destination), reduction.source})
    require(
        !choice.symmetric || reduction.count == 0 || world.owner_of(vector) == world.rank(), Status::invalid_argument,
        "symmetric: the caller asserts that vectors lie at the same place of the symmetric heap on all ranks; one of "
        "these lies outside it");
  if (engine == nullptr) make_engine();
  engine->allreduce({.destination = static_cast<std::byte*>(reduction.destination),
                     .source = static_cast<const std::byte*>(reduction.source),
                     .call = {.operation = reduction.operation,
                              .type = reduction.type,
                              .reduction = reduction.reduction,
                              .algorithm = choice.algorithm,
                              .count = reduction.count},
                     .stream = choice.stream == nullptr ? &world.stream() : choice.stream,
                     .symmetric = choice.symmetric});
}

void Collectives::allreduce_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                      Reduction reduction, const CollectiveCall& call) {
  const std::size_t bytes = checked_bytes(count, 1, type);
  detail::check_vector("destination", destination, bytes, type);
  detail::check_vector("source", source, bytes, type);
  detail::check_apart({destination, bytes}, {source, bytes}, destination);
  implementation_->reduce({Operation::allreduce, destination, source, count, type, reduction}, call);
}

void Collectives::reduce_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                   Reduction reduction, int root, const CollectiveCall& call) {
  const std::size_t bytes = checked_bytes(count, 1, type);
  const std::uint32_t receiver = implementation_->checked_root(root);
  const std::size_t received = context().rank == receiver ? bytes : 0;
  detail::check_vector("destination", destination, received, type);
  detail::check_vector("source", source, bytes, type);
  detail::check_apart({destination, received}, {source, bytes}, destination);
  implementation_->reduce({Operation::reduce, destination, source, count, type, reduction, receiver}, call);
}

void Collectives::reduce_scatter_on_stream(void* destination, const void* source, std::size_t count, ElementType type,
                                           Reduction reduction, const CollectiveCall& call) {
  const std::size_t members = context().size, all = checked_bytes(count, members, type), bytes = all / members;
  detail::check_vector("destination", destination, bytes, type);
  detail::check_vector("source", source, all, type);
  const bool in_place = destination == static_cast<const std::byte*>(source) + context().rank * bytes;
  if (!in_place) detail::check_apart({destination, bytes}, {source, all}, nullptr);
  implementation_->reduce({Operation::reduce_scatter, destination, source, count, type, reduction}, call);
}

}  // namespace beeline
