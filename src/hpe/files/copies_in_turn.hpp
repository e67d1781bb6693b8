// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Copies of a transfer that the caller's stream makes itself, at the transfer's bidding.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hpe/awaited_word.hpp"
#include "hpe/files/staged_copies.hpp"
#include "hpe/files/transfer.hpp"
#include "hpe/stream_state.hpp"

namespace beeline::hpe::detail {

/// For each block in turn the stream waits for a word that the transfer stores, copies, and stores another word. The
/// transfer uses no device: while a GPU's stream waits, work that is given to another stream may not begin (a GPU has
/// few hardware queues), and calls of CUDA in other threads may not end.
class CopiesInTurn final : public StagedCopies {
 public:
  ///   is_pinned     a GPU's stream waits for the words
  ///   is_abandoned  set once the stream will not make all copies: `start` and `is_done` throw from then on
  CopiesInTurn(const FileTransfer& transfer, const Proceeding& how, std::byte* buffers, bool is_pinned,
               const std::atomic<bool>& is_abandoned);
  /// Puts the copies on the stream. The transfer may go on meanwhile: CUDA takes some only after the stream has made
  /// others. If it throws, `is_abandoned` must be set.
  void enqueue(StreamState& stream);

  /// Lets the stream make the slot's next copy, whose addresses are known.
  [[nodiscard]] bool start(unsigned slot, std::byte* to, const std::byte* from, std::size_t bytes) override;
  bool is_done(unsigned slot) override;
  /// The buffers stay until the stream has passed all copies, with or without the transfer.
  bool settle() noexcept override { return true; }
  /// Ends the stream's waits, so that it makes the copies that are left, of bytes without meaning.
  void release() noexcept;

 private:
  struct Slot {
    explicit Slot(bool is_pinned) : may_begin(is_pinned), ended(is_pinned) {}
    AwaitedWord may_begin, ended;
    std::size_t started = 0;  ///< copies
  };
  struct EnqueuedCopy {
    FileBlock block;
    std::uint64_t begin_value, end_value;
  };
  [[nodiscard]] const EnqueuedCopy& copy_of(unsigned slot, std::size_t number) const {
    return copies_[number * slots_.size() + slot];
  }
  void require_all() const;

  const bool reads_;
  std::byte *const memory_, *const buffers_;
  const std::size_t buffer_bytes_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<EnqueuedCopy> copies_;  ///< of all blocks
  const std::atomic<bool>& is_abandoned_;
};

}  // namespace beeline::hpe::detail
