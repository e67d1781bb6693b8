// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Engines: what carries a rank's operations to peers that its loads and stores do not reach. A world asks its engine
/// once for the route to each peer; from then on the operations of kernels and of CPU threads post commands
/// (core/command.hpp), which the engine serves by threads of its own (docs/design.md, Routes).

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
#include "beeline/memory/memory_users.hpp"
#include "beeline/runtime/device.hpp"

namespace beeline {

/// The route to one peer.
struct PeerRoute {
  Way way = Way::direct;
  std::string reason;  ///< why it is not direct; errors say it
};

class Engine;

/// What an engine serves: one rank. It stays where it is for the engine's life.
struct EngineClient {
  int rank = 0, ranks = 1;  ///< of the world
  Device device;
  std::vector<CommandRing*> rings;  ///< those of its kernels, then those of its CPU threads
  Context context;                  ///< of its CPU threads: deadline and abort words
  /// The address in this process of an offset in a peer's slot, for engines of this node.
  std::function<std::byte*(std::uint32_t peer, std::uint64_t offset)> address_of;
  /// The piece of symmetric memory, of any rank of this node, that an address lies in; empty: none. It holds until
  /// `unmaps` grows.
  std::function<std::span<const std::byte>(const void* address)> piece_at;
  const std::atomic<std::uint64_t>* unmaps = nullptr;
  /// Threads of an engine that load and store in such memory are among them: none is unmapped meanwhile.
  MemoryUsers* memory_users = nullptr;
  /// Whether an address of the range is host memory.
  std::function<bool(const void* address)> is_host_memory;
  /// Keeps why a command was refused, where other ranks that wait in vain find it.
  std::function<void(const std::string& text)> note_refusal;
  /// Ends every wait of the world, for a reason that errors give.
  std::function<void(const std::string& reason)> fail;
  /// Carries what command queues hold for ranks of other nodes; nullptr: there are none.
  Engine* network = nullptr;
  /// Whether a rank is on another node.
  std::function<bool(std::uint32_t peer)> is_far;
};

/// What `CommandRing::asleep` points to: CPU threads call it when they have posted.
class Waker {
 public:
  virtual void wake() noexcept = 0;

 protected:
  ~Waker() = default;
};

/// What a command queue holds for ranks of other nodes: a ring of its own, which has one poster. Its `reusable` and
/// `completed` are in `DoneCount`.
class CarriedQueue {
 public:
  CommandRing ring{};

  /// The engine, or the rank that the command is for, has refused it: with it the engine refuses all that is posted
  /// later. Called once, before the command counts as done, by a thread of the engine.
  ///   command  its number in the ring, from 1 on
  virtual void refused(std::uint64_t command, const std::string& reason) noexcept = 0;
  /// The counts of the ring have grown. Called by a thread of the engine.
  virtual void has_grown() noexcept = 0;

 protected:
  ~CarriedQueue() = default;
};

/// Carries the operations of one rank. Its destructor ends its threads; commands that it has not done by then stay so.
class Engine {
 public:
  virtual ~Engine() = default;
  /// The route to a peer other than the rank itself, which is direct.
  [[nodiscard]] virtual PeerRoute route_to(int peer) const = 0;
  /// Begins to serve the rings. Called once, before anything is posted, and while no kernel of the rank runs: an engine
  /// that uses its GPU loads its kernels here, and warms its streams.
  ///
  /// It takes the commands of a ring in their order, and does those of one queue towards one peer so that they take
  /// effect in this order; it publishes what `CommandReader` has functions for.
  virtual void serve(const EngineClient& client) = 0;

  /// Serves a command queue, too, until `close_queue` returns. Engines of one node are not asked.
  virtual void open_queue([[maybe_unused]] CarriedQueue& queue) {}
  virtual void close_queue([[maybe_unused]] CarriedQueue& queue) {}

  // After failures. Engines of one node carry everything at once, and have nothing to do then.

  /// Returns once no source in this rank's memory of commands to `peers` is in use: an engine gives a peer up that does
  /// not take what goes to it. Any thread may call it, also while others post.
  virtual void end_sources([[maybe_unused]] const std::vector<int>& peers) {}
  /// While this rank's threads post nothing: returns once all that was posted to `left` is done, and what was posted to
  /// other ranks counts as done.
  /// Returns those among `left` that it does not reach any more.
  [[nodiscard]] virtual std::vector<int> settle([[maybe_unused]] const std::vector<int>& left) { return {}; }
  /// Once all ranks left have settled: nothing that failed before fails the world again.
  virtual void forget_failures() {}
};

/// Makes the engine of each rank of a world (`Config::engines`).
class EngineMaker {
 public:
  virtual ~EngineMaker() = default;
  ///   devices  of all ranks
  [[nodiscard]] virtual std::unique_ptr<Engine> make(int rank, const std::vector<Device>& devices) const = 0;
};

/// An engine's end of a ring. One thread uses it.
class CommandReader {
 public:
  explicit CommandReader(CommandRing& ring) : ring_(&ring), next_(ring.taken.value), released_(next_) {}

  /// Whether a command has been posted that is not taken.
  [[nodiscard]] bool has_next() const;
  /// What the next command does, which has been posted.
  [[nodiscard]] Verb next_verb() const;
  /// The next command, if it has been posted: what its poster did before is visible.
  [[nodiscard]] bool take(Command& command);
  /// Posters may use the slots of the commands that have been taken.
  void release_slots();
  /// Gives a command's poster what the word held, once the command is done and its data in place.
  void answer(const Command& command, std::uint64_t value);
  /// The sources of all commands up to this one may be reused.
  void release_sources(const Command& command) { release_sources(DoneCount{command.sequence}); }
  void release_sources(DoneCount reusable);
  /// All commands up to this one are in place at their targets.
  void complete(const Command& command) { complete(DoneCount{command.sequence}); }
  void complete(DoneCount completed);

 private:
  CommandRing* ring_;
  std::uint64_t next_;      ///< ticket of the next command
  std::uint64_t released_;  ///< of the first whose slot has not been released
};

}  // namespace beeline
