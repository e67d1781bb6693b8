// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a World consists of.

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "beeline/device/impl/host_checks.hpp"
#include "beeline/host/team.hpp"
#include "beeline/host/world.hpp"
#include "beeline/memory/node_memory.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "beeline/runtime/residency.hpp"
#include "beeline/transport/engine.hpp"
#include "control/host_engine.hpp"
#include "core/fork.hpp"
#include "host/address_book.hpp"
#include "host/blocking_streams.hpp"
#include "host/named_bootstrap.hpp"
#include "host/node_map.hpp"
#include "host/world_streams.hpp"
#include "memory/distributed_memory.hpp"
#include "memory/host_buffer.hpp"
#include "memory/registration.hpp"
#include "transport/gpu_reach.hpp"

namespace beeline {

/// Characters of a route's reason, its end included.
inline constexpr std::size_t max_route_reason = 160;
/// Streams of one rank that exist at the same time.
inline constexpr std::uint32_t max_streams = 256;

/// Start of every symmetric heap: state that kernels poll.
struct HeapHeader {
  TeamSync teams[max_teams];
  struct alignas(64) PaddedGridState {
    GridState state;
  } grids[max_streams];
  alignas(64) std::uint32_t wait_claims;
  CommandTickets tickets[command_rings];  ///< of what this rank's kernels post
  /// What this rank's kernels poll: many blocks that polled the words in host memory would queue up at the bus.
  alignas(128) std::uint64_t abort[max_teams];
  alignas(128) AddressTable addresses;
};

/// Cores of a node that are told apart.
inline constexpr std::size_t max_cores = CPU_SETSIZE;

/// What a member says to the others of a team, from one barrier to the next.
struct alignas(64) ExchangeCell {
  std::uint64_t bytes;
  char call[24];  ///< the function that the member is in
  std::byte data[Team::max_gathered_bytes];
};

/// The same for `Team::allreduce`. A member is at most one barrier ahead, so two are used in turn.
struct alignas(64) ScalarCell {
  std::uint64_t number;  ///< of the barrier that follows it, from 1 on
  detail::Scalar value;
};

/// The name of a call, cut, in words that others read while it changes.
struct alignas(64) CallName {
  std::uint64_t words[4];
};

/// Why a rank aborted the world, for the others to read; the first of several causes.
struct AbortCause {
  std::uint64_t complete;  ///< 1 before the abort words are raised
  Status status;           ///< that the others' errors have
  char text[1024];
};

/// Why a rank's engine refused a command, for the others to read; the first of several.
struct RefusedCommand {
  std::uint64_t is_claimed;  ///< 1 from when it is being written
  std::uint64_t complete;    ///< 1 once it is
  char text[512];
};

/// Start of every host area: state that CPU threads poll and that survives for the others to read.
struct HostAreaHeader {
  ControlBlock control;
  TeamSync teams[max_teams];         ///< of barriers by CPU threads
  TeamSync kernel_teams[max_teams];  ///< of barriers by kernels of teams that mix GPUs and CPUs
  ExchangeCell cells[max_teams];
  ScalarCell scalars[max_teams][2];
  std::uint32_t barrier_steps[max_teams];  ///< words that this rank has stored for the barrier that it has entered
  ScalarCell node_scalars[max_teams][max_node_ranks];     ///< of this node's members, where teams have many
  std::uint64_t cores[max_cores / 64];                    ///< those that the process may run on, by bit
  char kernel_names[max_named_kernels][max_kernel_name];  ///< what errors call this rank's kernels, by number - 1
  PaddedWord held_teams[max_teams];                       ///< whether this rank belongs to a team of this id
  CallName meeting;  ///< the collective function of the world that this rank is in, or in which it failed; empty: none
  AbortCause abort_cause;
  RefusedCommand refused_command;
  alignas(64) std::uint32_t wait_claims;
  CommandRing rings[2][command_rings];  ///< posted to by this rank's kernels, and by its CPU threads
  CommandTickets host_tickets[command_rings];
  RouteTable routes[max_teams][2];  ///< for kernels, and for CPU threads
  MemberRoute members[max_teams][max_ranks];
  char route_reasons[max_ranks][max_route_reason];  ///< why a peer is not reached by loads and stores
};

inline constexpr std::size_t allocation_alignment = detail::AllocationMap::unit;
[[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + allocation_alignment - 1) / allocation_alignment * allocation_alignment;
}

/// A rank as the others know it.
struct Member {
  std::uint64_t process = 0;
  Device device;
  int node = 0;           ///< number of its node, from 0 on in the order of ranks
  int host = 0;           ///< number of its host, in the same order: --split-nodes makes several nodes of one
  int reaching_gpu = -1;  ///< host rank beside GPU ranks: the GPU that copies for it; -1: none that its process sees
};

/// Grid states that nothing uses, by index. It outlives the world where graphs still hold others.
struct FreeGrids {
  std::mutex mutex;
  std::vector<std::uint32_t> indices;
};

/// What waiting kernels that were captured from one stream hold of the device, until the last of their graphs is gone.
class GraphBooking {
 public:
  explicit GraphBooking(ResidencyLedger& ledger) : ledger_(ledger) {}
  ~GraphBooking() { ledger_.forget(this); }
  GraphBooking(const GraphBooking&) = delete;
  GraphBooking& operator=(const GraphBooking&) = delete;

