// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The world: all ranks, their memory, and what each rank's programs and kernels need to communicate.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "beeline/device/wait.hpp"
#include "beeline/host/team.hpp"
#include "beeline/memory/address_map.hpp"
#include "beeline/memory/registered_memory.hpp"
#include "beeline/memory/segment.hpp"
#include "beeline/runtime/device.hpp"
#include "beeline/runtime/health.hpp"
#include "beeline/transport/stream.hpp"

namespace beeline {

class Bootstrap;

/// One rank's view of the world, the first team. Functions marked *collective*, a team's included, are called by every
/// rank, in the same order; all others by any rank, from any thread. Every wait ends by `config().deadline_ns` with an
/// `Error`. Calls that take a `Timeout` may end before, with `Status::timeout`, which harms nothing (GASPI's time-out;
/// zero looks once); calls that set up take none, since a rank cannot tell how far other ranks have come.
class World final : public Team {
 public:
  /// Collective. Joins the world that the environment describes (a world of one where it describes none).
  [[nodiscard]] static std::unique_ptr<World> create(const Config& config = Config::from_environment());
  /// Collective. As above over an existing bootstrap: one for each rank, also for ranks that are threads.
  [[nodiscard]] static std::unique_ptr<World> create(const Config& config, std::unique_ptr<Bootstrap> bootstrap);
  /// Collective: leaves, if `leave` was not called and nothing has failed; what goes wrong is logged.
  ~World() override;
  /// Collective. Waits for the default stream, then until every rank leaves, since others may still read this rank's
  /// memory (up to `config().stream_deadline_ns`); nothing but the destructor may follow. `run` calls it. Throws what
  /// went wrong in the stream, invalid_argument when another rank is in some other collective function.
  void leave();

  [[nodiscard]] const Device& device() const;          ///< this rank's
  [[nodiscard]] const Device& device(int rank) const;  ///< any rank's (its index is meaningful on its process only)
  /// Whether ranks of both kinds take part: see `Context::kind_of`, and access.hpp for which rank may access which
  /// memory.
  [[nodiscard]] bool mixed() const;
  [[nodiscard]] const Config& config() const;
  /// Ranks of this process that share this rank's GPU, this one included; 1 on a host rank.
  [[nodiscard]] int ranks_on_device() const;
  /// Whether global addresses mean the same in every process. Otherwise only (rank, offset) pairs may be exchanged.
  [[nodiscard]] bool global_addresses() const;

  // --- Memory -------------------------------------------------------------------------------------------------

  /// Collective. A segment of which each rank asks for its own kind and size (0: no part).
  [[nodiscard]] const Segment& create_segment(MemoryKind kind, std::size_t bytes);
  /// Collective. Throws invalid_argument for an unknown id, and when ranks destroy different segments.
  void destroy_segment(std::uint32_t id);
  /// Collective. Makes memory that each rank has already, wherever it comes from, known to all: host memory, or what
  /// cudaMalloc gave on the rank's own GPU; sizes may differ, a rank without a part passes nullptr and 0. It stays the
  /// caller's, and must stay where it is until it is deregistered.
  ///   pointer  aligned to 16 bytes, outside the world's memory, registered once
  /// Each part says how this rank reaches it: parts of ranks that are threads of this process by their address, GPU
  /// memory of other processes by an address here (CUDA IPC), host memory of other processes by `copy` only.
  /// Throws the same on all ranks, naming the rank at fault: invalid_argument (no memory there, not aligned, registered
  /// already, no bytes, the world's own), no_resource (more than 256 parts with an address here).
  [[nodiscard]] const RegisteredMemory& register_memory(void* pointer, std::size_t bytes);
  /// Collective. No rank may be copying to or from it; from then on its owners may free it.
  void deregister_memory(std::uint32_t id);
  /// Rank whose memory `address` is (a chunk of a `DistributedArray`, or a registered part, included), or -1.
  [[nodiscard]] int owner_of(const void* address) const;
  /// The same question for kernels: this by value.
  [[nodiscard]] AddressMap address_map() const;

  // --- Moving data from the host --------------------------------------------------------------------------------

