// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The operations' names, and the shape of each collective: how it distributes its vectors. Checks, calls on streams,
/// Python, benchmarks and tests use the table of shapes. A new collective needs a row in this table, methods in
/// core/registry.hpp, and its functions for kernels (collectives/) and for the host (host/collectives.hpp).

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "beeline/core/macros.hpp"

namespace beeline {

/// The operations of the library: operations with methods (core/registry.hpp), and operations that only errors and wait
/// records name.
enum class Operation : std::uint16_t {
  none = 0,
  wait,
  wait_any,
  grid_sync,
  packet_send,
  packet_receive,
  staged_send,
  staged_receive,
  stream_synchronize,
  setup,
  user,
  put,
  get,
  signal,
  signal_add,
  atomic,
  collective,  ///< one round of a collective
  send,        ///< sending of a message (`Messages`)
  receive,     ///< receiving of a message
  exchange,
  at,  ///< `Context::at`
  flush,
  quiet,
  copy,     ///< a posted copy, made by the engine's device
  batch,    ///< many puts and signals with one completion (`PutBatch`)
  trigger,  ///< starts armed operations
  task,     ///< a task that is posted to a rank, or runs there
  barrier,  ///< from here on all operations are collectives
  broadcast,
  scatter,
  gather,
  allgather,
  reduce,
  allreduce,
  reduce_scatter,
  alltoall,
  alltoallv
};

namespace detail {

/// Names in the order of the operations' values.
inline constexpr const char* operation_names[] = {"none",        "wait",           "wait_any",
                                                  "grid_sync",   "packet_send",    "packet_receive",
                                                  "staged_send", "staged_receive", "stream_synchronize",
                                                  "setup",       "user",           "put",
                                                  "get",         "signal",         "signal_add",
                                                  "atomic",      "collective",     "send",
                                                  "receive",     "exchange",       "at",
                                                  "flush",       "quiet",          "copy",
                                                  "batch",       "trigger",        "task",
                                                  "barrier",     "broadcast",      "scatter",
                                                  "gather",      "allgather",      "reduce",
                                                  "allreduce",   "reduce_scatter", "alltoall",
                                                  "alltoallv"};

}  // namespace detail

inline constexpr std::uint32_t operations = std::size(detail::operation_names);
static_assert(operations == static_cast<std::uint32_t>(Operation::alltoallv) + 1, "each operation has a name");

/// The operation's name as it appears in messages, in Python and in JSON.
[[nodiscard]] const char* name(Operation operation) noexcept;

/// A set of operations: one bit for each `Operation`.
using Operations = std::uint64_t;
static_assert(operations <= 64);

[[nodiscard]] BEELINE_HOST_DEVICE constexpr Operations set_of(Operation operation) {
  return Operations{1} << static_cast<std::uint32_t>(operation);
}
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool contains(Operations some, Operation operation) {
  return (some & set_of(operation)) != 0;
}

/// The source or the destination that a member passes to a collective call: a vector of `count` elements, or a piece of
/// `count` elements for each member. With `roots_` only the root passes it.
enum class Side : std::uint8_t { vector, pieces, roots_vector, roots_pieces };

[[nodiscard]] constexpr bool has_pieces(Side side) { return side == Side::pieces || side == Side::roots_pieces; }
[[nodiscard]] constexpr bool is_of_root(Side side) { return side >= Side::roots_vector; }
/// Number of parts of `count` elements that a member passes on this side. 0: the member passes nothing, and the
/// argument is ignored.
[[nodiscard]] constexpr std::size_t parts_of(Side side, std::size_t members, bool is_root) {
  if (is_of_root(side) && !is_root) return 0;
  return has_pieces(side) ? members : 1;
}

/// The data movement of a collective. Each member sends its vector to every member that has a destination, or sends
/// each such member the piece with that member's rank. A member that receives several pieces gets the pieces in the
/// order of ranks; in a reduction it gets their combination.
struct CollectiveShape {
  Operation operation;
  Side source, destination;
  const char* summary;   ///< one line, for Python's help
  bool reduces = false;  ///< the receiver combines the pieces that it receives
  bool varies = false;   ///< pieces have any lengths and positions

  [[nodiscard]] constexpr bool has_root() const { return is_of_root(source) || is_of_root(destination); }
  /// Whether source or destination has a piece for each member. The size of such a call is the size of all pieces
  /// together.
  [[nodiscard]] constexpr bool any_pieces() const { return has_pieces(source) || has_pieces(destination); }
  /// Whether all members send to all members, and nothing is combined.
  [[nodiscard]] constexpr bool moves_all() const { return any_pieces() && !has_root() && !reduces; }
};

inline constexpr CollectiveShape collective_shapes[] = {
    {Operation::allreduce, Side::vector, Side::vector,
     "Combines the ranks' vectors, element by element, in the order of ranks; all get the same bits.", true},
    {Operation::broadcast, Side::roots_vector, Side::vector, "Copies the root's vector to all."},
    {Operation::scatter, Side::roots_pieces, Side::vector, "Copies part r of the root's vector to rank r."},
    {Operation::gather, Side::vector, Side::roots_pieces, "Copies all vectors, by rank, to the root."},
    {Operation::allgather, Side::vector, Side::pieces, "Copies all vectors, by rank, to all."},
    {Operation::reduce, Side::vector, Side::roots_vector, "As `allreduce`, but only the root gets the result.", true},
    {Operation::reduce_scatter, Side::pieces, Side::vector, "As `allreduce`, but rank r gets part r of the result.",
     true},
    {Operation::alltoall, Side::pieces, Side::pieces, "Copies part j of rank i's vector to part i of rank j's."},
    {Operation::alltoallv, Side::pieces, Side::pieces, "As `alltoall`, with parts of any lengths.", false, true},
};

/// The collectives for which `is_meant` returns true.
template <class IsMeant>
[[nodiscard]] constexpr Operations operations_where(IsMeant is_meant) {
  Operations found = 0;
  for (const CollectiveShape& shape : collective_shapes)
    if (is_meant(shape)) found |= set_of(shape.operation);
  return found;
}

namespace detail {

/// Shapes indexed by operation, since every call looks one up.
inline constexpr auto shapes_of_operations = [] {
  std::array<const CollectiveShape*, operations> all{};
  for (const CollectiveShape& shape : collective_shapes) all[static_cast<std::size_t>(shape.operation)] = &shape;
  return all;
}();

inline constexpr Operations piecewise_sends =
    operations_where([](const CollectiveShape& shape) { return has_pieces(shape.source); });
inline constexpr Operations piecewise_receives =
    operations_where([](const CollectiveShape& shape) { return has_pieces(shape.destination); });
inline constexpr Operations sends_of_root =
    operations_where([](const CollectiveShape& shape) { return is_of_root(shape.source); });
inline constexpr Operations receives_of_root =
    operations_where([](const CollectiveShape& shape) { return is_of_root(shape.destination); });

}  // namespace detail

/// The shape of a collective; nullptr for barriers and other operations.
[[nodiscard]] constexpr const CollectiveShape* find_shape(Operation operation) {
  const auto index = static_cast<std::size_t>(operation);
  return index < operations ? detail::shapes_of_operations[index] : nullptr;
}

}  // namespace beeline