 private:
  ResidencyLedger& ledger_;
};

class World::Implementation {
 public:
  Implementation(const Config& config, std::unique_ptr<Bootstrap> bootstrap);
  ~Implementation();

  /// Whether this process was forked from the one that made the world.
  [[nodiscard]] bool is_forked() const { return fork_depth != detail::fork_depth(); }
  /// Throws invalid_argument where it was.
  void require_own_process() const;

  const std::uint32_t fork_depth = detail::fork_depth();
  const pid_t process = ::getpid();
  // Made once, in this order; collective.
  Config config;
  std::unique_ptr<NamedBootstrap> bootstrap;
  int rank, size;
  std::vector<Member> members;
  int ranks_on_device = 1;
  int ranks_on_machine = 1;  ///< which share its cores
  unsigned cores = 1;  ///< that this process may run on, less what other host ranks there have of them; at least one
  std::uint64_t world_secret = 0;      ///< a number that its ranks have in common, and nobody else knows
  std::vector<MemoryMember> routes;    ///< [ranks] to each rank's memory, for copies by devices
  std::vector<PeerRoute> peer_routes;  ///< [ranks]
  std::unique_ptr<NodeMemory> memory;
  std::unique_ptr<DistributedMemory> distributed;
  std::unique_ptr<Registration> registration;
  AddressBook addresses;
  Context host_context{};     ///< the world's
  Context barrier_context{};  ///< of the world's barrier: as host_context, among the ranks that are left
  std::mutex allocation_mutex;
  std::unique_ptr<OffsetAllocator> heap, pinned_heap;         ///< offsets behind the headers
  std::unique_ptr<detail::RepeatedSignals> repeated_signals;  ///< nullptr: signals are not checked
  detail::HostChecks checks;  ///< of calls by CPU threads; of the heaps it has those where these load and store
  std::mutex grid_mutex;
  const std::shared_ptr<FreeGrids> free_grids = std::make_shared<FreeGrids>();
  ResidencyLedger host_ledger;
  std::unique_ptr<GpuReach> gpu_reach;  ///< of a host rank in a world with GPUs
  std::unique_ptr<Stream> stream;       ///< default stream
  std::unique_ptr<Stream> copy_stream;  ///< of blocking copies by a GPU
  WorldStreams handed_streams;          ///< what the program has made or adopted
  BlockingStreams blocking_streams;     ///< of other blocking calls
  World* world = nullptr;               ///< whose it is, once that is made
  std::mutex carry_mutex;
  std::map<const Stream*, HostBuffer> carry_buffers;  ///< by carry_mutex
  std::vector<std::vector<std::byte>> abandoned;      ///< buffers that the engine may still use after a deadline
  std::unique_ptr<Engine> engine;  ///< of peers that loads and stores do not reach; nullptr: there are none
  std::once_flag windows_are_open;
  std::shared_ptr<const GpuWindows> windows;  ///< of engines of command queues; nullptr: none, or none needed yet
  std::unique_ptr<HostEngine> queue_engine;   ///< of command queues; nullptr until the first are made
  std::mutex queue_engine_mutex;              ///< of `queue_engine`
  Refusals device_refusals;                   ///< of the commands of device engines, by ring

