// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/staged_channel.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <utility>

#include "bindings.hpp"
#include "joined_world.hpp"
#include "tensor.hpp"
#include "timeout.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

/// A channel that its world keeps.
class StagedChannelObject {
 public:
  /// Collective.
  StagedChannelObject(std::shared_ptr<JoinedWorld> world, std::size_t chunk_bytes, std::uint32_t slots)
      : world_(std::move(world)) {
    World& made = world_->world();
    channel_ =
        &world_->adopt(unlocked([&] { return std::make_unique<StagedChannel>(made, chunk_bytes, slots); }, &made));
  }

  void send(const nb::object& source, int peer, Seconds timeout) {
    const Tensor from = tensor_of(source, "source", Access::read, *world_);
    const Timeout limit = timeout_of(timeout);
    const World& world = world_->world();  // throws if it was left
    require_over(unlocked([&] { return channel_->send(from.data, from.bytes, peer, limit); }), "send", timeout,
                 world.rank());
  }

  void receive(const nb::object& destination, int peer, Seconds timeout) {
    const Tensor to = tensor_of(destination, "destination", Access::write, *world_);
    const Timeout limit = timeout_of(timeout);
    const World& world = world_->world();
    require_over(unlocked([&] { return channel_->receive(to.data, to.bytes, peer, limit); }), "receive", timeout,
                 world.rank());
  }

 private:
  std::shared_ptr<JoinedWorld> world_;
  StagedChannel* channel_ = nullptr;
};

}  // namespace

void bind_staged_channel(nb::module_& module) {
  nb::class_<StagedChannelObject>(module, "StagedChannel",
                                  R"(Messages between all pairs of ranks, through host memory at the receivers.

The CPU threads of both ends take part. Between two ranks messages keep their order; one thread of each drives a
direction at a time. It lives until its world is left.)")
      .def(nb::init<std::shared_ptr<JoinedWorld>, std::size_t, std::uint32_t>(), nb::arg("world"),
           nb::arg("chunk_bytes") = 0, nb::arg("slots") = 4,
           R"(Collective.

chunk_bytes  that a message is cut into; 0: BEELINE_CHUNK_BYTES
slots        chunks under way from one rank to another; 1: one after the other)")
      .def("send", &StagedChannelObject::send, nb::arg("source"), nb::arg("peer"), nb::kw_only(),
           nb::arg("timeout") = nb::none(),
           R"(Sends a tensor to rank `peer`; blocks until it may be changed: the slots take that much ahead.

An empty tensor is a message like any other.

timeout  in seconds: then it raises TimeoutError, and the same call, with the same tensor, continues; until it has
         returned, other messages to this rank are refused. 0: does what can be done at once
Raises InvalidArgumentError (no such peer, another call to be continued), UnreachableError (memory of a GPU that this
rank does not reach), DeadlineError, AbortedError, PeerDiedError.)")
      .def("receive", &StagedChannelObject::receive, nb::arg("destination"), nb::arg("peer"), nb::kw_only(),
           nb::arg("timeout") = nb::none(),
           R"(Receives a tensor of as many bytes as rank `peer` sends; blocks until they are there. Otherwise as `send`.

Raises InvalidArgumentError, too, where the peer's next message has another length: it stays, for a tensor of that.)");
}

}  // namespace beeline::python
