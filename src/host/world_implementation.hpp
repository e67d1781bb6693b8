// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a World consists of.

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "beeline/host/world.hpp"
#include "beeline/memory/node_memory.hpp"
#include "beeline/runtime/bootstrap.hpp"
#include "beeline/runtime/residency.hpp"

namespace beeline {

/// Streams of one rank that exist at the same time.
inline constexpr std::uint32_t max_streams = 256;

/// Start of every symmetric heap: state that kernels poll.
struct HeapHeader {
  TeamSync teams[max_teams];
  struct alignas(64) PaddedGridState {
    GridState state;
  } grids[max_streams];
  alignas(64) std::uint32_t wait_claims;
  /// What this rank's kernels poll: many blocks that polled the words in host memory would queue up at the bus.
  alignas(128) std::uint64_t abort[max_teams];
};

/// Start of every host area: state that CPU threads poll and that survives for the others to read.
struct HostAreaHeader {
  ControlBlock control;
  TeamSync teams[max_teams];
  alignas(64) std::uint32_t wait_claims;
};

inline constexpr std::size_t allocation_alignment = 256;
[[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + allocation_alignment - 1) / allocation_alignment * allocation_alignment;
}

/// A rank as the others know it.
struct Member {
  std::uint64_t process = 0;
  Device device;
};

class World::Implementation {
 public:
  Implementation(const Config& config, std::unique_ptr<Bootstrap> bootstrap);
  ~Implementation();

  // Made once, in this order; collective.
  Config config;
  std::unique_ptr<Bootstrap> bootstrap;
  int rank, size;
  std::vector<Member> members;
  int ranks_on_device = 1;
  std::unique_ptr<NodeMemory> memory;
  Context context{}, host_context{};
  std::mutex allocation_mutex;
  std::unique_ptr<OffsetAllocator> heap, pinned_heap;  ///< offsets behind the headers
  std::mutex grid_mutex;
  std::vector<std::uint32_t> free_grids;
  ResidencyLedger host_ledger;
  std::unique_ptr<Stream> stream;       ///< default stream
  std::unique_ptr<Stream> copy_stream;  ///< of blocking copies

  std::mutex failure_mutex;
  int dead_rank = -1;       ///< guarded by failure_mutex; -1: none, or the launcher
  std::string dead_reason;  ///< guarded by failure_mutex; empty while all is well
  std::mutex team_mutex;
  std::map<std::uint32_t, std::vector<int>> teams;  ///< id to world ranks, those this rank belongs to

  [[nodiscard]] const Device& device() const { return members[static_cast<std::size_t>(rank)].device; }
  [[nodiscard]] HeapHeader* heap_header(int of) const { return reinterpret_cast<HeapHeader*>(memory->heap(of)); }
  [[nodiscard]] HostAreaHeader* host_header(int of) const {
    return reinterpret_cast<HostAreaHeader*>(memory->host_area(of));
  }
  [[nodiscard]] std::byte* heap_start(int of) const { return memory->heap(of) + aligned(sizeof(HeapHeader)); }
  [[nodiscard]] std::byte* pinned_start(int of) const {
    return memory->host_area(of) + aligned(sizeof(HostAreaHeader));
  }
  [[nodiscard]] ResidencyLedger& ledger() {
    return device().is_gpu() ? ResidencyLedger::of_gpu(device().index) : host_ledger;
  }

  /// Contexts of a team of world ranks, with this rank in it.
  [[nodiscard]] Context make_context(std::uint32_t team, const std::vector<int>& ranks, bool for_host) const;
  [[nodiscard]] std::unique_ptr<Stream> make_stream();
  /// A grid state for one stream; given back, and its line in the ledger closed, when the stream lets it go.
  [[nodiscard]] std::shared_ptr<GridState> lend_grid_state();
  /// Fills device or host memory with zeros, and waits for it.
  void zero(void* address, std::size_t bytes);
  /// Keeps the first reason for which the world ended, and ends this rank's waits in every team that `culprit` belongs
  /// to (in all, when it is the launcher: -1).
  void note_end(int culprit, const std::string& reason);
  /// Hands the abort words of the host area to this rank's kernels.
  void tell_kernels();
  /// Polls `over()` up to `deadline_ns`, or until a wait has failed; throws naming `what`. Then the default stream and
  /// `awaited` (if any) give up their waits for signals.
  void await(const char* what, std::int64_t deadline_ns, const std::function<bool()>& over, Stream* awaited = nullptr);
  /// Throws what went wrong if anything did.
  void check();
  [[noreturn]] void fail(Status status);
  /// The rank's end (or the launcher's) that ended the world; ok and empty if none did.
  struct End {
    Status status = Status::ok;
    std::string text;
  };
  [[nodiscard]] End end_of_world();
  [[nodiscard]] std::vector<WaitRecord> failed_waits() const;
  [[nodiscard]] bool failed() const;

 private:
  void choose_device();
  void make_memory();
  void make_contexts();
  void load_kernels();
  void watch_for_deaths();
};

}  // namespace beeline