  /// The end of a rank, or of the launcher (-1).
  struct RankEnd {
    int rank;
    std::string reason;
  };
  std::mutex failure_mutex;
  std::vector<RankEnd> ends;  ///< in the order in which they became known; guarded by failure_mutex
  mutable std::mutex team_mutex;
  std::map<std::uint32_t, std::vector<int>> teams;  ///< id to world ranks, those this rank belongs to; 0: who is left
  std::map<std::uint32_t, std::vector<int>> former_teams;  ///< those it belonged to last
  std::uint32_t barrier_id = 0;                            ///< the team id whose state the world's barrier uses
  /// Ids that are not used again, by bit: a member of their teams has ended, and may yet have stored into their state.
  std::uint32_t retired_ids = 0;
  std::atomic<std::uint32_t> captured_teams{0};  ///< of kernels in graphs, which run on whatever stream
  /// What was captured from a stream last.
  struct Captured {
    std::uint64_t capture = 0;
    std::weak_ptr<GridState> grid;
    std::weak_ptr<GraphBooking> booking;
  };
  std::map<const void*, Captured> captured;  ///< by stream (its grid state); by grid_mutex
  std::unique_ptr<Team> survivors;           ///< what World::survivors returned last
  std::mutex kernel_mutex;
  std::array<std::atomic<bool>, max_named_kernels> shown_kernels{};  ///< those whose name the others can read

  /// Whether a rank is on this one's node, whose memory is mapped here.
  [[nodiscard]] bool is_near(int other) const {
    return members[static_cast<std::size_t>(other)].node == members[static_cast<std::size_t>(rank)].node;
  }
  /// Whether the world has ranks on other nodes.
  [[nodiscard]] bool spans_nodes() const {
    return std::any_of(members.begin(), members.end(), [](const Member& member) { return member.node != 0; });
  }
  /// Whether the team has.
  [[nodiscard]] bool spans_nodes(const Team& team) const;
  /// Ranks of the world on this rank's node.
  [[nodiscard]] std::vector<int> near_ranks() const;
  /// Why loads and stores do not reach a peer, for refusals.
  [[nodiscard]] std::string why_not_direct(int peer) const;
  /// Throws unavailable where the team has members on other nodes: `what` needs memory that all of them share.
  void require_one_node(const Team& team, const char* what) const;
  /// Reads memory of any rank, on other nodes by the engine.
  void read_from(int other, void* to, const void* at, std::size_t bytes);
  /// Waits until all that was posted to the engine, by kernels or CPU threads, is in place.
  Status drain_engine(const Context& among, Timeout timeout);
  /// Whether some of `ranks` have GPUs and others do not.
  [[nodiscard]] bool mixes_kinds(const std::vector<int>& ranks) const;
  [[nodiscard]] bool has_gpus() const;  ///< of any rank
  /// Whether this rank's copies may have an end in GPU memory.
  [[nodiscard]] bool reaches_gpus() const { return device().is_gpu() || gpu_reach != nullptr; }
  [[nodiscard]] const Device& device() const { return members[static_cast<std::size_t>(rank)].device; }
  [[nodiscard]] HeapHeader* heap_header(int of) const { return reinterpret_cast<HeapHeader*>(memory->heap(of)); }
  [[nodiscard]] HostAreaHeader* host_header(int of) const {
    return reinterpret_cast<HostAreaHeader*>(memory->host_area(of));
  }
  [[nodiscard]] std::byte* heap_start(int of) const { return memory->heap(of) + aligned(sizeof(HeapHeader)); }
  [[nodiscard]] std::byte* pinned_start(int of) const {
    return memory->host_area(of) + aligned(sizeof(HostAreaHeader));
  }
  /// A call in which all ranks meet. It shows the call to the others, and ends the wait for them once the world is
  /// aborted: the ranks that abort it do not come.
  class Meeting final : detail::WaitInterrupt {
   public:
    Meeting(Implementation& world, const char* call);
    ~Meeting();
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;
    /// Leaves the call's name where the others read it.
    void fail() { has_failed_ = true; }
    [[nodiscard]] bool was_aborted() const { return was_aborted_; }

