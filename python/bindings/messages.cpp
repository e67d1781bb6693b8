// SPDX-License-Identifier: Apache-2.0
#include "beeline/host/messages.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/variant.h>

#include "bindings.hpp"
#include "channel.hpp"
#include "stream.hpp"
#include "tensor.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

constexpr int nobody = -1;

/// The element type that a message of a tensor carries; `uint8` if the type is unknown to Beeline.
ElementType message_type(const Tensor& tensor) {
  const std::optional<ElementType> type = computed_type(tensor.type);
  const bool is_aligned = !type || reinterpret_cast<std::uintptr_t>(tensor.data) % bytes_of(*type) == 0;
  return type && is_aligned ? *type : ElementType::uint8;
}

class MessagesObject : public ChannelObject<Messages> {
 public:
  /// Collective.
  MessagesObject(const Members& team, unsigned sessions, std::size_t eager_bytes, std::uint32_t depth,
                 std::size_t chunk_bytes)
      : ChannelObject(
            "messages", team,
            MessageOptions{
                .sessions = sessions, .eager_bytes = eager_bytes, .depth = depth, .chunk_bytes = chunk_bytes}) {}

  void send(const nb::object& source, int peer, StreamObject* stream, Seconds timeout, unsigned blocks,
            std::uint32_t tag) {
    const Tensor from = reached_tensor(source, "source", Access::read, *joined());
    run_on(place("send", stream, timeout, peer, nobody, blocks, tag), MessageCall{.blocks = blocks, .tag = tag},
           {&from}, [&](const MessageCall& call) {
             const ElementType type = message_type(from);
             channel().send_on_stream(from.data, from.bytes / bytes_of(type), type, peer, call);
           });
  }

  void receive(const nb::object& destination, int peer, StreamObject* stream, Seconds timeout, unsigned blocks,
               std::uint32_t tag) {
    const Tensor to = reached_tensor(destination, "destination", Access::write, *joined());
    run_on(place("receive", stream, timeout, nobody, peer, blocks, tag), MessageCall{.blocks = blocks, .tag = tag},
           {&to}, [&](const MessageCall& call) {
             const ElementType type = message_type(to);
             channel().receive_on_stream(to.data, to.bytes / bytes_of(type), type, peer, call);
           });
  }

  void send_receive(const nb::object& source, int to_peer, const nb::object& destination, int from_peer,
                    StreamObject* stream, Seconds timeout, unsigned blocks, std::uint32_t tag) {
    const Tensor from = reached_tensor(source, "source", Access::read, *joined());
    const Tensor to = reached_tensor(destination, "destination", Access::write, *joined());
    run_on(place("send_receive", stream, timeout, to_peer, from_peer, blocks, tag),
           MessageCall{.blocks = blocks, .tag = tag}, {&from, &to}, [&](const MessageCall& call) {
             const ElementType type = message_type(from) == message_type(to) ? message_type(to) : ElementType::uint8;
             const std::size_t one = bytes_of(type);
             channel().send_receive_on_stream({from.data, from.bytes / one, to_peer},
                                              {to.data, to.bytes / one, from_peer}, type, call);
           });
  }

  [[nodiscard]] bool probe(int peer) const { return channel().probe(peer); }
  [[nodiscard]] bool is_eager(std::size_t bytes) const { return channel().is_eager(bytes); }

 private:
  [[nodiscard]] Place place(const char* call, StreamObject* stream, Seconds timeout, int to, int from, unsigned blocks,
                            std::uint32_t tag) const {
    const std::string arguments =
        may_continue(*joined(), timeout) ? fmt::format("{} {} {} {}", to, from, blocks, tag) : std::string();
    return {joined(), call, stream, timeout, channel().team(), &channel(), nb::find(*this), arguments};
  }
};

}  // namespace

void bind_messages(nb::module_& module) {
  nb::class_<MessagesObject>(module, "Messages",
                             R"(Messages between two ranks, driven by the ranks' devices alone.

Between two ranks messages are matched in the order of the calls, and received as they are sent: in as many bytes,
with elements of the same type (uint8 fits all), by as many blocks, and with the same tag; another is found, and raises
an error that names both. Short messages go into the
receiver's memory at once (eager); longer ones wait for the receiver, so two ranks that both send first, each on one
stream, wait for each other until the deadline: `send_receive` does both at once. Towards one rank, calls of one
direction are made one after the other, on one stream; other ranks, and the other direction, may have streams of their
own.
Tensors are as those of `Collectives`, and objects that were dropped are freed like those.)")
      .def(nb::init<Members, unsigned, std::size_t, std::uint32_t, std::size_t>(), nb::arg("team"), nb::kw_only(),
           nb::arg("sessions") = 0, nb::arg("eager_bytes") = 0, nb::arg("depth") = 0, nb::arg("chunk_bytes") = 0,
           R"(Collective over the team; all give the same options. 0: by the kind and number of ranks.

team         whose members send messages, and count each other: a World or a Team
sessions     blocks that may share in a message
eager_bytes  longest message that is sent without asking the receiver
depth        messages that may be under way to one receiver, a power of two
chunk_bytes  on each session, for messages between memory outside the heaps
Raises UnavailableError where a rank's kernels do not reach another's memory: `StagedChannel` serves there.)")
      .def("send", &MessagesObject::send, nb::arg("source"), nb::arg("peer"), nb::kw_only(),
           nb::arg("stream") = nb::none(), nb::arg("timeout") = nb::none(), nb::arg("blocks") = 0, nb::arg("tag") = 0,
           R"(Sends a tensor to rank `peer`.

stream  None: blocks until the tensor may be changed; otherwise it returns at once, `World.synchronize(stream)` tells of
        failures, and until then the stream keeps the tensor alive
timeout  as of `Collectives`
blocks  of threads, the same as the receiver's; 0: by size
tag  the same as the receiver's, up to 2047
Raises TypeError or ValueError (InvalidArgumentError among them) before anything is touched, also for a message to
oneself that is not eager; DeadlineError and the like name the rank that was waited for.)")
      .def("receive", &MessagesObject::receive, nb::arg("destination"), nb::arg("peer"), nb::kw_only(),
           nb::arg("stream") = nb::none(), nb::arg("timeout") = nb::none(), nb::arg("blocks") = 0, nb::arg("tag") = 0,
           "Receives a tensor from rank `peer`; without a stream it blocks until it is there. Otherwise as `send`.")
      .def("send_receive", &MessagesObject::send_receive, nb::arg("source"), nb::arg("to_peer"), nb::arg("destination"),
           nb::arg("from_peer"), nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("timeout") = nb::none(),
           nb::arg("blocks") = 0, nb::arg("tag") = 0,
           "Sends `source` and receives `destination` at once, so that neighbours swap without a deadlock.")
      .def("probe", &MessagesObject::probe, nb::arg("peer"),
           R"(Whether a message from rank `peer` waits to be received: MPI's Iprobe. Does not block.

Receives from it that this rank has started must be over. Raises UnavailableError where the channel lies in a GPU's
memory.)")
      .def("is_eager", &MessagesObject::is_eager, nb::arg("bytes"),
           "Whether a message of so many bytes is sent without asking the receiver.")
      .def("free", &MessagesObject::free, nb::call_guard<nb::gil_scoped_release>(),
           R"(Collective over those that take part. Gives the memory back; no call works afterwards.

Waits for the default stream; the calls on other streams must be over.)");
}

}  // namespace beeline::python
