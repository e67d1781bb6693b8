// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `beeline.Stream`: an in-order queue of work, with the Python objects that its work still uses.

#include <nanobind/nanobind.h>

#include <initializer_list>
#include <memory>
#include <vector>

#include "joined_world.hpp"

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
  /// Keeps `objects`, which the next call uses, alive until its work is over, as a later `keep` or `let_go` finds.
  void keep(std::initializer_list<nanobind::object> objects);
  void let_go();

 private:
  std::shared_ptr<JoinedWorld> world_;
  std::unique_ptr<Stream> owned_;
  Stream* stream_;
  std::vector<nanobind::object> used_;     ///< by the latest calls
  std::vector<nanobind::object> earlier_;  ///< by calls before the point where `between_` was recorded
  std::unique_ptr<Event> between_;
};

/// Makes a call of a world's on `stream`, which keeps the tensors; without one, on the default stream, and blocks until
/// it is over.
///   how  the call's options, with a member `stream`
template <class Options, class Call>
void run_on(const std::shared_ptr<JoinedWorld>& joined, StreamObject* stream, Options how,
            std::initializer_list<nanobind::object> tensors, const Call& call) {
  World& world = joined->world();
  if (stream == nullptr) {
    const nanobind::gil_scoped_release unlocked;
    call(how);
    world.synchronize();
    return;
  }
  if (stream->joined() != joined) throw nanobind::value_error("stream: it belongs to another world");
  stream->keep(tensors);
  how.stream = &stream->stream();
  const nanobind::gil_scoped_release unlocked;
  call(how);
}

/// A point in a stream's work.
class EventObject {
 public:
  /// Here, in what the stream has been given so far.
  explicit EventObject(const StreamObject& stream);

  [[nodiscard]] bool done() const { return event_->done(); }
  void wait();

 private:
  std::shared_ptr<JoinedWorld> world_;
  std::unique_ptr<Event> event_;
};

}  // namespace beeline::python
