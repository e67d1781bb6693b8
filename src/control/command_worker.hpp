// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What does an engine's commands: a CPU thread, or a GPU's copy engine and kernels of one thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "beeline/device/impl/verbs.hpp"
#include "beeline/transport/engine.hpp"

namespace beeline {

class GpuWindows;

/// Commands that are begun together at most, and how often a worker has so many under way.
inline constexpr std::size_t command_batch = 64, batches_under_way = 4;

/// Carries out commands of one ring or of several: those of a ring in their order, one ring's after the other's. This
/// class does it by loads and stores of the calling thread, so that each command is over when it has begun: the
/// reference execution. Workers of other devices override what their devices do.
class alignas(fetched_bytes) CommandWorker {
 public:
  CommandWorker() = default;
  virtual ~CommandWorker() = default;
  CommandWorker(const CommandWorker&) = delete;
  CommandWorker& operator=(const CommandWorker&) = delete;

  /// Begins a command, its signal left out, after those of its ring that it began before.
  ///   command  needed no longer than the call
  ///   remote   the address that it names at the peer, all of which is mapped; of `copy` its destination, of which
  ///            nothing is known
  ///   slot     below `command_batch * batches_under_way`; of no other command that is under way
  /// Returns why it is refused; then nothing was touched. nullptr: it is not.
  [[nodiscard]] const char* begin(const Command& command, std::byte* remote, std::size_t slot) {
    if (has_shape<VerbShape::payload>(command.verb)) return put_inline(command, remote, slot), nullptr;
    if (has_shape<VerbShape::word, VerbShape::atomic>(command.verb)) return change(command, remote, slot), nullptr;
    return move(rows_of(command, remote));
  }

  /// Bytes of commands that begin together: they end together, and no other commands begin meanwhile.
  [[nodiscard]] virtual std::size_t batch_bytes() const { return std::size_t{64} << 10; }  // a few us
  /// The commands of another ring come next: nothing orders them with those before.
  ///   is_under_way      but with those that the ring has under way, behind which they take effect
  ///   own_is_under_way  whether other devices may not see yet what the CPU has stored to the own GPU's memory for the
  ///                     ring: the worker's to change, until the next call. nullptr: of a worker without windows
  virtual void begin_ring([[maybe_unused]] bool is_under_way, [[maybe_unused]] bool* own_is_under_way) {}
  /// Behind the last command of a ring. Returns whether any is under way, those before included: not on a host rank,
  /// nor words that the CPU has stored in host memory. The device, or `tell`, may store `done` into `mirror`, a word of
  /// the device's memory (nullptr: none), when the ring's commands are over, so that nobody waits for this thread to
  /// notice it, nor reads across the bus.
  [[nodiscard]] virtual bool end_ring([[maybe_unused]] std::uint64_t* mirror, [[maybe_unused]] std::uint64_t done) {
    return false;
  }
  /// Behind the last ring: the device does now what is under way. Returns the number of this call.
  virtual std::uint64_t submit() { return 0; }
  /// Behind all calls of `submit` of a turn: the CPU stores those words of `end_ring` that the device does not.
  virtual void tell() {}
  /// Whether all that was begun before that call is over, and visible.
  [[nodiscard]] virtual bool over([[maybe_unused]] std::uint64_t submission) { return true; }
  /// Whether all that was begun is.
  [[nodiscard]] virtual bool over() { return true; }
  /// Words and payloads that the CPU has stored into GPU memory by itself. Any thread may ask.
  [[nodiscard]] virtual std::uint64_t cpu_stores() const { return 0; }
  /// The old value of the word that the command in a slot changed, once it is over.
  [[nodiscard]] virtual std::uint64_t result(std::size_t slot) const { return results_[slot]; }

 protected:
  /// Copies rows. Returns why it refuses them, before anything is touched; nullptr: it does not.
  virtual const char* move(const RowMove& rows);
  /// Stores the bytes that a command holds.
  virtual void put_inline(const Command& command, std::byte* remote, std::size_t slot);
  /// Stores or changes a word.
  virtual void change(const Command& command, std::byte* remote, std::size_t slot);

 private:
  std::array<std::uint64_t, command_batch * batches_under_way> results_{};
};

/// That of a host rank, which refuses memory that is not there. The client stays where it is for a worker's life.
[[nodiscard]] std::unique_ptr<CommandWorker> make_host_worker(const EngineClient& client);
/// That of a GPU rank; loads its kernels. Throws unavailable in builds without CUDA.
///   windows  on GPU memory that the CPU stores into, which outlive it; nullptr: none
[[nodiscard]] std::unique_ptr<CommandWorker> make_gpu_worker(const EngineClient& client, const GpuWindows* windows);
/// That of the client's device.
[[nodiscard]] std::unique_ptr<CommandWorker> make_worker(const EngineClient& client,
                                                         const GpuWindows* windows = nullptr);

}  // namespace beeline