  /// Copies between any two addresses, on `stream` (asynchronous, in its order) or blocking without one: then in no
  /// order with any stream, so `synchronize` first where a kernel made the data. Any thread, any device: host ranks
  /// reach GPU memory with a GPU that their process sees. A range onto itself is no work. Throws unreachable where the
  /// process sees no GPU, and invalid_argument where the two overlap otherwise.
  void copy(void* destination, const void* source, std::size_t bytes);
  void copy(void* destination, const void* source, std::size_t bytes, Stream& stream);
  /// Copies to or from registered memory by rank and offset, over the best path that there is; blocking, as `copy`.
  /// Throws invalid_argument (not registered, outside the part), unreachable (the part says why), peer_died.
  void copy(const RegisteredPlace& destination, const void* source, std::size_t bytes);
  void copy(void* destination, const RegisteredPlace& source, std::size_t bytes);
  /// This rank's default stream.
  [[nodiscard]] Stream& stream();
  /// Another stream of this rank.
  [[nodiscard]] std::unique_ptr<Stream> make_stream(StreamPriority priority = StreamPriority::normal);
  /// A stream that other code made, as one of this rank's: `native` is a cudaStream_t of its GPU (nullptr: the
  /// legacy default stream). It is not destroyed with the result, which is to be destroyed before it, after its work.
  /// Throws unavailable on a host rank, invalid_argument for another GPU's stream.
  [[nodiscard]] std::unique_ptr<Stream> adopt_stream(void* native);
  /// Blocks until `stream`'s work is over. Throws what went wrong in it, a kernel's failed wait included: the failure
  /// of each team whose kernels `launch` has put on it, or on a stream whose event it waits for, or of any team of this
  /// rank where `launch` never did. At the deadline names the rank, and dumps every pending wait of the team.
  void synchronize(Stream& stream) { static_cast<void>(synchronize(stream, Timeout::none())); }
  void synchronize() { synchronize(stream()); }
  /// The same up to the call's own limit: then `timeout`, the work goes on, and a later call finds it.
  [[nodiscard]] Status synchronize(Stream& stream, Timeout timeout);
  [[nodiscard]] Status synchronize(Timeout timeout) { return synchronize(stream(), timeout); }
  /// Blocks until `event` is done. Throws the failures of the world and of teams whose kernels come before the event.
  void synchronize(Event& event) { static_cast<void>(synchronize(event, Timeout::none())); }
  [[nodiscard]] Status synchronize(Event& event, Timeout timeout);

  // --- Working together -----------------------------------------------------------------------------------------

  /// Collective. Each rank passes the team it is to belong to (world ranks, ascending, itself among them), or none, and
  /// then gets nullptr. Several teams may be made at once if no rank is in two of them.
  /// Throws invalid_argument when members disagree, peer_died when one has failed or left, no_resource beyond
  /// `max_teams` (ids of teams whose members failed are not used again).
  [[nodiscard]] std::unique_ptr<Team> make_team(const std::vector<int>& ranks);

  // --- Failure --------------------------------------------------------------------------------------------------

  /// Ends every wait of the world: this rank gives up, and counts as failed. Waits in kernels end with `aborted`; host
  /// functions throw aborted or peer_died, with this rank's number and the first line of `reason`.
  void abort(const std::string& reason);
  /// Each rank's state as this rank sees it, by rank. Does not block.
  /// Source: GASPI's error vector (seed 000, section 3.4).
  [[nodiscard]] std::vector<RankHealth> health() const;
  /// Collective over the ranks that have neither failed nor left, after a failure or a deadline: they agree on which
  /// ranks are left, clear the world's abort, and go on without the rest. Returns their team, in world order, until the
  /// next call; its context is for kernels. From then on all collective functions are called by these ranks alone.
  /// Memory that is allocated stays, parts of lost ranks too; channels with transfers under way are to be made anew.
  /// The work of this rank's other streams is over (`synchronize`) when it calls. A rank that does not call by the
  /// deadline counts as failed. Throws aborted when this rank counts as failed itself, peer_died when the launcher
  /// ended.
  Team& survivors();
  /// Throws if the world or one of this rank's teams is aborted, or one of their waits has failed: names operation,
  /// rank, peer, sequence, expected and observed value, and lists the waits of the other ranks.
  void check();
  /// Throws what a collective function would before it touches anything: what `check` throws of the world, or
  /// invalid_argument while a barrier that timed out has not been called to its end.
  void check_collective();
  /// Every failed wait recorded so far, on all ranks.
  [[nodiscard]] std::vector<WaitRecord> failed_waits() const;

  /// Internal state, for the other host headers.
  class Implementation;
  [[nodiscard]] Implementation& implementation() { return *implementation_; }
  [[nodiscard]] const Implementation& implementation() const { return *implementation_; }

 private:
  explicit World(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace beeline
