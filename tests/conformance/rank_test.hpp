// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The arguments of a conformance case: one rank's world, choices that are the same on all ranks, buffers and launches.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "beeline/beeline.hpp"
#include "tests/conformance/device_report.hpp"
#include "tests/support/check.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"

namespace beeline_test {

/// Ends a case that does not suit the world, on all ranks; the text gives the reason.
struct CaseSkipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One rank's part of a running case.
class RankTest {
 public:
  /// Collective.
  RankTest(beeline::World& world, std::string_view label) : world_(world), random_(label), report_(world, 1) {}

  [[nodiscard]] beeline::World& world() { return world_; }
  [[nodiscard]] Random& random() { return random_; }
  [[nodiscard]] int rank() const { return world_.rank(); }
  [[nodiscard]] int size() const { return world_.size(); }
  [[nodiscard]] bool on_gpu() const { return world_.device().is_gpu(); }
  /// Whether kernels of `of` may read-modify-write host memory, from what the world says of its devices (access.hpp).
  [[nodiscard]] bool has_host_atomics(int of) const;
  [[nodiscard]] bool on_gpu(int rank) const { return world_.device(rank).is_gpu(); }
  /// Whether kernels of `from` can load and store in the heap of `to`: those of host ranks cannot access GPU memory.
  [[nodiscard]] bool reaches(int from, int to) const { return on_gpu(from) || !on_gpu(to); }
  [[nodiscard]] bool on_several_nodes() const { return world_.config().split_nodes > 1; }
  [[nodiscard]] bool on_one_node(int a, int b) const { return world_.node(a) == world_.node(b); }
  /// The rank `distance` ahead of this one, or behind it, in a ring.
  [[nodiscard]] int ahead(int distance) const { return (rank() + distance) % size(); }
  [[nodiscard]] int behind(int distance) const { return (rank() + size() - distance % size()) % size(); }
  /// The even ranks or the odd ones, whichever include this rank: its team if there are two.
  [[nodiscard]] std::vector<int> alternate_ranks() const {
    std::vector<int> members;
    for (int member = rank() % 2; member < size(); member += 2) members.push_back(member);
    return members;
  }
  /// Rank 1 alone, or all other ranks: a team that has fewer members on one node than on others.
  [[nodiscard]] std::vector<int> all_but_one() const {
    std::vector<int> members;
    for (int member = 0; member < size(); ++member)
      if ((member == 1) == (rank() == 1)) members.push_back(member);
    return members;
  }
  /// One of the heaps, the same on every rank.
  [[nodiscard]] beeline::Heap any_heap() { return random_.coin() ? beeline::Heap::symmetric : beeline::Heap::pinned; }
  /// The heap in which kernels of all ranks can load and store.
  [[nodiscard]] beeline::Heap common_heap() const {
    return world_.mixed() ? beeline::Heap::pinned : beeline::Heap::symmetric;
  }

  /// Collective. Skips the case on all ranks if any of them gives a reason; empty: none.
  void skip_if_any(const std::string& reason);
  /// Skips the case; all ranks know the reason.
  void skip_if(bool unsuitable, const char* why) const {
    if (unsuitable) throw CaseSkipped(why);
  }

  /// Copies to and from memory that this rank's kernels can access, of any kind.
  void write(void* destination, const std::vector<std::byte>& data);
  [[nodiscard]] std::vector<std::byte> read(const void* source, std::size_t bytes);
  template <class T>
  [[nodiscard]] T read_value(const T* source) {
    T value{};
    world_.copy(&value, source, sizeof value);
    return value;
  }

  /// A grid of a shape that suits the device: on a GPU the threads of some warps, on a host rank its team.
  [[nodiscard]] beeline::LaunchOptions shape(unsigned blocks, bool waits) const;
  /// Threads in one block of that grid.
  [[nodiscard]] unsigned block_threads() const { return block_threads(rank()); }
  [[nodiscard]] unsigned block_threads(int of) const {
    return on_gpu(of) ? gpu_threads : static_cast<unsigned>(world_.config().host_threads);
  }
  /// Launches `kernel(grid, ctx, report, arguments)`, waits for its end, and throws its error or a failed check.
  template <class Kernel, class Arguments>
  void run(const beeline::LaunchOptions& options, Kernel kernel, const Arguments& arguments, std::string_view what) {
    run(world_, options, kernel, arguments, what);
  }
  template <class Kernel, class Arguments>
  void run(beeline::Team& team, const beeline::LaunchOptions& options, Kernel kernel, const Arguments& arguments,
           std::string_view what) {
    clear_report();
    beeline::launch(team, options, kernel, report_.data(), arguments);
    world_.synchronize();
    check_report(what);
  }
  /// Throws if a check of the last launch failed.
  void check_report(std::string_view what);

 private:
  static constexpr unsigned gpu_threads = 96;

  void clear_report();

  beeline::World& world_;
  Random random_;
  beeline::SymmetricArray<DeviceReport> report_;
};

/// A case: the body runs on every rank of a world of at least `least_ranks`.
struct Case {
  const char* name;
  int least_ranks;
  void (*body)(RankTest&);
};

/// Groups of cases; a shape of world runs some of them.
enum class CaseGroup {
  access,
  atomic,
  barrier,
  bulk,
  collectives,
  context,
  crowded,  ///< these suit worlds of many ranks on few cores
  crowded_collectives,
  crowded_messages,
  distributed,  ///< arrays over several ranks
  memory,
  message_sessions,  ///< of kernels
  messages,
  network,  ///< ranks are on several nodes
  packet,
  pointer,  ///< kernels load and store at other ranks' addresses
  put_get,
  registered,
  post,
  route,                  ///< ranks reach each other only by engines
  sessions,               ///< collectives in kernels
  sessions_across_nodes,  ///< and of members on several nodes
  signal,
  staged,
  stream,
  strided,
  task,
  team,
  trigger,
  wait_any
};

/// Lists a case at the program's start. Returns true, which initializes a variable.
bool list_case(CaseGroup group, const Case& listed);

/// Defines a case and lists it: `BEELINE_CASE(put_get, put_scalars, 1) { ... }`, whose body uses `test`. Each file of
/// cases has a namespace of its name, because builds in batches compile several files together.
#define BEELINE_CASE(group, name, least_ranks)                                                            \
  void name(RankTest& test);                                                                              \
  [[maybe_unused]] const bool name##_is_listed = list_case(CaseGroup::group, {#name, least_ranks, name}); \
  void name([[maybe_unused]] RankTest& test)

/// The largest message: checking every byte of it must not take long.
inline constexpr std::size_t most_bytes = under_thread_sanitizer ? std::size_t{64} << 10 : (std::size_t{3} << 20) + 5;

}  // namespace beeline_test
