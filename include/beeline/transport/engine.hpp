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

/// Bytes that CPUs fetch together: two lines of the cache. Each thread changes its own state for every command, so no
/// two threads have state in the same ones.
inline constexpr std::size_t fetched_bytes = 128;

/// The route to one peer.
struct PeerRoute {
  PeerAccess access = PeerAccess::direct;
  std::string reason;  ///< why the route is not direct, for errors
};

class Engine;
class MemoryUsers;

/// The rank that an engine serves. The object must outlive the engine, at the same address.
struct EngineClient {
  int rank = 0, ranks = 1;  ///< of the world
  Device device;
  std::vector<CommandRing*> rings;  ///< those of its kernels, then those of its CPU threads
  Context context;                  ///< of its CPU threads: deadline and abort words
  /// The address in this process of an offset in a peer's slot, for engines of this node.
  std::function<std::byte*(std::uint32_t peer, std::uint64_t offset)> address_of;
  /// The piece of symmetric memory, of any rank of this node, that contains an address; empty: none. Valid until
  /// `unmaps` grows.
  std::function<std::span<const std::byte>(const void* address)> piece_at;
  const std::atomic<std::uint64_t>* unmaps = nullptr;
  /// Threads of an engine register here while they load from and store to such memory, so that none is unmapped
  /// meanwhile.
  MemoryUsers* memory_users = nullptr;
  /// Whether an address of the range is host memory.
  std::function<bool(const void* address)> is_host_memory;
  /// Records why a command was refused, for the errors of other ranks that wait for its effect.
  std::function<void(const std::string& text)> note_refusal;
  /// Ends every wait of the world, for a reason that errors give.
  std::function<void(const std::string& reason)> fail;
  /// Carries commands of command queues to ranks of other nodes; nullptr: there are no other nodes.
  Engine* network = nullptr;
  /// Whether a rank is on another node.
  std::function<bool(std::uint32_t peer)> is_remote;
};

/// The object to which `CommandRing::asleep` points: CPU threads call it after they have posted, and when they begin to
/// wait until all that they have posted is in place.
class Waker {
 public:
  virtual void wake() noexcept = 0;

 protected:
  ~Waker() = default;
};

/// The commands of a command queue for ranks of other nodes: a separate ring with one poster. Its `reusable` and
/// `completed` are `DoneCount` words.
class CarriedQueue {
 public:
  CommandRing ring{};

  /// The engine, or the target of the command, has refused it; the engine then also refuses everything posted later. A
  /// thread of the engine calls this once, before the command counts as done.
  ///   command  its number in the ring, starting at 1
  virtual void refused(std::uint64_t command, const std::string& reason) noexcept = 0;
  /// The counts of the ring have grown. Called by a thread of the engine.
  virtual void has_grown() noexcept = 0;

 protected:
  ~CarriedQueue() = default;
};

/// How puts to other nodes have gone by memory keys so far (docs/network.md).
struct NetworkStatistics {
  std::uint64_t key_hits = 0;           ///< long puts that went by a key
  std::uint64_t key_misses = 0;         ///< that went in a message, since the key had not come, or there is none
  std::uint64_t key_overlaps = 0;       ///< that went in a message, since one before them may still use that memory
  std::uint64_t keys_ended = 0;         ///< keys that this rank has given back, since their memory was to be unmapped
  std::uint64_t registered_pieces = 0;  ///< pieces of this rank's memory of which others have keys
  std::uint64_t registered_bytes = 0;   ///< of them
  std::uint64_t pieces_ended = 0;       ///< pieces of which it has taken the keys back
};

/// Carries the operations of one rank. The destructor ends the engine's threads; unfinished commands stay unfinished.
class Engine {
 public:
  virtual ~Engine() = default;
  /// The route to a peer other than the rank itself, which is direct.
  [[nodiscard]] virtual PeerRoute route_to(int peer) const = 0;
  /// Begins to serve the rings. Called once, before anything is posted, and while no kernel of the rank runs, so that
  /// an engine that uses the GPU can load its kernels and warm up its streams.
  ///
  /// It takes the commands of a ring in order. Commands of one queue towards one peer take effect in this order. It
  /// publishes its progress with the functions of `CommandSource`.
  virtual void serve(const EngineClient& client) = 0;

  /// Also serves a command queue, until `close_queue` returns. Not called for engines of one node.
  virtual void open_queue([[maybe_unused]] CarriedQueue& queue) {}
  virtual void close_queue([[maybe_unused]] CarriedQueue& queue) {}

  /// Of the puts that it has carried. Engines of one node have none.
  [[nodiscard]] virtual NetworkStatistics network_statistics() const { return {}; }

  // After failures. Engines of one node carry everything at once, and have nothing to do then.

  /// Blocks until commands to `peers` no longer use any source in this rank's memory. The engine gives up a peer that
  /// does not accept data. Any thread may call it, also while others post.
  virtual void end_sources([[maybe_unused]] const std::vector<int>& peers) {}
  /// Blocks until everything posted to the ranks `left` is done; commands to other ranks then count as done. This
  /// rank's threads must not post meanwhile. Returns the ranks of `left` that the engine no longer reaches.
  [[nodiscard]] virtual std::vector<int> settle([[maybe_unused]] const std::vector<int>& left) { return {}; }
  /// Called once all remaining ranks have settled: earlier failures do not abort the world again.
  virtual void forget_failures() {}
};

/// Makes the engine of each rank of a world (`Config::engines`).
class EngineMaker {
 public:
  virtual ~EngineMaker() = default;
  ///   devices  of all ranks
  [[nodiscard]] virtual std::unique_ptr<Engine> make(int rank, const std::vector<Device>& devices) const = 0;
};

/// Where an engine's commands come from: a ring, or whatever else says what a command says, in an order. One thread of
/// the engine uses it; any thread may call `wake`.
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
  /// Number of commands taken, those before the engine included.
  [[nodiscard]] virtual std::uint64_t taken() const = 0;
  /// Lets posters reuse the slots of the commands that have been taken.
  virtual void release_slots() = 0;
  /// Answers a command's poster with the word's old value, once the command is done and its data are in place.
  virtual void answer(const Command& command, std::uint64_t value) = 0;
  /// The sources of all commands up to this one may be reused.
  virtual void release_sources(DoneCount reusable) = 0;
  /// All commands up to this one are in place at their targets.
  virtual void complete(DoneCount completed) = 0;
  /// So many commands have been refused; called before they count as completed.
  virtual void refuse(std::uint64_t commands) = 0;
  /// From now on posters wake this object; nullptr: they need not.
  virtual void set_waker(Waker* waker) noexcept = 0;
  virtual void wake() const noexcept = 0;
};

/// The source of commands that is a ring. Its reader changes it for every command: other threads' state is not in the
/// lines of the cache that CPUs fetch together.
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
