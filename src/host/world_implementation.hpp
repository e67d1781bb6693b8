// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The implementation of World: parts with one concern each (src/host/world), and functions that use several parts.

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "beeline/host/team.hpp"
#include "beeline/host/world.hpp"
#include "core/fork.hpp"
#include "host/named_bootstrap.hpp"
#include "host/world/contexts.hpp"
#include "host/world/engines.hpp"
#include "host/world/failures.hpp"
#include "host/world/grids.hpp"
#include "host/world/launches.hpp"
#include "host/world/meetings.hpp"
#include "host/world/membership.hpp"
#include "host/world/memory_map.hpp"
#include "host/world/own_process.hpp"
#include "host/world/routes.hpp"
#include "host/world/streams.hpp"
#include "host/world/teams.hpp"

namespace beeline {

class World::Implementation {
 public:
  Implementation(const Config& config, std::unique_ptr<Bootstrap> bootstrap);
  ~Implementation();

  // The parts. The engines' threads use the parts declared before the engines.
  Config config;
  std::unique_ptr<NamedBootstrap> bootstrap;
  const OwnProcess process;
  std::unique_ptr<Membership> membership;
  std::unique_ptr<Teams> teams;
  std::unique_ptr<MemoryMap> memory;
  std::unique_ptr<Routes> routes;
  std::unique_ptr<Meetings> meetings;
  std::unique_ptr<Failures> failures;
  std::unique_ptr<Contexts> contexts;
  std::unique_ptr<Engines> engines;
  std::unique_ptr<Launches> launches;
  std::unique_ptr<Grids> grids;
  std::unique_ptr<Streams> streams;
  World* world = nullptr;                ///< the world of this object, once it is made
  std::unique_ptr<Team> survivors;       ///< the last result of World::survivors
  std::atomic<bool> has_left{false};     ///< read by the engine's thread
  std::atomic<bool> is_left_out{false};  ///< this rank is not among the survivors

  [[nodiscard]] int rank() const { return membership->rank(); }

  // --- Collective calls -----------------------------------------------------------------------------------------

  /// Collective. Calls `meet`, in which all ranks exchange bytes, and returns its result. If `meet` fails at its
  /// deadline, aborts the world and throws an error that names the members in other calls.
  ///   call  the collective call, named in errors
  template <class Meet>
  decltype(auto) meet_in(const char* call, const Meet& meet) {
    begin_collective(call);
    Meetings::Call meeting(*meetings, call);
    try {
      return meet();
    } catch (const Error& error) {
      meeting.fail();
      if (meeting.was_aborted())
        failures->fail(Status::aborted, Teams::world_id, std::string("this rank was in ") + call);
      if (error.code() == Status::deadline || error.code() == Status::peer_died)
        failures->fail_meeting(call, error, contexts->barrier());
      throw;
    }
  }
  /// Collective. The bytes of all ranks, by rank. Throws invalid_argument if ranks are in different calls.
  ///   call  the collective call, named in errors
  [[nodiscard]] std::vector<std::vector<std::byte>> exchange(const char* call, std::span<const std::byte> mine,
                                                             std::int64_t wait_ns);
  [[nodiscard]] std::vector<std::vector<std::byte>> exchange(const char* call, std::span<const std::byte> mine) {
    return exchange(call, mine, config.deadline_ns);
  }
  /// The barrier of the world or of a team, by its host context. Returns ok or timeout.
  [[nodiscard]] Status barrier(const Context& among, Timeout timeout);
  /// Collective, after a barrier. Copies the cell that each member has at the place of `own` in its host area's header
  /// to `all`, by rank. The first member of each node collects the cells of its node, so that a member reads only once
  /// from each node. The caller's next barrier protects the cells.
  void collect_cells(const Context& among, std::span<const std::byte> own, std::byte* all);
  /// Throws if the team has failed, or if a barrier that timed out was not repeated until its completion: another
  /// call's barrier would be taken for it.
  void begin_collective(const Context& among);
  /// As above, for a function of the whole world in which ranks exchange bytes.
  void begin_collective(const char* call);
  /// Waits until all commands posted to the engine, by kernels or CPU threads, are complete.
  Status drain_engine(const Context& among, Timeout timeout);

  // --- Waits of CPU threads for devices -------------------------------------------------------------------------

