// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `beeline.Stream`: an in-order queue of work, with the Python objects that its work still uses.

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
  /// A new one.
  StreamObject(std::shared_ptr<JoinedWorld> world, std::unique_ptr<Stream> owned);
  StreamObject(StreamObject&&) = default;
  ~StreamObject();

  [[nodiscard]] const std::shared_ptr<JoinedWorld>& joined() const { return world_; }
  /// Throws invalid_argument when the world was left.
  [[nodiscard]] Stream& stream() const;
  /// Keeps `tensors` and the object that the next call is made on (if any) alive until its work is over, as a later
  /// `keep` or `let_go` finds.
  void keep(std::initializer_list<const Tensor*> tensors, nanobind::object called = {});
  void let_go();

 private:
  std::shared_ptr<JoinedWorld> world_;
  std::unique_ptr<Stream> owned_;
  Stream* stream_;
  std::vector<nanobind::object> used_;     ///< by the latest calls
  std::vector<nanobind::object> earlier_;  ///< by calls before the point where `between_` was recorded
  std::unique_ptr<Event> between_;
};

/// Where a call of a world's runs: on a stream, or blocking, up to a time-out.
struct Place {
  const std::shared_ptr<JoinedWorld>& joined;
  const char* call;  ///< a literal
  StreamObject* stream;
  Seconds timeout;
  Team& team;
  const void* channel;      ///< that the call is one of
  nanobind::object called;  ///< the channel's object
  std::string arguments;    ///< all but the tensors, as text; only where a call may be continued (`may_continue`)
};

/// Whether a call has timed out, or may: then its arguments tell it from others.
[[nodiscard]] inline bool may_continue(const JoinedWorld& world, Seconds timeout) {
  return timeout.has_value() || !world.open_calls.empty();
}

/// The stream of the same call if that timed out before, otherwise nullptr. Throws invalid_argument while another call
/// of the channel is to be continued: they are made one after the other.
[[nodiscard]] std::shared_ptr<detail::BlockingStream> continued_stream(const Place& place,
                                                                       std::initializer_list<const Tensor*> tensors);
/// Throws invalid_argument while another call of the channel is to be continued.
void refuse_beside_open_call(const Place& place);
/// How a wait ended: its status, and the exception to raise, if any: of the wait, or of a Python signal handler.
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
/// Throws what the call's wait ended with. After a time-out the world keeps the call, with its stream and its tensors.
void finish_call(const Place& place, std::initializer_list<const Tensor*> tensors,
                 std::shared_ptr<detail::BlockingStream> stream, const Waited& waited);

/// Makes a call of a world's on `place.stream`, which keeps the tensors; without one, on a stream that the world lends,
/// and blocks until it is over. After a time-out the same call waits on.
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
        std::optional<WorkHere> here;  // not of a call that a time-out may leave behind
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
    if (!is_begun) waited.status = Status::ok;  // a signal's handler has ended the wait before it: nothing goes on
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
  /// Here, in what the stream has been given so far.
  explicit EventObject(const StreamObject& stream);

  [[nodiscard]] bool done() const { return event_->done(); }
  void wait(Seconds timeout);

 private:
  std::shared_ptr<JoinedWorld> world_;
  std::unique_ptr<Event> event_;
};

}  // namespace beeline::python
