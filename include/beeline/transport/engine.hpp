// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Engines carry a rank's operations to peers that its loads and stores do not reach. A world asks its engine once for
/// the route to each peer. From then on, operations of kernels and CPU threads for these peers post commands
/// (core/command.hpp), which the engine's own threads carry out (docs/design.md, Routes).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "beeline/core/command.hpp"
#include "beeline/device/context.hpp"
#include "beeline/runtime/device.hpp"

namespace beeline {

/// Bytes that CPUs fetch together: two cache lines. Each thread changes its state for every command, so the states of
/// two threads are never in the same `fetched_bytes`.
inline constexpr std::size_t fetched_bytes = 128;

/// The route to one peer.
struct PeerRoute {
  PeerAccess access = PeerAccess::direct;
  std::string reason;  ///< why the route is not direct, for errors
};

class Engine;
class MemoryUsers;

/// The rank that an engine serves. The object must outlive the engine, and keep its address.
struct EngineClient {
  int rank = 0, ranks = 1;  ///< rank in the world, and size of the world
  Device device;
  std::vector<CommandRing*> rings;  ///< rings of the rank's kernels, then rings of its CPU threads
  Context context;                  ///< context of the rank's CPU threads: deadline and abort words
  /// The address in this process of an offset in a peer's slot, for engines of this node.
  std::function<std::byte*(std::uint32_t peer, std::uint64_t offset)> address_of;
  /// The piece of symmetric memory, of any rank of this node, that contains an address; empty if none does. Valid until
  /// `unmaps` grows.
  std::function<std::span<const std::byte>(const void* address)> piece_at;
  const std::atomic<std::uint64_t>* unmaps = nullptr;
  /// Threads of an engine register here while they load from and store to pieces, so that no piece is unmapped
  /// meanwhile.
  MemoryUsers* memory_users = nullptr;
  /// Whether an address of the range is host memory.
  std::function<bool(const void* address)> is_host_memory;
  /// Whether the engine of a GPU changes words of host memory by CPU atomics: those of its kernels would exclude
  /// neither CPUs nor other GPUs there (device/access.hpp).
  bool cpu_changes_host_words = false;
  /// Records why a command was refused, for the errors of other ranks that wait for its effect.
  std::function<void(const std::string& text)> note_refusal;
  /// Ends every wait of the world, with the reason for the errors.
  std::function<void(const std::string& reason)> fail;
  /// Carries commands of command queues to ranks of other nodes; nullptr if there are no other nodes.
  Engine* network = nullptr;
  /// Whether a rank is on another node.
  std::function<bool(std::uint32_t peer)> is_remote;
};

/// The object to which `CommandRing::asleep` points: CPU threads call `wake` after they have posted, and when they
/// begin to wait for the completion of their posts.
class Waker {
 public:
  virtual void wake() noexcept = 0;

 protected:
  ~Waker() = default;
};

/// The part of a command queue for ranks of other nodes: a separate ring with one poster. Its `reusable` and
/// `completed` are `DoneCount` words.
class CarriedQueue {
 public:
  ///   memory  of the ring: all zeros, mapped until the queue is closed
  explicit CarriedQueue(CommandRing& memory) : ring(memory) {}
  CommandRing& ring;

  /// Why the engine refuses a command that it has taken; nullptr if it does not. Called by a thread of the engine.
  [[nodiscard]] virtual const char* check([[maybe_unused]] const Command& command) { return nullptr; }
  /// Whether a CPU thread that posts may do all of the work: if not, it only sends, or wakes the engine's thread.
  [[nodiscard]] virtual bool poster_may_work() const { return true; }
  /// Reports that the engine, or the target, has refused a command; the engine then also refuses all later commands. A
  /// thread of the engine calls this once, before the command counts as done.
  ///   command  number of the command in the ring, starting at 1
  virtual void refused(std::uint64_t command, const std::string& reason) noexcept = 0;
  /// Reports that the counts of the ring have grown. Called by a thread of the engine.
  virtual void has_grown() noexcept = 0;

 protected:
  ~CarriedQueue() = default;
};

/// Statistics of puts to and gets from other nodes by memory keys (docs/memory-keys.md).
struct NetworkStatistics {
  std::uint64_t key_hits = 0;           ///< puts and gets that used a key
  std::uint64_t key_misses = 0;         ///< those sent in a message because the key had not arrived or does not
                                        ///< exist
  std::uint64_t key_overlaps = 0;       ///< those sent in a message because an earlier message may still use the same
                                        ///< memory
  std::uint64_t keys_ended = 0;         ///< keys that this rank has returned because their memory was to be unmapped
  std::uint64_t registered_pieces = 0;  ///< pieces of this rank's memory for which other ranks have keys
  std::uint64_t registered_bytes = 0;   ///< bytes of these pieces
  std::uint64_t pieces_ended = 0;       ///< pieces whose keys this rank has revoked
};

/// Carries the operations of one rank. The destructor ends the engine's threads; unfinished commands stay unfinished.
class Engine {
 public:
  virtual ~Engine() = default;
  /// The route to a peer other than the rank itself, which is direct.
  [[nodiscard]] virtual PeerRoute route_to(int peer) const = 0;
  /// Begins to serve the rings. Called once, before any post, and while no kernel of the rank runs, so that an engine
  /// that uses the GPU can load its kernels and warm up its streams.
  ///
  /// The engine takes the commands of a ring in order. Commands of one queue towards one peer take effect in this
  /// order. The engine publishes its progress with the functions of `CommandSource`.
  virtual void serve(const EngineClient& client) = 0;

