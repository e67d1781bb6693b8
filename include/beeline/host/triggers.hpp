// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Operations that the host arms and kernels trigger (control/trigger.hpp, docs/triggers.md).

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "beeline/control/armed_operation.hpp"
#include "beeline/control/trigger.hpp"
#include "beeline/host/command_queues.hpp"
#include "beeline/host/team.hpp"

namespace beeline {

class TriggerBackEnd;
struct TriggeredCommands;
struct WaitingStreamsClient;

/// An operation that starts when a tag's count reaches a threshold. Its sources are read only then; keep them unchanged
/// until the operation has ended.
class TriggeredOperation {
 public:
  /// Copies `count` elements from local `source` to `destination` on `peer`.
  ///   destination  [count] symmetric address;  source  [count] any local address that the engine's device reads
  template <class T>
  [[nodiscard]] static TriggeredOperation put(T* destination, const T* source, std::size_t count, int peer) {
    static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
    return {move(Operation::put, Verb::put, destination, source, detail::array_bytes(count, sizeof(T)), peer)};
  }
  /// Copies `count` elements from `source` on `peer` to local `destination`.
  template <class T>
  [[nodiscard]] static TriggeredOperation get(T* destination, const T* source, std::size_t count, int peer) {
    static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable elements travel as bytes");
    return {move(Operation::get, Verb::get, source, destination, detail::array_bytes(count, sizeof(T)), peer)};
  }
  /// Copies bytes between any two addresses that the engine's device reaches.
  [[nodiscard]] static TriggeredOperation copy(void* destination, const void* source, std::size_t bytes) {
    return {move(Operation::copy, Verb::copy, destination, source, bytes, own_rank)};
  }
  /// Sets `signal`, a symmetric address, on `peer`.
  [[nodiscard]] static TriggeredOperation signal(std::uint64_t* signal, std::uint64_t value, int peer) {
    return {word(Operation::signal, Verb::store, signal, value, peer)};
  }
  /// Changes a word on `peer`; `verb` is one that `post_atomic` takes, `target` a symmetric address.
  template <class T>
  [[nodiscard]] static TriggeredOperation atomic(Verb verb, T* target, std::type_identity_t<T> value, int peer) {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a 32- or 64-bit integer");
    Part part = word(Operation::atomic, verb, target, static_cast<std::uint64_t>(value), peer);
    part.width = sizeof(T), part.is_signed = std::is_signed_v<T>;
    return {part};
  }
  /// The same operation, followed by a signal at the rank where the data arrive: the peer, or, for `get` and `copy`,
  /// this rank.
  [[nodiscard]] TriggeredOperation and_signal(std::uint64_t* signal, std::uint64_t value) const {
    TriggeredOperation both = *this;
    const bool arrives_here = has_shape<VerbShape::from_peer, VerbShape::between>(parts_[0].verb);
    both.parts_[1] = word(Operation::signal, Verb::store, signal, value, arrives_here ? own_rank : parts_[0].peer);
    both.count_ = 2;
    return both;
  }

 private:
  friend class Triggers;
  static constexpr int own_rank = -1;
  struct Part {
    Operation operation = Operation::none;
    Verb verb = Verb::put;
    std::uint8_t width = 0;  ///< bytes of a word
    bool is_signed = false;
    int peer = own_rank;
    const void* remote = nullptr;  ///< symmetric address on this rank; for `copy` the destination
    const void* local = nullptr;   ///< local address; for a word its operand
    std::size_t bytes = 0;
  };
  TriggeredOperation(const Part& only) : parts_{only, {}} {}
  [[nodiscard]] static Part move(Operation operation, Verb verb, const void* remote, const void* local,
                                 std::size_t bytes, int peer) {
    return {.operation = operation, .verb = verb, .peer = peer, .remote = remote, .local = local, .bytes = bytes};
  }
  [[nodiscard]] static Part word(Operation operation, Verb verb, const void* at, std::uint64_t operand, int peer) {
    return {.operation = operation,
            .verb = verb,
            .width = sizeof operand,
            .peer = peer,
            .remote = at,
            .local = reinterpret_cast<const void*>(operand),
            .bytes = sizeof operand};
  }

