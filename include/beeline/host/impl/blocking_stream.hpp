// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The stream on which a blocking call runs.

#include <atomic>

#include "beeline/core/status.hpp"
#include "beeline/host/team.hpp"
#include "beeline/transport/stream.hpp"

namespace beeline {

struct LentStream;

namespace detail {

/// A stream of the world, lent to one blocking call. Each call has its own, so that calls of different objects, from
/// different threads, do not wait for each other. If the call ends before its work does, as after a time-out or an
/// exception, the default stream waits for the rest.
class BlockingStream {
 public:
  /// Throws no_resource if too many streams exist.
  explicit BlockingStream(World& world);
  ~BlockingStream();

  [[nodiscard]] Stream& stream() const;
  /// Waits for the earlier work of the default stream, and throws its errors.
  void await_default();
  /// Holds the call's work until the earlier work of the default stream has ended: for a call with a time-out.
  void follow_default();
  /// Waits for the call's work, and throws its errors; `timeout` if it has not ended by then.
  Status finish(Timeout timeout = Timeout::none());
  /// Holds later work of the default stream until the call's work has ended.
  void hold_default();

 private:
  World& world_;
  LentStream& lent_;
  std::atomic<bool> has_ended_{false};
};

/// Makes a call with the options `how`. If `how` has a stream, the call is asynchronous. Otherwise it runs on a
/// separate stream after the earlier work of the default stream (on a host rank by this thread), and this function
/// waits for it and throws its errors.
template <class Options, class Call>
void make_call(Team& team, Options how, const Call& call) {
  if (how.stream != nullptr) return call(how);
  BlockingStream own(team.world());
  own.await_default();
  how.stream = &own.stream();
  {
    const WorkHere here(own.stream());
    call(how);
  }
  own.finish();
}

}  // namespace detail

}  // namespace beeline
