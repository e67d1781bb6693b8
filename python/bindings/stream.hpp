// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `beeline.Stream`: an in-order queue of work, with the Python objects that pending work uses.

#include <nanobind/nanobind.h>

#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "beeline/host/impl/blocking_stream.hpp"
#include "joined_world.hpp"
#include "tensor.hpp"
#include "timeout.hpp"
#include "unlocked.hpp"

namespace beeline::python {

class StreamObject {
 public:
  /// The rank's default stream.
  explicit StreamObject(std::shared_ptr<JoinedWorld> world);
  /// A new stream.
  StreamObject(std::shared_ptr<JoinedWorld> world, std::unique_ptr<Stream> owned);
  StreamObject(StreamObject&&) = default;
  ~StreamObject();

  [[nodiscard]] const std::shared_ptr<JoinedWorld>& joined() const { return world_; }
  /// Throws invalid_argument if this rank has left the world.
  [[nodiscard]] Stream& stream() const;
  /// Keeps `tensors`, and the object on which the next call is made (if any), alive until the call's work is over. A
  /// later `keep` or `let_go` finds out that it is over.
  void keep(std::initializer_list<const Tensor*> tensors, nanobind::object called = {});
  void let_go();

 private:
  std::shared_ptr<JoinedWorld> world_;
  std::unique_ptr<Stream> owned_;
  Stream* stream_;
  std::vector<nanobind::object> used_;     ///< objects of calls after the point where `between_` was recorded
  std::vector<nanobind::object> earlier_;  ///< objects of calls before the point where `between_` was recorded
  std::unique_ptr<Event> between_;
};

/// The context of a call: a stream, or a blocking call with an optional time-out.
struct Place {
  const std::shared_ptr<JoinedWorld>& joined;
  const char* call;  ///< a literal
  StreamObject* stream;
  Seconds timeout;
  Team& team;
  const void* channel;      ///< the channel to which the call belongs
  nanobind::object called;  ///< the channel's object
  std::string arguments;    ///< all arguments but the tensors, as text; only if `may_continue`
};

/// Whether a call has timed out, or may time out: then its arguments are needed to distinguish it from other calls.
[[nodiscard]] inline bool may_continue(const JoinedWorld& world, Seconds timeout) {
  return timeout.has_value() || !world.open_calls.empty();
}

/// The stream of an equal call that timed out before, otherwise nullptr. Throws invalid_argument while a different call
/// of the channel has yet to be continued: calls of a channel are made one after the other.
[[nodiscard]] std::shared_ptr<detail::BlockingStream> continued_stream(const Place& place,
                                                                       std::initializer_list<const Tensor*> tensors);
/// Throws invalid_argument while another call of the channel has yet to be continued.
void refuse_beside_open_call(const Place& place);
/// The result of a wait: its status, and the exception to raise, if any, from the wait or from a Python signal handler.
struct Waited {
  Status status;
  std::exception_ptr failure;
};
/// Runs `part`, which waits and returns a status, without Python's lock.
template <class Part>
[[nodiscard]] Waited wait_unlocked(BlockingCall& blocking, const Part& part) {
  try {
    return {blocking.unlocked(part), nullptr};
  } catch (const nanobind::python_error&) {
    return {blocking.is_held() ? Status::ok : Status::timeout, std::current_exception()};
  } catch (...) {
    return {Status::ok, std::current_exception()};
  }
}
/// Throws the error of the call's wait, if any. After a time-out the world keeps the call, with its stream and tensors.
void finish_call(const Place& place, std::initializer_list<const Tensor*> tensors,
                 std::shared_ptr<detail::BlockingStream> stream, const Waited& waited);

/// Makes a call on `place.stream`, which keeps the tensors. Without a stream, makes it on a stream that the world
/// lends, and blocks until the call is over. After a time-out, an equal call continues the wait.
///   how  the call's options, with a member `stream`
template <class Options, class Call>
void run_on(const Place& place, Options how, std::initializer_list<const Tensor*> tensors, const Call& call) {
  if (place.stream == nullptr) {
    World& world = place.joined->world();
    const Timeout limit = timeout_of(place.timeout);
    std::shared_ptr<detail::BlockingStream> on = continued_stream(place, tensors);
    bool is_begun = on != nullptr;
    if (!is_begun) on = std::make_shared<detail::BlockingStream>(world);
    how.stream = &on->stream();
    BlockingCall blocking;
    Waited waited = wait_unlocked(blocking, [&] {
      if (!is_begun) {
        std::optional<WorkHere> here;  // not for a call that may continue after a time-out
        if (place.timeout) {
          on->follow_default();
        } else {
          on->await_default();
          here.emplace(on->stream());
          if (here->is_here()) blocking.hold(place.team);
        }
        is_begun = true;
        call(how);
      }
      return on->finish(limit);
    });
    if (!is_begun) waited.status = Status::ok;  // a signal handler ended the wait first: no work was started
    return finish_call(place, tensors, std::move(on), waited);
  }
  if (place.stream->joined() != place.joined) throw nanobind::value_error("stream: it belongs to another world");
  if (place.timeout) throw nanobind::value_error("timeout: a call on a stream does not block; `synchronize` takes one");
  refuse_beside_open_call(place);
  place.stream->keep(tensors, place.called);
  how.stream = &place.stream->stream();
  const nanobind::gil_scoped_release unlocked;
  call(how);
}

/// A point in a stream's work.
class EventObject {
 public:
  /// The point after all earlier work of the stream.
  explicit EventObject(const StreamObject& stream);

  [[nodiscard]] bool done() const { return event_->done(); }
  void wait(Seconds timeout);

 private:
  std::shared_ptr<JoinedWorld> world_;
  std::unique_ptr<Event> event_;
};

}  // namespace beeline::python
