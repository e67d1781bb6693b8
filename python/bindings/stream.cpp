// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "bindings.hpp"

namespace nb = nanobind;

namespace beeline::python {

StreamObject::StreamObject(std::shared_ptr<JoinedWorld> world)
    : world_(std::move(world)), stream_(&world_->world().stream()) {}

StreamObject::StreamObject(std::shared_ptr<JoinedWorld> world, std::unique_ptr<Stream> owned)
    : world_(std::move(world)), owned_(std::move(owned)), stream_(owned_.get()) {}

StreamObject::~StreamObject() {
  if (!owned_) return;
  const nb::gil_scoped_release unlocked;  // the destructor waits for the stream's work
  owned_.reset();
}

Stream& StreamObject::stream() const {
  static_cast<void>(world_->world());
  return *stream_;
}

void StreamObject::keep(std::initializer_list<const Tensor*> tensors, nb::object called) {
  constexpr std::size_t enough = 64;  // an event for each call would cost more than the call
  if (stream_->drained()) {
    let_go();
  } else if (used_.size() >= enough && (!between_ || between_->done())) {
    earlier_ = std::exchange(used_, {});
    if (!between_) between_ = stream_->make_event();
    stream_->record(*between_);
  }
  for (const Tensor* each : tensors) used_.push_back(each->owner);
  if (called.is_valid()) used_.push_back(std::move(called));
}

void StreamObject::let_go() {
  used_.clear();
  earlier_.clear();
}

namespace {

[[noreturn]] void refuse_beside(const Place& place, const JoinedWorld::OpenCall& open) {
  throw Error(Status::invalid_argument,
              fmt::format("{}: {} timed out and goes on; first call it again with the same arguments, or synchronize",
                          place.call, open.call),
              place.joined->known().rank());
}

JoinedWorld::OpenTensor described(const Tensor* tensor) {
  return {tensor->data, tensor->bytes, tensor->type, tensor->owner};
}

}  // namespace

std::shared_ptr<detail::BlockingStream> continued_stream(const Place& place,
                                                         std::initializer_list<const Tensor*> tensors) {
  const auto found = place.joined->open_calls.find(place.channel);
  if (found == place.joined->open_calls.end()) return nullptr;
  const JoinedWorld::OpenCall& open = found->second;
  const auto is_same = [](const Tensor* tensor, const JoinedWorld::OpenTensor& known) {
    return tensor->data == known.data && tensor->bytes == known.bytes && tensor->type == known.type;
  };
  if (std::equal(tensors.begin(), tensors.end(), open.tensors.begin(), open.tensors.end(), is_same) &&
      std::string_view(place.call) == open.call && place.arguments == open.arguments)
    return open.stream;
  refuse_beside(place, open);
}

void refuse_beside_open_call(const Place& place) {
  const auto found = place.joined->open_calls.find(place.channel);
  if (found != place.joined->open_calls.end()) refuse_beside(place, found->second);
}

void finish_call(const Place& place, std::initializer_list<const Tensor*> tensors,
                 std::shared_ptr<detail::BlockingStream> stream, const Waited& waited) {
  if (waited.status == Status::timeout) {
    JoinedWorld::OpenCall open{place.call, place.arguments, {}, std::move(stream)};
    for (const Tensor* each : tensors) open.tensors.push_back(described(each));
    place.joined->open_calls.insert_or_assign(place.channel, std::move(open));
  } else {
    place.joined->open_calls.erase(place.channel);
  }
  if (waited.failure) std::rethrow_exception(waited.failure);
  require_over(waited.status, place.call, place.timeout, place.joined->known().rank());
}

EventObject::EventObject(const StreamObject& stream) : world_(stream.joined()), event_(stream.stream().make_event()) {
  stream.stream().record(*event_);
}

void EventObject::wait(Seconds timeout) {
  World& world = world_->world();
  const Timeout limit = timeout_of(timeout);
  require_over(unlocked([&] { return world.synchronize(*event_, limit); }), "wait", timeout, world.rank());
}

namespace {

std::optional<std::uintptr_t> native(const StreamObject& self) {
  void* const handle = self.stream().native();
  return handle == nullptr ? std::nullopt : std::optional(reinterpret_cast<std::uintptr_t>(handle));
}

void wait(StreamObject& self, StreamObject& other) {
  const std::unique_ptr<Event> event = other.stream().make_event();
  other.stream().record(*event);
  self.stream().wait_event(*event);
}

}  // namespace

void bind_stream(nb::module_& module) {
  nb::class_<EventObject>(module, "Event", "A point in a stream's work, made by `Stream.record`.")
      .def_prop_ro("done", &EventObject::done, "Whether all work before it is over, whether it failed or not.")
      .def("wait", &EventObject::wait, nb::kw_only(), nb::arg("timeout") = nb::none(),
           R"(Blocks until all work before it is over. Raises what the world knows of a failure by then.

timeout  in seconds: then it raises TimeoutError, the work goes on, and a later call finds it; 0: looks once)");

  nb::class_<StreamObject>(module, "Stream",
                           R"(An in-order queue of work of one rank: a CUDA stream, or a thread on a host rank.

Made by `World.make_stream`; `World.stream` is the default one. Destroying it waits for its work.)")
      .def_prop_ro("native", native,
                   "The CUDA stream's handle, as `torch.cuda.ExternalStream` takes it; None on a host rank.")
      .def_prop_ro(
          "idle", [](StreamObject& self) { return self.stream().idle(); },
          "Whether all its work is over. Raises what went wrong in it, once.")
      .def(
          "record", [](const StreamObject& self) { return EventObject(self); },
          "The point behind what it has been given so far.")
      .def("wait", wait, nb::arg("other"),
           "Holds what is put on this stream from now on until what `other` has been given so far is over.")
      .def(
          "let_go", &StreamObject::let_go,
          "Lets go of the tensors that its calls use: the caller sees to it that their memory stays until it is over.");
}

}  // namespace beeline::python
