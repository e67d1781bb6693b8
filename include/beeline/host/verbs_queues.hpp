// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Verbs-style queue pairs of a team, with registered memory, and the engine that serves them (control/verbs.hpp,
/// docs/adapters.md).

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "beeline/control/verbs_assisted.hpp"
#include "beeline/host/command_queues.hpp"
#include "beeline/host/team.hpp"

namespace beeline {

/// Options of queue pairs: the same on all members.
struct VerbsOptions {
  /// host: rings in pinned host memory, served by threads of the host. device: rings in the memory of the rank's
  /// device, served by a thread block of the device.
  EngineKind engine = EngineKind::host;
  /// For EngineKind::host: whether CPU threads post and poll. Otherwise kernels do, and on a GPU rank CPU threads may
  /// not.
  bool posts_from_cpu = false;
  /// For EngineKind::host: whether a CPU thread of the rank posts and polls for kernels, which ask it by mailboxes.
  bool assisted = false;
  std::uint32_t depth = 64;             ///< entries of each ring; a power of two from 2 on
  std::uint32_t completion_queues = 0;  ///< pair i has queue i modulo their number; 0: one for each pair
  /// Entries of a completion queue; a power of two from 2 on. The queue holds one completion less: the last entry
  /// reports that the queue is full. 0: enough for all requests of its pairs.
  std::uint32_t completion_depth = 0;
  int engine_threads = 0;  ///< for EngineKind::host: as in `CommandQueueOptions`

  bool operator==(const VerbsOptions&) const = default;
};

/// Queue pairs of the calling rank, each connected to a queue pair of a team member.
class VerbsQueues {
 public:
  /// Collective, with the same number of queue pairs and the same options on all members.
  ///   peers  [pairs] the member to which each pair is connected. The k-th pair to a member is connected to that
  ///          member's k-th pair to this rank; a pair to this rank itself is connected to itself
  /// Throws invalid_argument for options that differ or are not valid, and if a pair has no counterpart; unavailable if
  /// members are on several nodes; unreachable for a device engine if kernels do not reach a member; otherwise as
  /// `CommandQueues`.
  VerbsQueues(Team& team, std::span<const int> peers, const VerbsOptions& options = {});
  /// Collective. Kernels and threads that post must have ended. Requests in flight may remain undone.
  ~VerbsQueues();
  VerbsQueues(const VerbsQueues&) = delete;
  VerbsQueues& operator=(const VerbsQueues&) = delete;

  /// The queues for kernels, or for CPU threads; pass them by value.
  [[nodiscard]] const VerbsQueuesView& view() const;
  /// The mailboxes for kernels, with VerbsOptions::assisted; then only these kernels may post and poll. Throws
  /// invalid_argument without it.
  [[nodiscard]] const VerbsAssistedView& assisted() const;

  /// Registers memory for requests of this rank and of its peers.
  ///   address  in this rank's symmetric memory: a heap or a segment
  /// Throws invalid_argument for other memory, no_resource for more than `max_verbs_keys` ranges at the same time.
  [[nodiscard]] VerbsKey register_memory(const void* address, std::size_t bytes);
  /// Ends a registration: requests that name the key have error completions from now on. Call it before the
  /// memory is freed. Throws invalid_argument for a key that is not valid.
  void deregister_memory(VerbsKey key);
  /// The key of a peer's memory that corresponds to a registration of this rank: both have registered memory in the
  /// same order. Call it after a barrier. Throws invalid_argument if the peer has none.
  [[nodiscard]] VerbsKey key_of(VerbsKey mine, int peer) const;

  /// Empties the send ring of a pair, whose requests may have failed. The index of the next request follows that of the
  /// last request. No thread may post to the pair meanwhile. Completions that were not polled stay.
  void reset(std::uint32_t pair);

  /// Why a host engine last refused a request of a pair; empty if it has refused none.
  [[nodiscard]] std::string refusal(std::uint32_t pair) const;

 private:
  class Assistance;
  class Implementation;
  detail::TeamOwned<Implementation> implementation_;
};

/// A status in words, for errors.
[[nodiscard]] const char* describe(VerbsStatus status) noexcept;

}  // namespace beeline
