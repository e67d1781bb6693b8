// SPDX-License-Identifier: Apache-2.0
// Common code of calls on streams whose parts all have the same length.
#include <fmt/format.h>

#include <cstdlib>

#include "host/collectives/arrival_kernel.hpp"
#include "host/collectives/checks.hpp"
#include "host/collectives/implementation.hpp"

namespace beeline {

namespace selection = detail::selection;

void Collectives::Implementation::check_vectors(const CollectiveShape& shape, const detail::VectorCall& call,
                                                std::size_t bytes) const {
  const CallDescription& what = call.what;
  const std::size_t members = context().size, rank = context().rank;
  if (shape.has_root() && what.root >= members)
    throw Error(Status::invalid_argument,
                fmt::format("root {} of a team of {}", static_cast<std::int32_t>(what.root), members));
  const bool is_root = what.root == rank;
  const detail::VectorPlace to{call.destination, bytes * parts_of(shape.destination, members, is_root)},
      from{call.source, bytes * parts_of(shape.source, members, is_root)};
  const Context& ctx = team.host_context();
  detail::check_vector(ctx, "destination", to.at, to.bytes, what.element.type);
  detail::check_vector(ctx, "source", from.at, from.bytes, what.element.type);
  // A member's own part may be in place already, unless source and destination have parts: other parts would overlap.
  const auto own_part = [&](const detail::VectorPlace& vector, Side side) {
    return reinterpret_cast<std::uintptr_t>(vector.at) + (has_pieces(side) ? rank * bytes : 0);
  };
  const bool may_be_in_place = !has_pieces(shape.source) || !has_pieces(shape.destination);
  if (!may_be_in_place || own_part(to, shape.destination) != own_part(from, shape.source))
    detail::check_apart(to, from);
}

void Collectives::Implementation::start_across_nodes(const CollectiveShape& shape, const detail::VectorCall& call,
                                                     std::size_t bytes, const LaunchOptions& launch) {
  if (shape.reduces)
    across_nodes->reduce(launch, call);
  else
    across_nodes->move(launch, detail::plan_of(call.what, call.destination, call.source, bytes));
}

namespace {

/// Whether streams have enough hardware queues for a waiting kernel. With few queues, kernels of other streams could
/// queue behind the waiting kernel and the grid after it. CUDA reads this variable; its default is 8.
bool has_queues() {
  static const bool has = [] {
    const char* const named = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    return named == nullptr || std::atoi(named) >= 8;
  }();
  return has;
}

}  // namespace

void Collectives::Implementation::await_members(const CollectiveCall& choice, std::size_t bytes, LaunchOptions launch) {
  const bool takes_room = world.device().is_gpu() && choice.algorithm != Algorithm::copy_engine;
  const bool has_others = across_nodes == nullptr && !context().mixed && context().size > 1;
  const bool is_long = bytes >= selection::least_overlapped_bytes;
  if (!choice.overlapped || !takes_room || !has_others || !is_long || !has_queues()) return;
  launch.blocks = 1, launch.threads = 32;
  detail::launch_arrival({team, launch, channel});
}

void Collectives::Implementation::start(const CollectiveShape& shape, detail::VectorCall call,
                                        const CollectiveCall& options) {
  CallDescription& what = call.what;
  const std::size_t parts = shape.any_pieces() ? context().size : 1;
  static_cast<void>(detail::checked_bytes(what.count, parts, what.element.type));
  const std::size_t bytes = detail::bytes_of(what);
  check_vectors(shape, call, bytes);
  if (shape.reduces) detail::check_reduction(what.element.type, what.reduction);
  const CollectiveCall choice = choose(what, options);
  const LaunchOptions launch = launch_options(what, choice);
  what.algorithm = choice.algorithm;
  await_members(choice, bytes, launch);
  if (detail::is_empty(what))
    make_empty(what, launch);
  else if (across_nodes != nullptr)
    start_across_nodes(shape, call, bytes, launch);
  else if (shape.reduces)
    reduce(call, choice, launch);
  else
    move(detail::plan_of(what, call.destination, call.source, bytes), choice, launch);
  note(what, choice);
}

void Collectives::call_on_stream(const CallDescription& what, void* destination, const void* source,
                                 const CollectiveCall& call) {
  const CollectiveShape* const shape = find_shape(what.operation);
  if (shape == nullptr || shape->varies)
    throw Error(Status::invalid_argument,
                fmt::format("{} is no collective of vectors of one length", name(what.operation)));
  const CallDescription asked{.operation = what.operation,
                              .element = what.element,
                              .reduction = shape->reduces ? what.reduction : Reduction::sum,
                              .root = shape->has_root() ? what.root : no_peer,
                              .count = what.count};
  const detail::ExclusiveCalls::Call made(implementation_->calls, asked, call.stream);
  implementation_->start(*shape, {asked, destination, source}, call);
}

}  // namespace beeline
