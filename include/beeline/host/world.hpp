// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The world: all ranks, their memory, streams and teams, and what happens when a rank fails.

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

namespace detail {

/// Version of the headers with which a program that makes a world was compiled.
inline constexpr Version world_headers =
    version_of({sizeof(Config), sizeof(Context), sizeof(Team), sizeof(ControlBlock), sizeof(TeamSync),
                sizeof(CommandRing), sizeof(CommandTickets), sizeof(MemberRoute), sizeof(AddressMap), sizeof(Device),
                sizeof(SegmentPart), sizeof(RegisteredPart), operations, element_types, reductions});

}  // namespace detail

/// One rank's view of the world, the first team. All ranks call the functions marked *collective*, also those of
/// `Team`, in the same order; any rank may call the other functions, from any thread. Every wait ends by
/// `config().deadline_ns` with an `Error`. Calls that take a `Timeout` may end earlier, with `Status::timeout`, and are
/// then continued by the same call (GASPI's time-out; with zero they poll once). Calls for set-up take no `Timeout`,
/// since a rank cannot know the progress of other ranks.
///
/// A process that a rank forks has no part in the world: there the calls throw invalid_argument, operations by CPU
/// threads are refused with the same status, waits end at once, and destructors do nothing. The child has its own copy
/// of the ranks' host memory, as of all memory: its stores to the copy reach no rank. The child may make a world of its
/// own. Objects that outlive their world do nothing in their destructors.
class World final : public Team {
 public:
  /// Collective. Joins the world that the environment describes, or makes a world of one rank if it describes none.
  /// Throws unavailable if headers and library differ in version.
  [[nodiscard]] static std::unique_ptr<World> create(const Config& config = Config::from_environment(),
                                                     Version headers = detail::world_headers);
  /// Collective. Joins a world over an existing bootstrap. Each rank has a bootstrap of its own, also if ranks are
  /// threads.
  [[nodiscard]] static std::unique_ptr<World> create(const Config& config, std::unique_ptr<Bootstrap> bootstrap,
                                                     Version headers = detail::world_headers);
  /// Collective: leaves the world, if `leave` was not called and nothing has failed. Errors are logged.
  ~World() override;
  /// Collective. Waits for the default stream, then until every rank leaves, since other ranks may still read this
  /// rank's memory; waits for at most `config().stream_deadline_ns`. Afterwards only the destructor may be called.
  /// `run` calls `leave`. Throws errors of the stream; invalid_argument if another rank is in a different collective
  /// function.
  void leave();

  [[nodiscard]] const Device& device() const;          ///< the device of this rank
  [[nodiscard]] const Device& device(int rank) const;  ///< the device of any rank (its index is meaningful in that
                                                       ///< rank's process only)
  /// Number of the node that a rank is on: nodes are numbered from 0 on, in the order of their first ranks. Throws
  /// invalid_argument outside the world.
  [[nodiscard]] int node(int rank) const;
  /// Whether the world has both GPU ranks and host ranks: see `Context::kind_of`; access.hpp says which rank may access
  /// which memory.
  [[nodiscard]] bool mixed() const;
  [[nodiscard]] const Config& config() const;
  /// Ranks that share this rank's GPU, this one included; 1 on a host rank.
  [[nodiscard]] int ranks_on_device() const;
  /// Whether the address range has the same address in every process. If not, exchange (rank, offset) pairs in place of
  /// addresses.
  [[nodiscard]] bool global_addresses() const;

  // --- Memory -------------------------------------------------------------------------------------------------

  /// Collective. Makes a segment. Each rank passes the kind and the size of its own part (0: no part).
  [[nodiscard]] const Segment& create_segment(MemoryKind kind, std::size_t bytes);
  /// Collective. Throws invalid_argument for an unknown id, and when ranks destroy different segments.
  void destroy_segment(std::uint32_t id);
  /// Collective. Registers existing memory of each rank with all ranks: host memory, or memory from cudaMalloc on the
  /// rank's own GPU. Sizes may differ; a rank without a part passes nullptr and 0. The caller still owns the memory,
  /// and must not free it before it is deregistered.
  ///   pointer  aligned to 16 bytes, outside the world's memory, registered once
  /// The result says how this rank reaches each part: parts of ranks in this process by their address, GPU memory of
  /// other processes by an address in this process (CUDA IPC), host memory of other processes by `copy` only, parts on
  /// other nodes by `copy`, and by put, get, signal and atomics on `RegisteredMemory::alias` (host memory of a GPU rank
  /// if it is pinned). Throws
  /// the same error on all ranks, which names the rank at fault: invalid_argument (no memory at the address, not
  /// aligned, already registered, no rank has bytes, or the world's own memory), no_resource (more than 256 parts with
  /// an address in this process).
  [[nodiscard]] const RegisteredMemory& register_memory(void* pointer, std::size_t bytes);
  /// Collective. No rank may still copy to or from the memory. Afterwards its owners may free it.
  void deregister_memory(std::uint32_t id);
  /// The address in this rank's slot by which operations of kernels and CPU threads name memory of another rank,
  /// together with that rank's number. For segments, of which ranks may have parts of different sizes or none, and for
  /// the chunks of a `DistributedArray` that ranks on other nodes own (only these chunks: plain loads and stores reach
  /// the chunks of the own node). Throws invalid_argument for other addresses.
  [[nodiscard]] void* symmetric_address(const void* address) const;
  /// Rank that owns the memory at `address`, chunks of a `DistributedArray` and registered parts included; -1 if none
  /// does.
  [[nodiscard]] int owner_of(const void* address) const;
  /// A map by which kernels find the owner of an address; pass it by value.
  [[nodiscard]] AddressMap address_map() const;

