// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a World consists of: parts with one concern each (src/host/world), and the calls that take several of them.

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

  // The parts; the engines' threads use those before them.
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
  World* world = nullptr;                ///< whose it is, once that is made
  std::unique_ptr<Team> survivors;       ///< what World::survivors returned last
  std::atomic<bool> has_left{false};     ///< the engine's thread asks
  std::atomic<bool> is_left_out{false};  ///< of the survivors

  [[nodiscard]] int rank() const { return membership->rank(); }

  // --- Collective calls -----------------------------------------------------------------------------------------

  /// Collective. What `meet` returns, in which all ranks exchange bytes. A deadline of it aborts the world, and its
  /// error names the members that are in other calls.
  ///   call  that ranks meet in, named in errors
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
  /// Collective. Everyone's bytes, by rank. Throws invalid_argument where ranks are in different calls.
  ///   call  that ranks meet in, named in errors
  [[nodiscard]] std::vector<std::vector<std::byte>> exchange(const char* call, std::span<const std::byte> mine,
                                                             std::int64_t wait_ns);
  [[nodiscard]] std::vector<std::vector<std::byte>> exchange(const char* call, std::span<const std::byte> mine) {
    return exchange(call, mine, config.deadline_ns);
  }
  /// The barrier of the world or of a team, by its host context. Returns ok or timeout.
  [[nodiscard]] Status barrier(const Context& among, Timeout timeout);
  /// Collective. [members] What each has written into its cell of that number. The first on each node collects those of
  /// the others, so that a member reads once from each node.
  [[nodiscard]] std::vector<ScalarCell> scalars_by_node(const Context& among, std::uint64_t number);
  /// Throws where the team has failed, or a barrier that timed out has not been called to its end: that of another call
  /// would be taken for it.
  void begin_collective(const Context& among);
  /// The same for a function of the whole world, in which ranks exchange bytes.
  void begin_collective(const char* call);
  /// Waits until all that was posted to the engine, by kernels or CPU threads, is in place.
  Status drain_engine(const Context& among, Timeout timeout);

  // --- Waits of CPU threads for devices -------------------------------------------------------------------------

  /// Polls `over()` up to `deadline_ns`, or until one of `watched` is aborted; throws naming `what`. Then the default
  /// stream and `awaited` (if any) give up their waits for signals, and at the deadline `watched` is aborted. A fault
  /// of this rank's GPU names all ranks that end with it.
  ///   timeout  the caller's own limit: then `timeout`, and nothing has happened; otherwise ok
  Status await(const char* what, std::int64_t deadline_ns, const std::function<bool()>& over, std::uint32_t watched,
               Stream* awaited = nullptr, Timeout timeout = Timeout::none());
  /// Waits until the work of a stream so far has ended, whatever fails.
  void await_work(const char* what, Stream& stream, std::int64_t deadline_ns);
  /// Waits until the default stream has no work, whatever fails: it may use memory that is to be freed.
  void await_default_stream();
  /// Throws what this rank's engine refused and no error has said yet.
  void check_refusals();

  // --- Memory ---------------------------------------------------------------------------------------------------

  /// Fills device or host memory with zeros, and waits for it.
  void zero(void* address, std::size_t bytes);
  /// Writes to device or host memory, and waits for it.
  void write(void* destination, const void* source, std::size_t bytes);
  /// Reads memory of any rank, on other nodes by the engine.
  void read_from(int other, void* to, const void* at, std::size_t bytes);
  /// Hands the address book to this rank's kernels.
  void publish_addresses();
  /// How to copy to or from a place; throws unless its owner is well.
  [[nodiscard]] Registration::Address reach(const RegisteredPlace& place, std::size_t bytes) const;

  // --- Teams ----------------------------------------------------------------------------------------------------

  /// A clean start for the team `id` of `ranks`, before any member enters its first barrier.
  void open_team(std::uint32_t id, const std::vector<int>& ranks);
  void close_team(std::uint32_t id);
  /// The healthy ranks, among which no connection is broken: of two ranks that have lost theirs, the higher one ends.
  /// Collective over the healthy ranks. Throws unreachable on one that ends.
  [[nodiscard]] std::vector<int> agree_on_connected();
  /// Goes on among `left`, after a failure. Collective over them.
  void regroup(const std::vector<int>& left);

 private:
  [[nodiscard]] EngineClient engine_client();
  void make_engine(std::uint64_t secret);
  [[nodiscard]] std::unique_ptr<Engine> make_network(std::uint64_t secret);
  /// Whether an address of the range is.
  [[nodiscard]] std::function<bool(const void*)> is_gpu_memory() const;
  void make_failures();
  void make_streams();
  void serve_engine();
  /// In a forked child: refuses operations, and ends waits.
  void seal_in_child();
  /// Ends what this rank has in common with one that the network does not reach any more.
  void lose(int peer, const std::string& reason);
  /// Reads what a rank on another node publishes; false if it does not answer within a second.
  [[nodiscard]] bool read_soon(int other, void* to, const void* at, std::size_t bytes);
  /// A copy with an end that only the engine reaches; returns when it is over.
  void copy_by_engine(void* destination, const void* source, std::size_t bytes);
  void require_not_refused() const;
  /// The barrier of a team with members on other nodes; does not throw.
  [[nodiscard]] Status barrier_across_nodes(const Context& among, Timeout timeout);
  Status poll_until_over(const char* what, std::int64_t deadline_ns, const std::function<bool()>& over,
                         std::uint32_t watched, Stream* awaited, Timeout timeout);
  /// Records that streams did not end, and aborts those of `watched` (the world, if it is empty).
  ///   kernel  the last one on the stream that was waited for; 0: unknown
  void give_up_streams(std::uint32_t watched, std::uint64_t waited_ns, std::uint16_t kernel);
  /// Throws if this rank's GPU works no more.
  void check_gpu() const;
  /// Ends this rank for the others, since `kept` and it are not connected. Throws unreachable.
  [[noreturn]] void leave_out(int kept);
  [[nodiscard]] std::uint32_t agree_on_free_id();
  std::optional<detail::ForkHandler> fork_handler_;
};

}  // namespace beeline
