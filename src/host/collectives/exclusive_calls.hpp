// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One call at a time on a `Collectives` object.

#include <mutex>

#include "beeline/collectives/operation.hpp"
#include "host/blocking_streams.hpp"

namespace beeline::detail {

/// Refuses a host call while another thread makes a call on the same object, or waits in one. (A call on a stream of
/// the caller counts as made once it is enqueued; session.hpp detects kernels that run at the same time.) Thread-safe.
class ExclusiveCalls {
 public:
  ///   streams  the streams that the rank lends to blocking calls
  ExclusiveCalls(const BlockingStreams& streams, int rank) : streams_(streams), rank_(rank) {}

  /// A call from its start to its end.
  class Call {
   public:
    ///   stream  the call's stream: if it is lent, the call lasts as long as the loan
    /// Throws invalid_argument, naming both calls.
    Call(ExclusiveCalls& calls, const CallDescription& what, const Stream* stream);
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call();

   private:
    ExclusiveCalls& calls_;
  };

 private:
  const BlockingStreams& streams_;
  const int rank_;
  std::mutex mutex_;
  bool is_made_ = false;  ///< a call is being made now
  CallDescription last_;
  BlockingStreams::Loan loan_;  ///< loan of the last call's stream
};

}  // namespace beeline::detail
