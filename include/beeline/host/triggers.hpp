// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Operations that the host arms and kernels trigger (control/trigger.hpp, docs/control.md).

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

/// What is to be done when a tag's count reaches a threshold. Sources are read then, not before, and stay as they are
/// until it is over.
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
  /// Copies bytes between any two places that the engine's device reaches.
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
  /// The same, and behind it a signal where the data arrives: on the peer, of `get` and `copy` on the own rank.
  [[nodiscard]] TriggeredOperation and_signal(std::uint64_t* signal, std::uint64_t value) const {
    TriggeredOperation both = *this;
    const bool arrives_here = parts_[0].verb == Verb::get || parts_[0].verb == Verb::copy;
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
    std::uint8_t width = 0;  ///< of a word
    bool is_signed = false;
    int peer = own_rank;
    const void* remote = nullptr;  ///< an address of this rank's; of `copy` the destination
    const void* local = nullptr;   ///< of a word the operand
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

/// When an operation starts, and what else belongs to it.
struct TriggerCondition {
  std::uint32_t tag = 0;
  std::uint64_t threshold = 1;    ///< it starts once the tag's count is not below; at least 1
  std::uint32_t then = no_chain;  ///< a tag that it triggers, once it is in place: chains
  std::int64_t deadline_ns = 0;   ///< for its threshold, from now or from the latest trigger of the tag; 0: the world's
};

/// Who waits for a count, and does what it fires.
enum class TriggeredBy : std::uint32_t {
  engine,  ///< the rank's engine: everything that this file offers
  /// Streams of the rank's device, each of which waits for the count of one tag: no multiprocessor, no engine and no
  /// CPU take part, on a GPU a copy engine does the copy. Few at a time, each with up to 64 operations, whose
  /// thresholds rise; no atomics, no chains, no `quiet` in kernels. They cannot be cancelled: where the team ends, on a
  /// GPU the copies of what was armed run, so their memory stays until `Triggers` is destroyed.
  stream,
  /// The same, but behind the wait a small kernel moves the bytes, unless the operation was cancelled, or the team has
  /// ended: then nothing moves. It takes the place of up to 16 blocks on the device, which is kept while `Triggers`
  /// exists, and reaches what kernels reach.
  guarded_stream
};

/// Sizes of `Triggers`.
struct TriggerOptions {
  std::uint32_t tags = 4096;     ///< 0 to tags - 1
  std::uint32_t entries = 4096;  ///< engine: operations that are armed or under way at most
  std::uint32_t queues = 1;      ///< engine: tag t belongs to queue t % queues: nothing waits for what another moves
  TriggeredBy by = TriggeredBy::engine;
  std::uint32_t streams = 2;  ///< stream: tags with armed operations at most, up to `most_streams`
  /// A GPU has few connections for streams, and one that waits holds up others of its connection.
  static constexpr std::uint32_t most_streams = 16;
};

/// Tags of the calling rank, each with a count, and the operations that are armed for them. The rank's engine counts,
/// and does what fires, or streams wait (`TriggeredBy`; docs/control.md). On a GPU rank make it while none of its
/// kernels runs.
///
/// What the engine can only find out when an operation fires (memory that is not mapped any more, places that overlap)
/// it refuses, with all that comes later to that queue, as of commands: `quiet` says invalid_argument, `wait` throws.
class Triggers {
 public:
  /// Collective, with the same options on all members. Throws invalid_argument for no tags, entries, queues or streams,
  /// and for more than `most_streams`; otherwise as `CommandQueues`.
  explicit Triggers(Team& team, const TriggerOptions& options = {});
  /// Collective. Kernels that trigger must be over; waits until what they have triggered is done, up to the deadline,
  /// and cancels what is armed still. What streams wait for, it waits for too: at the deadline the team ends.
  ~Triggers();
  Triggers(const Triggers&) = delete;
  Triggers& operator=(const Triggers&) = delete;

  /// For kernels, by value.
  [[nodiscard]] const TriggerChannel& channel() const { return channel_; }

  // Any thread may call these; none blocks but `wait`.

  /// Arms an operation. It starts at once where the tag has been triggered often enough. Several operations may be
  /// armed for a tag, each with its threshold: a count only grows. Throws invalid_argument for a peer, an address or a
  /// tag that there is not, and for streams for a threshold below one that is armed, unreachable for memory that the
  /// engine does not reach, no_resource where `entries` operations are armed or under way, or no stream is free,
  /// unavailable for what streams cannot do.
  /// Where its threshold is not reached by the deadline, the team is aborted, with an error that names tag, count and
  /// threshold.
  ArmedOperation arm(const TriggeredOperation& operation, const TriggerCondition& when);
  /// Whether it was armed still: then it never starts. On a guarded stream it keeps its place, one of the stream's 64,
  /// until its threshold is reached. Throws unavailable where streams wait without a guard.
  bool cancel(ArmedOperation operation);
  /// Until it is in place (or was cancelled). Returns ok or timeout; throws invalid_argument where it was refused,
  /// deadline, and what ended the team.
  Status wait(ArmedOperation operation, Timeout timeout = Timeout::none());
  /// A trigger by the host: what the calling thread did before is visible to what fires. Throws unavailable where
  /// streams of a GPU wait.
  void trigger(std::uint32_t tag, std::uint64_t count = 1);
  /// How often the engine has counted for a tag.
  [[nodiscard]] std::uint64_t count(std::uint32_t tag) const;
  /// Operations that are armed, and have not started.
  [[nodiscard]] std::uint32_t armed() const;
  /// Why the engine refused triggers, or what they fired: of each queue where it did, the first.
  [[nodiscard]] std::vector<std::string> refusals() const;
  /// What the rank's engine has done for all its queues; of streams nothing.
  [[nodiscard]] EngineStatistics statistics() const;

 private:
  [[nodiscard]] std::uint32_t checked(std::uint32_t tag) const;
  [[nodiscard]] Command command_of(const TriggeredOperation::Part& part) const;

  void be_done_by_engine(const TriggerOptions& options);
  void be_done_by_streams(const TriggerOptions& options);
  void guard(WaitingStreamsClient& client);

  /// What streams use.
  struct Counts {
    SymmetricArray<std::uint64_t> counters;   ///< [tags]
    SymmetricArray<std::uint64_t> completed;  ///< [streams], and behind them whether waits were released
    Context waiting;                          ///< of streams on host ranks: they wait without end of their own
  };

  struct Guards;

  Team& team_;
  std::unique_ptr<Counts> counts_;
  std::unique_ptr<Guards> guards_;
  std::unique_ptr<TriggerBackEnd> back_end_;
  std::unique_ptr<CommandQueues> queues_;  ///< of an engine; otherwise nullptr
  TriggerChannel channel_;
};

}  // namespace beeline