  /// Also serves a command queue, until `close_queue` returns. Not called for engines of one node.
  virtual void open_queue([[maybe_unused]] CarriedQueue& queue) {}
  virtual void close_queue([[maybe_unused]] CarriedQueue& queue) {}

  /// Statistics of the engine's puts and gets. Engines of one node return zeros.
  [[nodiscard]] virtual NetworkStatistics network_statistics() const { return {}; }

  // Functions for the time after a failure. Engines of one node complete every command at once, so these functions do
  // nothing.

  /// Blocks until commands to `peers` no longer use any source in this rank's memory. The engine gives up a peer that
  /// does not accept data. Any thread may call it, also while other threads post.
  virtual void end_sources([[maybe_unused]] const std::vector<int>& peers) {}
  /// Blocks until all commands to the ranks `left` are done; commands to other ranks then count as done. This rank's
  /// threads must not post meanwhile. Returns the ranks of `left` that the engine no longer reaches.
  ///   deadline_ns  the engine gives up a rank of `left` that completes nothing for this time
  [[nodiscard]] virtual std::vector<int> settle([[maybe_unused]] const std::vector<int>& left,
                                                [[maybe_unused]] std::int64_t deadline_ns) {
    return {};
  }
  /// Called once all remaining ranks have settled: from then on earlier failures do not abort the world again.
  virtual void forget_failures() {}
};

/// Makes the engine of each rank of a world (`Config::engines`).
class EngineMaker {
 public:
  virtual ~EngineMaker() = default;
  ///   devices  the devices of all ranks
  [[nodiscard]] virtual std::unique_ptr<Engine> make(int rank, const std::vector<Device>& devices) const = 0;
};

/// An ordered source of an engine's commands: a ring, or another object with the same contents. One thread of the
/// engine uses it; any thread may call `wake`.
class CommandSource {
 public:
  virtual ~CommandSource() = default;

  /// Whether a command has been posted and not been taken.
  [[nodiscard]] virtual bool has_next() const = 0;
  /// The verb of the next command, which must have been posted.
  [[nodiscard]] virtual Verb next_verb() const = 0;
  /// Takes the next command, if it has been posted. Earlier writes of its poster are then visible. Its `sequence` is
  /// the number of commands taken.
  [[nodiscard]] virtual bool take(Command& command) = 0;
  /// Number of commands taken, including commands taken before this engine was made.
  [[nodiscard]] virtual std::uint64_t taken() const = 0;
  /// Lets posters reuse the slots of the commands that have been taken.
  virtual void release_slots() = 0;
  /// Sends the word's old value to the command's poster, once the command is done and its data are in place.
  virtual void answer(const Command& command, std::uint64_t value) = 0;
  /// Publishes that the sources of the first `reusable` commands may be reused.
  virtual void release_sources(DoneCount reusable) = 0;
  /// Publishes that the first `completed` commands are complete at their targets.
  virtual void complete(DoneCount completed) = 0;
  /// Publishes the number of refused commands; called before they count as completed.
  virtual void refuse(std::uint64_t commands) = 0;
  /// Sets the object that posters wake from now on; nullptr: posters wake none.
  virtual void set_waker(Waker* waker) noexcept = 0;
  virtual void wake() const noexcept = 0;
  /// Whether CPU threads that give this source work always wake the engine's thread, which otherwise looks for it.
  [[nodiscard]] virtual bool is_woken() const noexcept { return true; }
  /// Reports one refused command to its poster, if the source does so for each command: then the engine carries out
  /// later commands. Returns false if it does not: the engine then refuses all later commands, and calls `refuse`.
  [[nodiscard]] virtual bool report_refusal([[maybe_unused]] const Command& command,
                                            [[maybe_unused]] const char* reason) {
    return false;
  }
};

/// A ring as the source of commands. Its thread changes this object for every command, so the object shares no
/// `fetched_bytes` with the state of other threads.
class alignas(fetched_bytes) CommandReader final : public CommandSource {
 public:
  explicit CommandReader(CommandRing& ring) : ring_(&ring), next_(ring.taken.value), released_(next_) {}

  [[nodiscard]] bool has_next() const override;
  [[nodiscard]] Verb next_verb() const override;
  [[nodiscard]] bool take(Command& command) override;
  [[nodiscard]] std::uint64_t taken() const override { return next_; }
  void release_slots() override;
  void answer(const Command& command, std::uint64_t value) override;
  void release_sources(DoneCount reusable) override;
  void release_sources(const Command& command) { release_sources(DoneCount{command.sequence}); }
  void complete(DoneCount completed) override;
  void complete(const Command& command) { complete(DoneCount{command.sequence}); }
  void refuse(std::uint64_t commands) override;
  void set_waker(Waker* waker) noexcept override;
  void wake() const noexcept override;

 private:
  CommandRing* ring_;
  std::uint64_t next_;      ///< ticket of the next command
  std::uint64_t released_;  ///< ticket of the first command whose slot has not been released
};

}  // namespace beeline
