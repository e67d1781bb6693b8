// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Members of a `Collectives` object, for the files that implement its calls.

#include <cstddef>
#include <optional>
#include <string>

#include "beeline/collectives/impl/movement_plan.hpp"
#include "beeline/host/collectives.hpp"
#include "beeline/host/launch_options.hpp"
#include "beeline/selection/preferences.hpp"
#include "host/collectives/across_nodes.hpp"
#include "host/collectives/copy_engine.hpp"
#include "host/collectives/exclusive_calls.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline {

namespace detail {

/// Offsets of the parts of a channel's memory.
struct ChannelLayout {
  std::size_t arrived, finished, packets, lines, vectors, staging, tables, bytes;
  std::size_t across;        ///< of the sessions' pair channels, if members are on several nodes, otherwise 0
  std::uint32_t area_lines;  ///< 0 if these ranks exchange no lines
  std::size_t vector_bytes;  ///< 0 if a rank has a GPU
};

}  // namespace detail

class Collectives::Implementation {
 public:
  /// Collective.
  Implementation(Team& team, const CollectiveOptions& options);

  [[nodiscard]] const Context& context() const { return team.context(); }

  /// Fills in the algorithm and blocks of `call`. Throws invalid_argument or unavailable, with the reason, if these
  /// members cannot use the chosen ones.
  [[nodiscard]] CollectiveCall choose(const CallDescription& what, const CollectiveCall& call) const;
  /// Options for the waiting kernels of a call after its choice. Throws invalid_argument for more blocks than sessions.
  [[nodiscard]] LaunchOptions launch_options(const CallDescription& what, const CollectiveCall& choice) const;
  /// Addresses at which members have mapped the vectors of a call.
  [[nodiscard]] detail::VectorMappings mappings_of(const CollectiveCall& call, SegmentMappings::Vector destination,
                                                   SegmentMappings::Vector source);
  /// Keeps the choice for `last_transfer` and `last_algorithm`.
  void note(const CallDescription& what, const CollectiveCall& choice);

  /// Makes the stream of an overlapped call wait until all members have reached the call. `bytes`: of a vector or
  /// piece.
  void await_members(const CollectiveCall& choice, std::size_t bytes, LaunchOptions launch);
  /// Makes a call whose vectors have one length.
  void start(const CollectiveShape& shape, detail::VectorCall call, const CollectiveCall& options);
  /// Makes a call, after its choice, whose pieces differ in length. `destination`: from the first piece to the last.
  void move_varied(const detail::MovementPlan& plan, const PieceSpans& pieces, SegmentMappings::Vector destination,
                   const CollectiveCall& choice, const LaunchOptions& launch);

  Team& team;
  World& world;
  detail::ExclusiveCalls calls;
  const std::string no_lines_reason;  ///< why the members exchange no packets of 128 bytes
  detail::ChannelLayout layout;
  SymmetricArray<std::byte> memory;
  CollectiveChannel channel;
  std::unique_ptr<detail::AcrossNodes> across_nodes;        ///< if members are on several nodes
  std::optional<SymmetricArray<std::byte>> engine_scratch;  ///< empty: the channel's staging is used
  std::unique_ptr<detail::CopyEngines> engine;              ///< made at first use
  /// For copies within this rank's memory that run beside those on the caller's stream.
  struct StreamBeside {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> begun, ended;
  };
  std::unique_ptr<StreamBeside> beside;  ///< made at first use
  std::optional<Transfer> noted = Transfer::none;
  Algorithm noted_algorithm = Algorithm::automatic;
  std::size_t* tables;  ///< [sessions, 4, max_node_ranks] counts and offsets that a kernel's blocks read

 private:
  [[nodiscard]] Situation situation(Operation operation, const CollectiveCall& call) const;
  /// Whether `automatic` chooses copy engines for all-reduces of large vectors.
  [[nodiscard]] bool takes_engines() const;
  void start_across_nodes(const CollectiveShape& shape, const detail::VectorCall& call, std::size_t bytes,
                          const LaunchOptions& launch);
  /// A call of no elements, which is a barrier.
  void make_empty(const CallDescription& what, LaunchOptions options);
  /// Throws invalid_argument unless the vectors fit the operation. `bytes`: of a piece.
  void check_vectors(const CollectiveShape& shape, const detail::VectorCall& call, std::size_t bytes) const;
  void move(const detail::MovementPlan& plan, const CollectiveCall& choice, const LaunchOptions& launch);
  void reduce(detail::VectorCall call, const CollectiveCall& choice, const LaunchOptions& launch);
  void reduce_by_engine(const detail::VectorCall& call, const CollectiveCall& choice);
  void make_engine_scratch(std::optional<std::size_t> asked);
  /// Memory that copy engines may use: `engine_scratch`, or the channel's staging.
  [[nodiscard]] std::span<std::byte> scratch() const;
  void make_engine();
  void make_stream_beside();
  void move_by_engine(const detail::MovementPlan& plan, const CollectiveCall& choice);
  /// Copies directly to symmetric destinations.
  void copy_by_engine(const detail::MovementPlan& plan, Stream& stream);
  void start_at(const CollectiveOptions& options);
};

}  // namespace beeline