  // --- Moving data from the host --------------------------------------------------------------------------------

  /// Copies between any two addresses. With `stream` the copy is asynchronous, in the stream's order. Without `stream`
  /// the call blocks, and has no order with any stream: `synchronize` first if a kernel writes the data. Any thread may
  /// call it, for any device: host ranks reach GPU memory through a GPU that their process sees. A copy of a range onto
  /// itself does nothing. Throws unreachable for GPU memory that no GPU of this process reaches, invalid_argument if
  /// the ranges overlap otherwise, or if a range extends beyond the end of the heap, or of the part of a segment, in
  /// which it begins.
  void copy(void* destination, const void* source, std::size_t bytes);
  void copy(void* destination, const void* source, std::size_t bytes, Stream& stream);
  /// Copies to or from registered memory, given by rank and offset, over the best available path. Blocks. Throws
  /// invalid_argument (not registered, or outside the part), unreachable (the `RegisteredPart` gives the reason),
  /// peer_died.
  void copy(const RegisteredPlace& destination, const void* source, std::size_t bytes);
  void copy(void* destination, const RegisteredPlace& source, std::size_t bytes);
  /// This rank's default stream.
  [[nodiscard]] Stream& stream();
  /// Another stream of this rank. The end of the world waits for the stream's work; from then on the stream's functions
  /// throw invalid_argument, and its destructor does nothing.
  [[nodiscard]] std::unique_ptr<Stream> make_stream(StreamPriority priority = StreamPriority::normal);
  /// Wraps a stream that other code has made: `native` is a cudaStream_t of this rank's GPU (nullptr: the legacy
  /// default stream). Destroying the result does not destroy `native`. Destroy the result after the stream's work has
  /// ended, and before `native`. Throws unavailable on a host rank, invalid_argument for another GPU's stream.
  [[nodiscard]] std::unique_ptr<Stream> adopt_stream(void* native);
  /// Blocks until the work of `stream` has ended. Throws the stream's errors and failed waits of kernels. Failures are
  /// those of each team whose kernels `launch` has put on this stream, or on a stream for whose event this stream
  /// waits; if `launch` has put no kernel there, those of all teams of this rank. At the deadline, the error names the
  /// rank and lists every pending wait of the team.
  void synchronize(Stream& stream) { static_cast<void>(synchronize(stream, Timeout::none())); }
  void synchronize() { synchronize(stream()); }
  /// As above, with the call's own limit. After `timeout` the work goes on, and a later call can wait for it.
  [[nodiscard]] Status synchronize(Stream& stream, Timeout timeout);
  [[nodiscard]] Status synchronize(Timeout timeout) { return synchronize(stream(), timeout); }
  /// Blocks until `event` is done. Throws failures of the world, and of teams whose kernels precede the event.
  void synchronize(Event& event) { static_cast<void>(synchronize(event, Timeout::none())); }
  [[nodiscard]] Status synchronize(Event& event, Timeout timeout);

  // --- Working together -----------------------------------------------------------------------------------------

  /// Collective over the world. Each rank passes the ranks of its new team (world ranks, ascending, its own included).
  /// A rank that passes no ranks gets nullptr. One call may make several teams if no rank is in two of them. Throws
  /// invalid_argument if members disagree, peer_died if a member has failed or left, no_resource beyond `max_teams`
  /// (ids of teams with failed members are not reused).
  [[nodiscard]] std::unique_ptr<Team> make_team(const std::vector<int>& ranks);

  // --- Failure --------------------------------------------------------------------------------------------------

  /// Aborts the world: this rank counts as failed, and every wait ends. Waits in kernels return `aborted`; host
  /// functions throw aborted or peer_died, with this rank's number and the first line of `reason`.
  void abort(const std::string& reason);
  /// The state of each rank as known to this rank, in the order of ranks. Does not block.
  /// Source: GASPI's error vector (seed 000, section 3.4).
  [[nodiscard]] std::vector<RankHealth> health() const;
  /// After a failure or a deadline, collective over the ranks that have neither failed nor left. These ranks agree on
  /// the remaining ranks, clear the world's abort, and go on without the lost ranks. Returns the remaining ranks' team,
  /// in world order, which is valid until the next call; kernels use its context. From then on only the remaining ranks
  /// call collective functions. Allocated memory stays, with the parts of lost ranks; channels with transfers in flight
  /// must be made again. Waits first for the work of this rank's streams, and discards the errors of that work. Throws
  /// aborted if this rank itself counts as failed, peer_died if the launcher has ended.
  ///   deadline_ns  a rank that does not call within this time counts as failed; 0: `config().deadline_ns`. Ranks get
  ///                the error of a failure up to 1 s after each other, since ranks with puts in flight wait until their
  ///                sources are no longer read
  Team& survivors(std::int64_t deadline_ns = 0);
  /// Throws if the world or a team of this rank is aborted, or if a wait of the world or of such a team has failed: the
  /// error names operation, rank, peer, sequence, expected and observed value, and lists the waits of the other ranks.
  void check();
  /// Throws the errors that a collective function throws before it touches anything: the errors of `check` for the
  /// world, and invalid_argument if a barrier that timed out has not been completed.
  void check_collective();
  /// All failed waits that are recorded, on all ranks.
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
