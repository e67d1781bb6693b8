// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ranks 0 and 1 on different nodes: their buffers and signals, and bare UCX over the same memory for comparison.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "beeline/device/put_get.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/ucx/ucx.hpp"

namespace beeline::bench {

/// Collective. If ranks 0 and 1 share memory, throws unavailable on all ranks.
void require_two_nodes(const Bench& bench);

/// Throws unavailable on GPU ranks, whose CPU threads do not put.
void require_host_ranks(const Bench& bench);

/// Heaps of a message's source and destination: `pinned` is host memory, `symmetric` is a GPU rank's own memory.
struct Memories {
  Heap source, destination;
};

/// The pairs of memories that these ranks have; GPU ranks have four. Throws unavailable for one GPU and one host rank.
[[nodiscard]] std::vector<Memories> all_memories(const Bench& bench);

/// Messages of `bytes`, each in its own slot, followed by a word by which bare puts notify the receiver. Bare UCX moves
/// messages between host memories. GPU ranks call the library in kernels of one thread.
class NetworkPair {
 public:
  /// Collective. Throws what `require_two_nodes` throws.
  NetworkPair(Bench& bench, std::uint64_t bytes, std::uint64_t slots);

  [[nodiscard]] Bench& bench() const { return bench_; }
  [[nodiscard]] const Context& context() const { return bench_.world().host_context(); }
  /// The buffers in host memory, for bare UCX and for CPU threads of host ranks.
  [[nodiscard]] const std::shared_ptr<MessageBuffers>& buffers() const { return buffers_; }
  /// The buffers of the same messages in other memories.
  [[nodiscard]] std::shared_ptr<MessageBuffers> buffers_in(Memories memories) const;
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t slots() const { return slots_; }
  /// Offset of a slot in both buffers.
  [[nodiscard]] std::size_t place(std::uint64_t slot) const { return slot % slots_ * bytes_; }
  [[nodiscard]] ucx::Pair& bare() const { return *bare_; }
  /// Why there is no bare UCX here; empty: there is.
  [[nodiscard]] const std::string& lacking() const { return lacking_; }

  /// The library's calls: a put with its signal, and the wait for the peer's signal.
  void put_signal();
  void await_signal();
  void put(std::uint64_t slot);
  void get();
  void signal();
  void quiet();

  // The same calls on GPU ranks; collective.
  // Times rounds of puts by rank 0 into all slots, each round followed by a quiet.
  [[nodiscard]] std::vector<double> time_puts(Memories memories, Rounds rounds);
  /// Times round trips of puts with signals.
  [[nodiscard]] std::vector<double> time_put_signals(Memories memories, Rounds rounds);
  /// Times gets by rank 0.
  [[nodiscard]] std::vector<double> time_gets(Memories memories, Rounds rounds);

  /// UCX's calls: a put of the only slot and of the word after it, flushed; and the wait for the peer's word.
  void bare_put_flush() { bare_put_from(0); }
  /// A put alone, and the word alone, which is flushed.
  void bare_put(std::uint64_t slot) { bare().put(buffers_->source() + place(slot), there(place(slot)), bytes_); }
  /// A get of the only slot of the peer's source.
  void bare_get() { bare().get(buffers_->destination(), 0, bytes_); }
  void bare_signal() { bare_put_from(word_place_); }
  void await_bare_put();
  /// One active message into a slot, and the wait for `messages` of them.
  ///   is_kept  false: the receiver drops the message
  void bare_send(std::uint64_t slot, bool is_kept = true) {
    bare().send(buffers_->source() + place(slot), is_kept ? there(place(slot)) : ucx::sink, bytes_);
  }
  /// Sends an active message without bytes.
  void bare_answer() { bare().send(buffers_->source(), there(0), 0); }
  void await_bare_messages(std::uint64_t messages);
  /// Called after a loop of bare UCX: each rank makes progress until the other's pending operations are complete.
  void bare_settle();

 private:
  [[nodiscard]] std::uint64_t& word_of(std::byte* buffer) const {
    return *reinterpret_cast<std::uint64_t*>(buffer + word_place_);
  }
  void bare_put_from(std::uint64_t place);
  /// The offset of the peer's destination in the target of bare UCX, which begins with the source.
  [[nodiscard]] std::size_t there(std::size_t place) const { return host_memory_->count() / 2 + place; }

  Bench& bench_;
  const std::uint64_t bytes_, slots_, word_place_;
  std::shared_ptr<SymmetricArray<std::byte>> memory_;       ///< source, then destination
  std::shared_ptr<SymmetricArray<std::byte>> host_memory_;  ///< as above; on host ranks the same array
  std::shared_ptr<MessageBuffers> buffers_;
  SymmetricArray<PaddedWord> signals_;
  TimedKernel timed_;
  std::unique_ptr<ucx::Pair> bare_;
  std::string lacking_;
  std::uint64_t sent_ = 0, awaited_ = 0, bare_sent_ = 0, bare_awaited_ = 0, bare_received_ = 0;
};

/// Messages between host memories.
inline constexpr Memories host_memories{Heap::pinned, Heap::pinned};

/// A verified measurement between the two ranks, of messages that fill all slots in one iteration. `method` says
/// whether bare UCX moves them.
[[nodiscard]] Measurement network_measurement(const std::shared_ptr<NetworkPair>& pair, Receivers receivers,
                                              std::string method, std::function<std::vector<double>(Rounds)> time,
                                              Memories memories = host_memories);

}  // namespace beeline::bench
