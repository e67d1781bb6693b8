// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a `Collectives` object holds, for the files that implement its calls.

#include <cstddef>
#include <optional>
#include <string>

#include "beeline/collectives/impl/movement_plan.hpp"
#include "beeline/host/collectives.hpp"
#include "beeline/host/launch_options.hpp"
#include "host/collectives/copy_engine.hpp"
#include "host/collectives/launchers.hpp"

namespace beeline {

namespace detail {

/// Where the parts of a channel's memory begin.
struct ChannelLayout {
  std::size_t arrived, finished, packets, lines, vectors, staging, tables, bytes;
  std::uint32_t area_lines;  ///< 0 where these ranks exchange none
  std::size_t vector_bytes;  ///< 0 but between CPUs
};

/// Whether a rank of the world runs on CPU threads.
[[nodiscard]] bool any_host_rank(const World& world);

/// Throws invalid_argument for blocks of copy engines, which have none.
void refuse_blocks(const CollectiveCall& call);

}  // namespace detail

class Collectives::Implementation {
 public:
  /// Collective.
  Implementation(Team& team, const CollectiveOptions& options);

  [[nodiscard]] const Context& context() const { return team.context(); }
  /// For a waiting kernel of `blocks` blocks. Throws invalid_argument for more than there are sessions.
  ///   operation  that it is a call of, named in errors
  [[nodiscard]] LaunchOptions launch_options(CollectiveOperation operation, unsigned blocks, Stream* stream) const;

  /// Throws unavailable where the members exchange no packets of 128 bytes.
  void require_lines(Algorithm algorithm) const;
  [[nodiscard]] std::uint32_t checked_root(int root) const;
  /// Checks the choice, and makes the call where there is anything to move.
  void move(const detail::MovementPlan& plan, const CollectiveCall& choice);
  /// Whether `automatic` takes copy engines for large vectors.
  [[nodiscard]] bool takes_engines() const;
  /// All-reduce by copy engines.
  void run_engine(detail::EngineCall call);

  /// Leaves a note for `last_transfer`.
  void note(Transfer transfer) { noted = transfer; }
  /// The first session, which has part of every call, leaves the note itself (`Session::note`).
  void note_by_sessions() { noted.reset(); }

  /// The same for a call that moves data.
  void note_movement(const CollectiveCall& choice);

  /// Makes a reduction by name.
  void reduce(const detail::NamedReductionCall& call, ElementType type, const CollectiveCall& how);

  Team& team;
  World& world;
  const std::string no_lines_reason;  ///< why the members exchange no packets of 128 bytes
  detail::ChannelLayout layout;
  SymmetricArray<std::byte> memory;
  CollectiveChannel channel;
  std::optional<SymmetricArray<std::byte>> engine_scratch;  ///< nothing: the channel's staging
  std::unique_ptr<detail::CopyEngines> engine;              ///< made when it is first asked for
  /// For copies within this rank's memory beside those on the caller's stream.
  struct StreamBeside {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> begun, ended;
  };
  std::unique_ptr<StreamBeside> beside;  ///< made when it is first asked for
  std::optional<Transfer> noted = Transfer::none;
  std::size_t* tables;  ///< [sessions, 4, max_ranks] counts and offsets that a kernel's blocks work by

 private:
  void make_engine_scratch(std::optional<std::size_t> asked);
  /// Memory that copy engines may use: their own, or the channel's staging.
  [[nodiscard]] std::span<std::byte> scratch() const;
  void make_engine();
  void make_stream_beside();
  void move_by_engine(const detail::MovementPlan& plan, const CollectiveCall& choice);
  /// To destinations at the same place of all members' heaps.
  void copy_by_engine(const detail::MovementPlan& plan, const CallSignature& call, Stream& stream);
  void start_at(const CollectiveOptions& options);
};

}  // namespace beeline
