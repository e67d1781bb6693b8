// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The streams of a world's blocking calls.

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "beeline/transport/stream.hpp"

namespace beeline {

/// Streams that are lent to blocking calls, one to each. There are as many as calls have been made at the same time.
/// Any thread may use it.
class BlockingStreams {
 public:
  /// One use of a stream; number 0: none.
  struct Loan {
    const Stream* stream = nullptr;
    std::uint64_t number = 0;
  };

  /// Lends a stream without work; if there is none, what `make` returns.
  template <class Make>
  [[nodiscard]] Stream& lend(const Make& make) {
    const std::lock_guard lock(mutex_);
    Cell* free = find_free();
    if (free == nullptr) free = &cells_.emplace_back(make());
    free->loan = ++loans_;
    return *free->stream;
  }
  /// Adds a stream that nobody uses yet.
  void add(std::unique_ptr<Stream> stream);
  void give_back(const Stream& stream) noexcept;
  /// The current loan of a stream, if it is one of these.
  [[nodiscard]] Loan loan_of(const Stream* stream) const;
  [[nodiscard]] bool is_current(const Loan& loan) const {
    return loan.number != 0 && loan_of(loan.stream).number == loan.number;
  }
  /// Destroys all streams. None is lent.
  void clear();

 private:
  struct Cell {
    explicit Cell(std::unique_ptr<Stream> made) : stream(std::move(made)) {}
    std::unique_ptr<Stream> stream;
    std::uint64_t loan = 0;  ///< 0: nobody uses it
  };
  [[nodiscard]] Cell* find_free();

  mutable std::mutex mutex_;
  std::deque<Cell> cells_;
  std::uint64_t loans_ = 0;
};

}  // namespace beeline