   private:
    bool ends_wait(std::uint64_t now_ns) noexcept override;
    Implementation& world_;
    detail::WaitInterrupt* const outer_;
    bool has_failed_ = false, was_aborted_ = false;
  };
  /// Collective. What `meet` returns, in which all ranks exchange bytes. A deadline of it aborts the world, and its
  /// error names those who are elsewhere.
  ///   call  that ranks meet in, named in errors
  template <class Meet>
  decltype(auto) meet_in(const char* call, const Meet& meet) {
    begin_collective(call);
    Meeting meeting(*this, call);
    try {
      return meet();
    } catch (const Error& error) {
      meeting.fail();
      if (meeting.was_aborted()) fail(Status::aborted, world_id, std::string("this rank was in ") + call);
      if (error.code() == Status::deadline || error.code() == Status::peer_died) fail_meeting(call, error);
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
  /// The same among the members of a team; of others than the world `Team::max_gathered_bytes` at most.
  [[nodiscard]] std::vector<std::vector<std::byte>> allgather_in(Team& team, const char* call,
                                                                 std::span<const std::byte> mine);
  /// The same of a value; nothing of members that have failed or left.
  template <class T>
  [[nodiscard]] std::vector<std::optional<T>> values_in(Team& team, const char* call, const T& mine) {
    std::vector<std::optional<T>> all;
    for (const auto& bytes : allgather_in(team, call, std::as_bytes(std::span(&mine, 1)))) {
      auto& theirs = all.emplace_back();
      if (bytes.size() == sizeof mine) std::memcpy(static_cast<void*>(&theirs.emplace()), bytes.data(), sizeof mine);
    }
    return all;
  }
  /// Waits until the default stream has no work, whatever fails: it may use memory that is to be freed.
  void await_default_stream();
  /// What the barriers of a team's CPU threads go by.
  [[nodiscard]] const Context& barrier_context_of(const Team& team) const {
    return team.context().team == world_id ? barrier_context : team.host_context();
  }
  std::atomic<bool> has_left{false};                       ///< the engine's thread asks
  std::atomic<bool> is_left_out{false};                    ///< of the survivors
  std::optional<std::string> no_ll128_reasons[max_teams];  ///< by team id; unknown until first asked for

  /// The heap of this rank that holds an address, and where; nullptr outside both.
  struct Place {
    OffsetAllocator* heap = nullptr;
    std::size_t offset = 0;
  };
  [[nodiscard]] Place place_of(const void* address) const;
  [[nodiscard]] ResidencyLedger& ledger() {
    return device().is_gpu() ? ResidencyLedger::of_gpu(device().index) : host_ledger;
  }

  /// Makes `checks.allocations` what the allocators hold.
  void map_allocations();
  /// Contexts of a team of world ranks, with this rank in it.
  [[nodiscard]] Context make_context(std::uint32_t team, const std::vector<int>& ranks, bool for_host) const;
  [[nodiscard]] std::unique_ptr<Stream> make_stream(StreamPriority priority = StreamPriority::normal);
  [[nodiscard]] std::unique_ptr<Stream> adopt_stream(void* native);
  /// Ends the streams that the program still has, at the world's end; also the default stream's waits, if it has
  /// failed.
  void end_handed_streams();
  /// One whose waits on a host rank have the deadline and the abort words of `context`, which outlives it.
  [[nodiscard]] std::unique_ptr<Stream> make_waiting_stream(const Context& context);
  [[nodiscard]] std::unique_ptr<Stream> routed(std::unique_ptr<Stream> own);
  /// Whether an address is reached by the engine alone. Throws unreachable, with the reason, where no route leads to
  /// its owner, or the engine does not reach such memory.
  [[nodiscard]] bool needs_engine(const void* address) const;
  [[nodiscard]] EngineClient engine_client();
  /// An engine for command queues, as the configuration has it but for its number of threads.
  [[nodiscard]] std::unique_ptr<HostEngine> make_host_engine(int threads, bool is_timed);
  /// Opens windows on the node's GPU memory, the first time that an engine needs them.
  void open_windows();
  /// The engine that serves command queues; starts it.
  [[nodiscard]] HostEngine& engine_of_queues();
  /// A copy with an end that only the engine reaches; returns when it is over.
  void copy_by_engine(void* destination, const void* source, std::size_t bytes);
  /// The buffer that work of a stream goes through, one piece after the other (carried_work.cpp). It lives as long as
  /// the world: the engine may use it longer than the stream lives.
  [[nodiscard]] std::byte* carry_buffer(const Stream& whose);
  void require_not_refused() const;
  /// Throws unreachable, with the reason, where loads and stores do not reach a member: `what` takes them.
  void require_direct(const Team& team, const char* what) const;
  /// A grid state for one stream; given back, and its line in the ledger closed, when the stream lets it go.
  [[nodiscard]] std::shared_ptr<GridState> lend_grid_state();
  /// What a waiting kernel gets that is captured from a stream: each graph has a grid state of its own, and all graphs
  /// of the stream share an entry in the ledger.
  struct GraphGrid {
    GridState* state;
    const void* booking;
  };
  [[nodiscard]] GraphGrid graph_grid(Stream& on, std::uint64_t capture);
  /// Fills device or host memory with zeros, and waits for it.
  void zero(void* address, std::size_t bytes);
  /// Writes to device or host memory, and waits for it.
  void write(void* destination, const void* source, std::size_t bytes);
  /// Enqueues a copy between any two addresses.
  void enqueue_copy(Stream& to, void* destination, const void* source, std::size_t bytes);
  /// Calls `call(to, from, bytes)` for each piece of a copy: chunks of a distributed array are memory of different
  /// devices.
  template <class Call>
  void for_pieces(void* destination, const void* source, std::size_t bytes, Call call) const;
  /// The device that has to touch an address: -1 the own, otherwise as BounceStream has it. Throws unreachable.
  [[nodiscard]] int device_for(const void* address);
  /// Whether only the GPU of another rank reaches it, for staged copies. Throws unreachable where none does.
  [[nodiscard]] bool is_far_gpu_memory(const void* address);
  /// Whether this rank's kernels load and store there: all that is mapped, but other GPUs' memory without peer access.
  [[nodiscard]] bool kernels_reach(const void* address);
  [[nodiscard]] bool stages_copies() const;
  /// How to copy to or from a place; throws unless its owner is well.
  [[nodiscard]] Registration::Way reach(const RegisteredPlace& place, std::size_t bytes) const;
  /// Hands the address book to this rank's kernels.
  void publish_addresses();
  /// Keeps the reason for which a rank ended, and ends this rank's waits in every team that `culprit` belongs to (in
  /// all, when it is the launcher: -1).
  void note_end(int culprit, const std::string& reason);
  /// Why a team ended.
  struct End {
    Status status = Status::ok;
    std::string text;
  };
  /// The cause that a member has left in its host area when it aborted `team`; ok and empty if none has.
  [[nodiscard]] End cause_of_abort(std::uint32_t team) const;
  /// Aborts the world, once the others can read why.
  void raise_with_cause(Status status, const std::string& text, const Context& among);
  /// Throws what this rank's engine refused and no error has said yet.
  void check_refusals();
  /// The calls of the whole world that members of a team are in, beside this rank, a line each: members on this node,
  /// and those on others that `waits` wait for.
  [[nodiscard]] std::string meetings_in(std::uint32_t team, const std::vector<WaitRecord>& waits);
  /// The call that a rank has shown; empty: none, or it does not answer within a second.
  [[nodiscard]] std::string meeting_of(int other);
  /// Shows the others which such call this rank is in; nullptr: none.
  void show_meeting(const char* call);
  /// What the engines of a team's members refused, a line each.
  [[nodiscard]] std::string refusals_in(std::uint32_t team) const;
  /// Raises the words of this rank's `team` again where an end concerns it that came while the team was being made.
  void raise_missed_ends(std::uint32_t team);
  /// Hands the abort words of the host area to this rank's kernels.
  void tell_kernels();
  /// Team ids that this rank has free, by bit.
  [[nodiscard]] std::uint32_t free_ids() const;
  /// The same for a team of `ranks` alone: no other rank may still belong to an earlier team that this rank was in.
  [[nodiscard]] std::uint32_t free_ids_among(const std::vector<int>& ranks) const;
  /// A clean start for the team `id` of `ranks`, before any member enters its first barrier.
  void open_team(std::uint32_t id, const std::vector<int>& ranks);
  void close_team(std::uint32_t id);
  /// A clean start for the team `id`: abort words, records and barrier state of an earlier one are forgotten.
  void clear_team(std::uint32_t id);
  /// The healthy ranks, among which no connection is broken: of two ranks that have lost theirs, the higher one ends.
  /// Collective over the healthy ranks. Throws unreachable on one that ends.
  [[nodiscard]] std::vector<int> agree_on_connected();
  /// Ends this rank for the others, since `kept` and it are not connected. Throws unreachable.
  [[noreturn]] void leave_out(int kept);
  /// Goes on among `left`, after a failure. Collective over them.
  void regroup(const std::vector<int>& left);
  /// Members of a team on other nodes.
  [[nodiscard]] std::vector<int> far_members(std::uint32_t team) const;
  /// Those that this rank tells of an abort: all of a small team, and of one with many members one on each node, where
  /// they tell each other.
  [[nodiscard]] std::vector<int> members_to_tell(std::uint32_t team) const;

  // Sets of teams are masks of ids.
  [[nodiscard]] std::uint32_t living_teams() const;
  /// Teams whose failure concerns what a stream does.
  [[nodiscard]] std::uint32_t teams_of(Stream& stream);
  void note_launch(Stream& stream, const Context& in, bool is_captured);
  /// Whether the others know this rank's kernel `number`, or never will: 0.
  [[nodiscard]] bool knows_kernel(std::uint16_t number) const;
  /// Shows its name to the others, before it can fail; a name that is too long is cut.
  void show_kernel(std::uint16_t number, const std::string& name);
  /// The name of a kernel of rank `of`; empty if it has none.
  [[nodiscard]] std::string kernel_name(std::uint32_t of, std::uint16_t number) const;
  /// One of `watched` that is aborted, or -1.
  [[nodiscard]] int failed_team(std::uint32_t watched) const;
  /// Whether the world is aborted.
  [[nodiscard]] bool failed() const { return failed_team(world_only) >= 0; }
  /// Throws what went wrong in one of `watched`, if anything did.
  void check(std::uint32_t watched);
  /// `also`: what the caller knows of it.
  [[noreturn]] void fail(Status status, std::uint32_t team, const std::string& also = {});
  /// Whether the world is aborted within the time that waits which begin together may end apart.
  [[nodiscard]] bool failed_soon() const;
  /// After the end of a meeting in `call` that not all ranks came to: throws an error that names the waits of those who
  /// are elsewhere, which a deadline ends first, by aborting the world; of ranks that have left, the waits that failed.
  [[noreturn]] void fail_meeting(const char* call, const Error& missing);
  /// Polls `over()` up to `deadline_ns`, or until one of `watched` is aborted; throws naming `what`. Then the default
  /// stream and `awaited` (if any) give up their waits for signals, and at the deadline `watched` is aborted. A fault
  /// of this rank's GPU names all ranks that end with it.
  ///   timeout  the caller's own limit: then `timeout`, and nothing has happened; otherwise ok
  Status await(const char* what, std::int64_t deadline_ns, const std::function<bool()>& over, std::uint32_t watched,
               Stream* awaited = nullptr, Timeout timeout = Timeout::none());
  /// The barrier of the world or of a team, by its host context. Returns ok or timeout.
  [[nodiscard]] Status barrier(const Context& among, Timeout timeout);
  /// The same of a team with members on other nodes; does not throw.
  [[nodiscard]] Status barrier_across_nodes(const Context& among, Timeout timeout);
  /// Of the members of a context.
  [[nodiscard]] detail::NodeMap node_map(const Context& among) const;
  /// Collective. [members] What each has written as its cell of that number. The first on each node collects those of
  /// the others, so that a member reads once from each node.
  [[nodiscard]] std::vector<ScalarCell> scalars_by_node(const Context& among, std::uint64_t number);
  /// Throws where the team has failed, or a barrier that timed out has not been called to its end: that of another call
  /// would be taken for it.
  void begin_collective(const Context& among);
  /// The same for a function of the whole world, in which ranks exchange bytes.
  void begin_collective(const char* call);
  [[nodiscard]] std::vector<WaitRecord> failed_waits() const;

  /// For the others' waits to notice an abort, and record themselves.
  static constexpr std::uint64_t gathering_ns = 50'000'000;
  static constexpr std::uint32_t world_id = 0;
  static constexpr std::uint32_t world_only = 1;  ///< the set that holds the world alone

 private:
  /// `Context::guarded_offsets` of this rank's kernels, in a team that mixes kinds or not.
  [[nodiscard]] std::uint64_t guarded_offsets(bool mixed) const;
  [[nodiscard]] std::shared_ptr<GridState> take_grid() const;
  void choose_device();
  void learn_devices(const Device& mine, const std::vector<DeviceInventory>& inventories);
  void make_memory();
  void fit_slots();
  void check_host_memory(bool has_chosen_heaps) const;
  Status poll_until_over(const char* what, std::int64_t deadline_ns, const std::function<bool()>& over,
                         std::uint32_t watched, Stream* awaited, Timeout timeout);
  /// Throws if this rank's GPU works no more.
  void check_gpu() const;
  void make_gpu_reach();
  [[nodiscard]] std::vector<MemoryMember> find_routes() const;
  void learn_nodes(const std::vector<std::string>& nodes);
  void make_engine();
  [[nodiscard]] std::unique_ptr<Engine> make_network();
  /// Keeps an abort of a team on another node, and why it was.
  void take_far_abort(std::uint32_t team, std::uint64_t word, const std::string& cause);
  /// Ends what this rank has in common with one that the network does not reach any more.
  void lose(int peer, const std::string& reason);
  void keep_cause(Status status, const std::string& text);
  void serve_engine();
  [[nodiscard]] bool has_routes(const std::vector<int>& ranks) const;
  /// Gives a context of `ranks` the table of their routes.
  static constexpr std::uint32_t no_place = 0xffffffffu;
  [[nodiscard]] std::vector<std::uint32_t> places_of(const std::vector<int>& ranks) const;
  void add_routes(Context& context, const std::vector<int>& ranks, const std::vector<std::uint32_t>& places,
                  bool for_host) const;
  void make_contexts();
  void publish_cores();
  void count_cores();
  void load_kernels();
  void watch_for_deaths();
  /// The end of a rank (or the launcher) for which `team` was aborted; ok and empty if none was.
  [[nodiscard]] End end_of_team(std::uint32_t team);
  [[nodiscard]] std::vector<WaitRecord> failed_waits_of(std::uint32_t team) const;
  void raise(std::uint32_t team, int culprit);
  /// The waits of `team` that have failed, once those that are noticing its abort have recorded themselves.
  [[nodiscard]] std::vector<WaitRecord> gather_waits(std::uint32_t team) const;
  [[nodiscard]] std::string describe(const WaitRecord& record) const;
  /// A line for each of them but `known`; those of several ranks that say the same are one.
  [[nodiscard]] std::string describe_all(const std::vector<WaitRecord>& waits, const std::string& known = {}) const;
  /// Records that streams did not end, and aborts those of `watched` (the world, if it is empty).
  ///   kernel  the last one on the stream that was waited for; 0: unknown
  void give_up_streams(std::uint32_t watched, std::uint64_t waited_ns, std::uint16_t kernel);
  /// Forgets this rank's records of the teams `ids`, a mask.
  void forget_waits(std::uint32_t ids);
  [[nodiscard]] std::uint32_t agree_on_free_id();
  /// In a forked child: refuses operations, and ends waits.
  void seal_in_child();
  std::optional<detail::ForkHandler> fork_handler_;
};

}  // namespace beeline