  std::array<Part, 2> parts_;
  std::uint32_t count_ = 1;
};

/// When an operation starts, its deadline, and the tag that it triggers.
struct TriggerCondition {
  std::uint32_t tag = 0;
  std::uint64_t threshold = 1;    ///< count of the tag at which the operation starts; at least 1
  std::uint32_t then = no_chain;  ///< tag that the operation triggers when it has ended (chain)
  std::int64_t deadline_ns = 0;   ///< deadline of the wait, from arming or the tag's last trigger; 0: the world's
};

/// The part of the system that waits for counts and carries out the operations.
enum class TriggeredBy : std::uint32_t {
  engine,  ///< the rank's engine; it supports all functions of this file
  /// A separate device engine (EngineKind::device): a block of the rank's device counts and moves the bytes by loads
  /// and stores; no CPU takes part. It supports all functions of this file. `arm`, `cancel` and `trigger` of the host
  /// wait for the end of the block's lease, up to 2 ms. Operations on memory that is not symmetric are done by the
  /// host, those on ranks of other nodes by the network's engine.
  device_engine,
  /// Streams of the rank's device. Each stream waits for the count of one tag. Neither multiprocessors nor an engine
  /// nor the CPU take part; on a GPU a copy engine copies. There are few streams, each with up to 64 operations, whose
  /// thresholds ascend. There are no atomics, no chains, and no `quiet` in kernels. Operations cannot be cancelled: if
  /// the team is aborted, copies that are armed on a GPU still run, so keep their memory until `Triggers` is destroyed.
  stream,
  /// As `stream`, but after the wait a small kernel moves the bytes. It moves nothing if the operation was cancelled or
  /// the team has ended. Room for up to 16 blocks on the device is reserved while `Triggers` exists. It reaches the
  /// same memory as kernels.
  guarded_stream
};

/// Sizes of `Triggers`.
struct TriggerOptions {
  std::uint32_t tags = 4096;     ///< 0 to tags - 1
  std::uint32_t entries = 4096;  ///< engines: largest number of operations that are armed or in progress
  std::uint32_t queues = 1;      ///< engines: tag t uses queue t % queues; queues do not wait for each other
  TriggeredBy by = TriggeredBy::engine;
  std::uint32_t streams = 2;  ///< stream: largest number of tags with armed operations, at most `most_streams`
  /// A GPU has few hardware queues for streams, and a waiting stream delays other streams of its queue.
  static constexpr std::uint32_t most_streams = 16;
};

/// Tags of the calling rank, each with a count, and the operations armed for them. An engine of the rank counts and
/// carries out the operations, or streams do (`TriggeredBy`; docs/triggers.md). On a GPU rank, make the object while
/// none of its kernels runs.
///
/// Some errors are found only when an operation starts: memory that is no longer mapped, and ranges that overlap. The
/// engine then refuses the operation and everything later in its queue, as for commands: `quiet` returns
/// invalid_argument, `wait` throws.
class Triggers {
 public:
  /// Collective, with the same options on all members. Throws invalid_argument for 0 tags, entries, queues or streams,
  /// or for more than `most_streams`; otherwise the same as `CommandQueues`.
  explicit Triggers(Team& team, const TriggerOptions& options = {});
  /// Collective. Kernels that trigger must have ended. Waits, up to the deadline, until all triggered operations are
  /// done, and cancels those that are still armed. Operations armed on streams cannot be cancelled, so it waits for
  /// their thresholds; at the deadline the team is aborted.
  ~Triggers();
  Triggers(const Triggers&) = delete;
  Triggers& operator=(const Triggers&) = delete;

  /// The channel for kernels; pass it by value.
  [[nodiscard]] const TriggerChannel& channel() const { return channel_; }

  // Any thread may call these functions. Only `wait` blocks; `arm`, `cancel` and `trigger` wait for the end of a device
  // engine's lease.

  /// Arms an operation. It starts at once if the tag's count has already reached its threshold. A tag may have several
  /// operations with different thresholds; its count only grows. If a threshold is not reached by the deadline, the
  /// team is aborted with an error that names tag, count and threshold.
  /// Throws invalid_argument for a bad peer, address or tag, and, for streams, for a threshold below an armed threshold
  /// of the tag; unreachable for memory that the engine does not reach; no_resource if `entries` operations are armed
  /// or in progress, or no stream is free; unavailable for operations that streams do not support.
  ArmedOperation arm(const TriggeredOperation& operation, const TriggerCondition& when);
  /// Cancels an operation that has not started. Returns true if the operation was still armed; then it never starts. On
  /// a guarded stream a cancelled operation still counts towards the limit of 64 until its threshold is reached. Throws
  /// unavailable for streams without a guard.
  bool cancel(ArmedOperation operation);
  /// Blocks until the operation has ended or was cancelled. Returns ok or timeout. Throws invalid_argument if the
  /// operation was refused, deadline, and the error that ended the team.
  Status wait(ArmedOperation operation, Timeout timeout = Timeout::none());
  /// Triggers a tag from the host. Earlier writes of the calling thread are visible to the operations that start.
  /// Throws unavailable for streams of a GPU.
  void trigger(std::uint32_t tag, std::uint64_t count = 1);
  /// The count of a tag, as the engine has it.
  [[nodiscard]] std::uint64_t count(std::uint32_t tag) const;
  /// Operations that are armed, and have not started.
  [[nodiscard]] std::uint32_t armed() const;
  /// Why the engine refused triggers or operations: the first refusal of each queue that has any.
  [[nodiscard]] std::vector<std::string> refusals() const;
  /// Statistics of the engine, over all its queues; they do not include streams.
  [[nodiscard]] EngineStatistics statistics() const;

 private:
  [[nodiscard]] std::uint32_t checked(std::uint32_t tag) const;
  [[nodiscard]] Command command_of(const TriggeredOperation::Part& part) const;

  void be_done_by_engine(const TriggerOptions& options);
  void be_done_by_device_engine(const TriggerOptions& options);
  void be_done_by_streams(const TriggerOptions& options);
  void guard(WaitingStreamsClient& client);

  /// Counters and context of waiting streams.
  struct Counts {
    SymmetricArray<std::uint64_t> counters;   ///< [tags]
    SymmetricArray<std::uint64_t> completed;  ///< [streams]; then one word: whether waits were released
    Context waiting;                          ///< context of streams on host ranks, whose waits have no deadline of
                                              ///< their own
  };

  struct Guards;

  Team& team_;
  const std::shared_ptr<const detail::TeamLife> life_;
  std::unique_ptr<Counts> counts_;
  std::unique_ptr<Guards> guards_;
  std::unique_ptr<TriggerBackEnd> back_end_;
  std::unique_ptr<CommandQueues> queues_;  ///< queues of an engine; nullptr if streams wait
  TriggerChannel channel_;
};

}  // namespace beeline
