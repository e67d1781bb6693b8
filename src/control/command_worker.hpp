// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What carries out an engine's commands: a CPU thread, or a GPU's copy engine and kernels of one thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "beeline/device/impl/verbs.hpp"
#include "beeline/transport/engine.hpp"

namespace beeline {

class GpuWindows;

/// Most commands of a batch; most batches of a worker in flight.
inline constexpr std::size_t command_batch = 64, batches_under_way = 4;

/// Carries out commands of one or several rings: a ring's commands in their order, one ring after the other. This class
/// uses loads and stores of the calling thread, so that each command is over when `begin` returns: the reference
/// execution. Workers of other devices override the parts that their devices carry out.
class alignas(fetched_bytes) CommandWorker {
 public:
  CommandWorker() = default;
  virtual ~CommandWorker() = default;
  CommandWorker(const CommandWorker&) = delete;
  CommandWorker& operator=(const CommandWorker&) = delete;

  /// Called first by the thread that makes all other calls.
  virtual void enter_thread() {}

  /// Begins a command without its signal, after the earlier commands of its ring.
  ///   command  used only during the call
  ///   remote   the address that the command names at the peer, where all its bytes are mapped; for `copy` its
  ///       destination, which is not checked
  ///   slot     below `command_batch * batches_under_way`; used by no other command in flight
  /// Returns nullptr, or why the command is refused; nothing was touched then.
  [[nodiscard]] const char* begin(const Command& command, std::byte* remote, std::size_t slot) {
    if (has_shape<VerbShape::payload>(command.verb)) return put_inline(command, remote, slot), nullptr;
    if (has_shape<VerbShape::word, VerbShape::atomic>(command.verb)) return change(command, remote, slot), nullptr;
    return move(rows_of(command, remote));
  }
  /// Begins to copy rows, as a command that moves rows does.
  [[nodiscard]] const char* begin(const RowMove& rows) { return move(rows); }

  /// Begins the entries of a `batch`, one after the other, whose targets have been checked. Returns nullptr, or why the
  /// entry `index` is refused.
  ///   targets  [entries] the address of each
  [[nodiscard]] virtual const char* begin_all(const Command& batch, std::span<const BatchEntry> entries,
                                              std::byte* const* targets, std::size_t slot, std::size_t& index) {
    for (index = 0; index < entries.size(); ++index)
      if (const char* const refused = begin(command_of(batch, entries[index]), targets[index], slot)) return refused;
    return nullptr;
  }

  /// No command is added to a batch of this many bytes, since a batch's commands end together and no others begin
  /// meanwhile.
  [[nodiscard]] virtual std::size_t batch_bytes() const { return std::size_t{64} << 10; }  // takes a few us
  /// Begins the commands of another ring, which have no order relative to other rings' commands.
  ///   is_under_way      whether the ring has commands in flight, after which the new ones take effect
  ///   own_is_under_way  whether other devices may not yet see the CPU's stores to the own GPU's memory for the ring.
  ///       The worker may change it until the next call. nullptr: for a worker without windows
  virtual void begin_ring([[maybe_unused]] bool is_under_way, [[maybe_unused]] bool* own_is_under_way) {}
  /// Called after the last command of a ring. Returns whether any of its commands, earlier ones included, is in flight:
  /// never on a host rank, nor for words that the CPU has stored in host memory. When the ring's commands are over, the
  /// device or `publish_counts` may store `done` into `mirror`, a word of the device's memory (nullptr: none). Posters
  /// that read it wait neither for this thread nor for a read across the bus.
  [[nodiscard]] virtual bool end_ring([[maybe_unused]] std::uint64_t* mirror, [[maybe_unused]] std::uint64_t done) {
    return false;
  }
  /// Called after the last ring: starts the device's work. Returns the number of this call.
  virtual std::uint64_t submit() { return 0; }
  /// Called after all `submit` calls of a round: the CPU stores the words of `end_ring` that the device does not store.
  virtual void publish_counts() {}
  /// Whether all commands begun before a call of `submit` are over, and visible.
  [[nodiscard]] virtual bool over([[maybe_unused]] std::uint64_t submission) { return true; }
  /// Whether all commands that were begun are over.
  [[nodiscard]] virtual bool over() { return true; }
  /// Words and payloads that the CPU has stored into GPU memory. Any thread may call it.
  [[nodiscard]] virtual std::uint64_t cpu_stores() const { return 0; }
  /// The old value of the word that the command in `slot` has changed. Valid once the command is over.
  [[nodiscard]] virtual std::uint64_t result(std::size_t slot) const { return results_[slot]; }

 protected:
  /// Copies rows. Returns nullptr, or why the rows are refused; nothing was touched then.
  virtual const char* move(const RowMove& rows);
  /// Stores the bytes that a command contains.
  virtual void put_inline(const Command& command, std::byte* remote, std::size_t slot);
  /// Stores or changes a word.
  virtual void change(const Command& command, std::byte* remote, std::size_t slot);

 private:
  std::array<std::uint64_t, command_batch * batches_under_way> results_{};
};

/// The worker of a host rank, which refuses memory that is not mapped. Keeps a reference to `client`.
[[nodiscard]] std::unique_ptr<CommandWorker> make_host_worker(const EngineClient& client);
/// The worker of a GPU rank; loads its kernels. Throws unavailable in builds without CUDA.
///   windows  on GPU memory that the CPU stores into; must outlive the worker; nullptr: none
[[nodiscard]] std::unique_ptr<CommandWorker> make_gpu_worker(const EngineClient& client, const GpuWindows* windows);
/// The worker for the client's device.
[[nodiscard]] std::unique_ptr<CommandWorker> make_worker(const EngineClient& client,
                                                         const GpuWindows* windows = nullptr);

}  // namespace beeline
