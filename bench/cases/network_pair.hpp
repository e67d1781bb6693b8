// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ranks 0 and 1 on different nodes: buffers and signals of theirs, and bare UCX beside them, over the same memory.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "beeline/device/put_get.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/ucx/ucx.hpp"

namespace beeline::bench {

/// Collective. Throws unavailable, on all ranks alike, where ranks 0 and 1 share memory.
void require_two_nodes(const Bench& bench);

/// Throws unavailable on GPU ranks, whose CPU threads put nothing.
void require_host_ranks(const Bench& bench);

/// Heaps that a message comes from and goes to: `pinned` is host memory, `symmetric` a GPU rank's own.
struct Memories {
  Heap source, destination;
};

/// The pairs of memories that these ranks have: of GPU ranks four. Throws unavailable for GPU ranks and host ranks.
[[nodiscard]] std::vector<Memories> all_memories(const Bench& bench);

/// Messages of `bytes`, each in a slot of its own, and behind them a word by which bare puts tell that they have come.
/// Bare UCX moves them between host memories. GPU ranks call the library in kernels of one thread.
class NetworkPair {
 public:
  /// Collective. Throws what `require_two_nodes` and `ucx::make_pair` throw.
  NetworkPair(Bench& bench, std::uint64_t bytes, std::uint64_t slots);

  [[nodiscard]] Bench& bench() const { return bench_; }
  [[nodiscard]] const Context& context() const { return bench_.world().host_context(); }
  /// In host memory, where bare UCX moves messages, and CPU threads of host ranks.
  [[nodiscard]] const std::shared_ptr<MessageBuffers>& buffers() const { return buffers_; }
  /// The same messages in other memories.
  [[nodiscard]] std::shared_ptr<MessageBuffers> buffers_in(Memories memories) const;
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t slots() const { return slots_; }
  /// Of a slot, in both buffers.
  [[nodiscard]] std::size_t place(std::uint64_t slot) const { return slot % slots_ * bytes_; }
  [[nodiscard]] ucx::Pair& bare() const { return *bare_; }

  /// The library's side: a put with its signal, and the wait for the peer's.
  void put_signal();
  void await_signal();
  void put(std::uint64_t slot);
  void signal();
  void quiet();

  // The same on GPU ranks; collective.
  /// Rounds of puts into all slots by rank 0, and a quiet.
  [[nodiscard]] std::vector<double> time_puts(Memories memories, Rounds rounds);
  /// Round trips of puts with their signals.
  [[nodiscard]] std::vector<double> time_put_signals(Memories memories, Rounds rounds);

  /// UCX's side: one put of the only slot and the word behind it, which is flushed; the wait for the peer's.
  void bare_put_flush() { bare_put_from(0); }
  /// A put; the word alone, flushed.
  void bare_put(std::uint64_t slot) { bare().put(buffers_->source() + place(slot), place(slot), bytes_); }
  void bare_signal() { bare_put_from(word_place_); }
  void await_bare_put();
  /// One active message into a slot; the wait for so many.
  ///   is_kept  or the receiver drops it
  void bare_send(std::uint64_t slot, bool is_kept = true) {
    bare().send(buffers_->source() + place(slot), is_kept ? place(slot) : ucx::sink, bytes_);
  }
  /// One without bytes.
  void bare_answer() { bare().send(buffers_->source(), 0, 0); }
  void await_bare_messages(std::uint64_t messages);
  /// Behind a loop of bare UCX: what one rank still waits for needs the other's progress.
  void bare_settle();

 private:
  [[nodiscard]] std::uint64_t& word_of(std::byte* buffer) const {
    return *reinterpret_cast<std::uint64_t*>(buffer + word_place_);
  }
  void bare_put_from(std::uint64_t place);

  Bench& bench_;
  const std::uint64_t bytes_, slots_, word_place_;
  std::shared_ptr<SymmetricArray<std::byte>> memory_;       ///< source, then destination
  std::shared_ptr<SymmetricArray<std::byte>> host_memory_;  ///< the same; on host ranks it is the same memory
  std::shared_ptr<MessageBuffers> buffers_;
  SymmetricArray<PaddedWord> signals_;
  TimedKernel timed_;
  std::unique_ptr<ucx::Pair> bare_;
  std::uint64_t sent_ = 0, awaited_ = 0, bare_sent_ = 0, bare_awaited_ = 0, bare_received_ = 0;
};

/// Messages between host memories.
inline constexpr Memories host_memories{Heap::pinned, Heap::pinned};

/// A measurement between the two, verified, of messages that fill all slots in one iteration; of bare UCX where the
/// method says so.
[[nodiscard]] Measurement network_measurement(const std::shared_ptr<NetworkPair>& pair, Receivers receivers,
                                              std::string method, std::function<std::vector<double>(Rounds)> time,
                                              Memories memories = host_memories);

}  // namespace beeline::bench
