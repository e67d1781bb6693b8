// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One call at a time on a `Collectives` object.

#include <mutex>

#include "beeline/collectives/operation.hpp"
#include "host/blocking_streams.hpp"

namespace beeline::detail {

/// Refuses a call of the host that is made while another thread makes one on the same object, or waits in one. (Calls
/// on streams of the caller's are made when they are enqueued; kernels that run at the same time find each other, see
/// session.hpp.) Any thread may use it.
class ExclusiveCalls {
 public:
  ///   streams  those that the rank lends to blocking calls
  ExclusiveCalls(const BlockingStreams& streams, int rank) : streams_(streams), rank_(rank) {}

  /// A call, while it is made.
  class Call {
   public:
    ///   stream  on which it runs: if it is lent, the call lasts as long as the loan
    /// Throws invalid_argument that names both calls.
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
  BlockingStreams::Loan loan_;  ///< of the last call's stream
};

}  // namespace beeline::detail