  /// Polls `over()` up to `deadline_ns`, or until a team in `watched` is aborted; then throws an error that names
  /// `what`. Before that, it aborts `watched` (at the deadline), and ends the waits for signals of the default stream
  /// and of `awaited` (if any). The error of a fault of this rank's GPU names all ranks that end with it.
  ///   timeout  the caller's own limit: at it the function returns `timeout` and has no effect; otherwise it returns ok
  Status await(const char* what, std::int64_t deadline_ns, const std::function<bool()>& over, TeamSet watched,
               Stream* awaited = nullptr, Timeout timeout = Timeout::none());
  /// Waits until earlier work of a stream has ended, even if something fails.
  void await_work(const char* what, Stream& stream, std::int64_t deadline_ns);
  /// Waits until the default stream has no work, even if something fails: its work may use memory that is to be freed.
  void await_default_stream();
  /// Throws the refusals by this rank's engine that no error has reported yet.
  void check_refusals();

  // --- Memory ---------------------------------------------------------------------------------------------------

  /// Fills device or host memory with zeros, and waits for completion.
  void zero(void* address, std::size_t bytes);
  /// Writes to device or host memory, and waits for completion.
  void write(void* destination, const void* source, std::size_t bytes);
  /// Reads memory of any rank; of ranks on other nodes through the engine.
  void read_from(int other, void* to, const void* at, std::size_t bytes);
  /// Copies the address book to this rank's kernels.
  void publish_addresses();
  /// How to copy to or from a place in registered memory; throws if its owner has failed.
  [[nodiscard]] Registration::Address reach(const RegisteredPlace& place, std::size_t bytes) const;

  // --- Teams ----------------------------------------------------------------------------------------------------

  /// Resets the state of the team `id` of `ranks`, before any member enters its first barrier.
  void open_team(std::uint32_t id, const std::vector<int>& ranks);
  void close_team(std::uint32_t id);
  /// Returns the healthy ranks that are all connected: of two ranks that have lost their connection, the higher one is
  /// left out. Collective over the healthy ranks. Throws unreachable on a rank that is left out.
  [[nodiscard]] std::vector<int> agree_on_connected(std::int64_t deadline_ns);
  /// Continues the world among the ranks `left`, after a failure. Collective over them.
  void regroup(const std::vector<int>& left);

 private:
  [[nodiscard]] EngineClient engine_client();
  void make_engine(std::uint64_t secret);
  [[nodiscard]] std::unique_ptr<Engine> make_network(std::uint64_t secret);
  /// Returns a function that says whether an address of the range is GPU memory.
  [[nodiscard]] std::function<bool(const void*)> is_gpu_memory() const;
  void make_failures();
  void make_streams();
  void serve_engine();
  /// In a forked child: refuses operations, and ends waits.
  void seal_in_child();
  /// Whether this rank's kernels see the abort words; if not, stores them, and later calls return whether that is over.
  ///   stored  behind the store; nullptr: it has not begun
  [[nodiscard]] bool kernels_see_abort(std::shared_ptr<Event>& stored);
  /// Records the loss of the connection to a peer and aborts the teams shared with it.
  void lose(int peer, const std::string& reason);
  /// Reads published data of a rank on another node; false without an answer within a second.
  [[nodiscard]] bool read_soon(int other, void* to, const void* at, std::size_t bytes);
  /// A copy whose source or destination only the engine reaches. Returns after its completion.
  void copy_by_engine(void* destination, const void* source, std::size_t bytes);
  void require_not_refused() const;
  /// The barrier of a team with members on other nodes; does not throw.
  [[nodiscard]] Status barrier_across_nodes(const Context& among, Timeout timeout);
  Status poll_until_over(const char* what, std::int64_t deadline_ns, const std::function<bool()>& over, TeamSet watched,
                         Stream* awaited, Timeout timeout);
  /// Records that streams did not end, and aborts the teams in `watched` (the world, if it is empty).
  ///   kernel  the last kernel on the awaited stream; 0: unknown
  void give_up_streams(TeamSet watched, std::uint64_t waited_ns, std::uint16_t kernel);
  /// Throws if this rank's GPU has a fault.
  void check_gpu() const;
  /// Leaves this rank out of the survivors, since it is not connected with `kept`. Throws unreachable.
  [[noreturn]] void leave_out(int kept);
  [[nodiscard]] std::uint32_t agree_on_free_id();
  std::optional<detail::ForkHandler> fork_handler_;
};

}  // namespace beeline
