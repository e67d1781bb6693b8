// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The streams of a world's blocking calls.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "beeline/transport/stream.hpp"

namespace beeline {

/// A stream that blocking calls use, one call after the other.
struct LentStream {
  explicit LentStream(std::unique_ptr<Stream> made) : stream(std::move(made)) {}
  const std::unique_ptr<Stream> stream;
  std::atomic<std::uint64_t> loan{0};  ///< number of the call that uses the stream; 0: none
};

/// Streams that are lent to blocking calls, one to each. There are as many streams as calls have run at the same time.
/// Thread-safe.
class BlockingStreams {
 public:
  /// One call's use of a stream.
  struct Loan {
    const LentStream* lent = nullptr;  ///< nullptr: no loan
    std::uint64_t number = 0;

    [[nodiscard]] bool is_current() const { return lent != nullptr && lent->loan == number; }
  };

  /// Lends a stream without work, or a new one that `make` returns. The call gives it back by setting its `loan` to 0.
  template <class Make>
  [[nodiscard]] LentStream& lend(const Make& make) {
    const std::lock_guard lock(mutex_);
    LentStream* free = find_free();
    if (free == nullptr) free = &streams_.emplace_back(make());
    free->loan = ++loans_;
    return *free;
  }
  /// Adds a stream that no call uses yet.
  void add(std::unique_ptr<Stream> stream);
  /// The current loan of `stream`, if it belongs to these streams.
  [[nodiscard]] Loan loan_of(const Stream* stream) const;
  /// Destroys all streams. No stream may be lent.
  void clear();

 private:
  [[nodiscard]] LentStream* find_free();

  mutable std::mutex mutex_;
  std::deque<LentStream> streams_;
  std::uint64_t loans_ = 0;
};

}  // namespace beeline
