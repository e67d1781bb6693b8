// SPDX-License-Identifier: Apache-2.0
// The collectives of a process group of torch's: one entry from Python for each call. Tensors and streams are read
// through DLPack's C exchange API; what Python sees of a call under way is its end.
//
//   torch's current stream   ...work | [call of a synchronous one] ----------------> later work
//                                  \                                          / Work.wait
//   the group's stream              \---> [call of an asynchronous one] --> end
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <utility>

#include "beeline/host/collectives.hpp"
#include "bindings.hpp"
#include "channel.hpp"
#include "exchange.hpp"
#include "stream.hpp"
#include "tensor.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

/// torch's stream of this thread on a world's GPU.
class TorchStreams {
 public:
  /// Throws TypeError where the type of tensors offers no C exchange API.
  TorchStreams(std::shared_ptr<JoinedWorld> world, const nb::object& tensor)
      : world_(std::move(world)), exchange_(exchange_of(tensor)) {
    if (exchange_ == nullptr) throw nb::type_error("this torch has no DLPack C exchange API: torch 2.11 or later has");
  }
  [[nodiscard]] Stream& current() const {
    void* native = nullptr;
    const int gpu = world_->known().device().index;
    if (exchange_->current_stream(nb::device::cuda::value, gpu, &native) != 0) throw nb::python_error();
    return world_->foreign_stream(native);
  }
  [[nodiscard]] const std::shared_ptr<JoinedWorld>& joined() const { return world_; }

 private:
  std::shared_ptr<JoinedWorld> world_;
  const TensorExchange* exchange_;
};

/// The end of an asynchronous call on its stream.
class CallEnd {
 public:
  CallEnd(TorchStreams streams, std::shared_ptr<Event> event)
      : streams_(std::move(streams)), event_(std::move(event)) {}
  /// Holds torch's current stream until then; on a host rank the caller. What a world that was left has done is over.
  ///   timeout  of a host rank; after it the call goes on, and TimeoutError is raised
  void wait(Seconds timeout) const {
    if (streams_.joined()->has_left()) return;
    World& world = streams_.joined()->world();
    if (world.device().is_gpu()) return streams_.current().wait_event(*event_);
    const Timeout limit = timeout_of(timeout);
    require_over(unlocked([&] { return world.synchronize(*event_, limit); }), "wait", timeout, world.rank());
  }
  [[nodiscard]] bool query() const { return event_->done(); }

 private:
  TorchStreams streams_;
  std::shared_ptr<Event> event_;
};

using Ended = std::optional<CallEnd>;

class TorchCalls : public ChannelObject<Collectives> {
 public:
  /// Collective.
  ///   tensor     any of torch's
  ///   stream     of CUDA, for asynchronous calls; nothing on a host rank, where all calls of the group have one
  ///   make_room  called where a call finds no room on the GPU beside others: it comes after them. Ranks that wait so
  ///              for each other do not wait forever: calls that have members in common come in the same order
  ///              everywhere, and those before them end by themselves
  TorchCalls(const Members& members, const nb::object& tensor, std::optional<std::uintptr_t> stream,
             nb::callable make_room)
      : ChannelObject("collectives", members, CollectiveOptions{}), streams_(joined(), tensor),
        own_(stream ? &joined()->foreign_stream(reinterpret_cast<void*>(*stream))
                    : &joined()->adopt(joined()->world().make_stream())),
        is_host_(!stream), make_room_(std::move(make_room)) {
    keep_when_dropped();  // calls of torch's streams may be under way
    if (!is_host_) begun_ = own_->make_event();
    make_mappings(std::holds_alternative<std::shared_ptr<JoinedWorld>>(members));
  }

  /// A call whose vectors have parts of one length, as its shape says.
  ///   output, source  the same tensor: in place; None on ranks that have none
  [[nodiscard]] Ended call(const CollectiveShape& shape, const nb::object& output, const nb::object& source,
                           std::uint32_t reduction, int root, bool is_async) {
    const bool is_root = root >= 0 && channel().team().context().rank == static_cast<std::uint32_t>(root);
    const std::size_t to_parts = parts_of(shape.destination, ranks(), is_root),
                      from_parts = parts_of(shape.source, ranks(), is_root);
    const Tensor to = to_parts != 0 ? reached(output, "output", Access::write) : Tensor{};
    const bool in_place = from_parts != 0 && to_parts != 0 && source.is(output);
    const Tensor from = in_place ? to : from_parts != 0 ? reached(source, "input", Access::read) : Tensor{};
    if (to_parts != 0 && from_parts != 0) check_alike(to, from, to_parts, from_parts);
    const bool knows_source = from_parts != 0;
    const Tensor& known = knows_source ? from : to;
    const auto how = static_cast<Reduction>(reduction);
    const Words words = shape.reduces ? reduced_words(known, how) : moved_words(known);
    const CallDescription what{.operation = shape.operation,
                               .element = {words.type},
                               .reduction = how,
                               .root = static_cast<std::uint32_t>(root),
                               .count = known.elements * words.each / (knows_source ? from_parts : to_parts)};
    const bool is_symmetric = symmetric && is_in_heap(to) && (!shape.reduces || is_in_heap(from));
    return start(is_async, {&to, &from}, [&](CollectiveCall call) {
      call.symmetric = is_symmetric;
      channel().call_on_stream(what, to.data, from.data, call);
    });
  }

  /// Pieces follow each other; their lengths are in bytes, of whole elements.
  [[nodiscard]] Ended alltoallv(const nb::object& output, const nb::object& source, const Counts& send,
                                const Counts& receive, bool is_async) {
    const Tensor to = reached(output, "output", Access::write), from = reached(source, "input", Access::read);
    check_types(to, from);
    const Words words = moved_words(from);
    const Row sent = row_of(send, from, words.type), received = row_of(receive, to, words.type);
    return start(is_async, {&to, &from}, [&](const CollectiveCall& call) {
      channel().alltoallv_on_stream(to.data, from.data, {sent.counts, sent.offsets, received.counts, received.offsets},
                                    words.type, call);
    });
  }

  [[nodiscard]] Ended barrier(bool is_async) {
    return start(is_async, {},
                 [&](const CollectiveCall& call) { channel().barrier_on_stream({.stream = call.stream}); });
  }

  /// Collective.
  void free() {
    if (is_host_) joined()->destroy(own_, nullptr);  // after its work, which uses the channel
    ChannelObject::free();
  }

  /// Whether the program asserts that tensors of the heap are symmetric: `CollectiveCall::symmetric`.
  bool symmetric = false;

  /// Waits for the calls so far, not for what captures have of them.
  void synchronize() {
    if (joined()->has_left()) return;  // which came after them
    World& world = joined()->world();
    if (is_host_) {
      unlocked([&] { return world.synchronize(*own_, Timeout::none()); });
      uses_.clear();
      return;
    }
    if (eager_.end == nullptr) return;
    record_end(eager_);
    const std::shared_ptr<Event> last = eager_.end;
    unlocked([&] { world.synchronize(*last); });
  }

  /// Waits for what torch's current stream has been given so far.
  void synchronize_current() {
    if (is_host_) return;
    World& world = joined()->world();
    Stream& current = streams_.current();
    unlocked([&] {
      const std::unique_ptr<Event> here = current.make_event();
      current.record(*here);
      world.synchronize(*here);
    });
  }

  /// The end of what torch's current stream has been given so far.
  [[nodiscard]] CallEnd record() const {
    Stream& current = streams_.current();
    std::shared_ptr<Event> here = current.make_event();
    current.record(*here);
    return {streams_, std::move(here)};
  }

  /// How the tensors of the last call got to the other ranks; staged ones with the reason where that will not change.
  [[nodiscard]] std::optional<std::string> last_transfer() {
    synchronize();
    const nb::gil_scoped_release unlocked;
    const Transfer transfer = channel().last_transfer();
    if (transfer == Transfer::none) return std::nullopt;
    const std::string reason = reason_of_staging();
    return transfer != Transfer::staged || reason.empty() ? name(transfer) : fmt::format("staged: {}", reason);
  }

 private:
  [[nodiscard]] std::string reason_of_staging() const {
    if (channel().last_algorithm() == Algorithm::copy_engine) return "copy engines carry it, in chunks";
    if (joined()->mappings != nullptr) return joined()->mappings->reason();
    World& world = joined()->world();
    if (world.mixed()) return "ranks of both kinds do not reach each other's memory";
    if (!world.device().is_gpu() || static_cast<std::uint32_t>(world.size()) <= detail::most_mapping_members) return {};
    return fmt::format("{} ranks: at most {} map each other's memory", world.size(), detail::most_mapping_members);
  }
  /// Collective over the world, where a group of all its ranks is made.
  void make_mappings(bool of_all) {
    World& world = joined()->world();
    const bool maps = of_all && world.device().is_gpu() && !world.mixed() &&
                      static_cast<std::uint32_t>(world.size()) <= detail::most_mapping_members;
    if (!maps || joined()->mappings != nullptr) return;
    const nb::gil_scoped_release unlocked;
    joined()->mappings = &joined()->adopt(std::make_unique<SegmentMappings>(world));
  }

  /// The latest call: the next one on another stream comes after it.
  struct Latest {
    Stream* stream = nullptr;
    std::shared_ptr<Event> end;
    std::uint64_t capture = 0;  ///< of which it is part
    bool is_recorded = true;    ///< `end`; otherwise it is recorded when it is first asked for
  };

  [[nodiscard]] Tensor reached(const nb::object& object, const char* argument, Access access) const {
    return reached_tensor(object, argument, access, *joined());
  }
  [[nodiscard]] bool is_in_heap(const Tensor& tensor) const {
    const Context& ctx = channel().team().context();
    return ctx.owner_of(tensor.data) == ctx.own_world_rank;
  }
  [[nodiscard]] std::size_t ranks() const { return channel().team().context().size; }
  /// Throws ValueError.
  static void check_types(const Tensor& to, const Tensor& from) {
    if (to.type == from.type) return;
    throw nb::value_error(
        fmt::format("output is of {}, input of {}: types must be the same", type_name(to.type), type_name(from.type))
            .c_str());
  }
  /// Throws ValueError unless types are the same, and bytes as `to_parts` to `from_parts`.
  static void check_alike(const Tensor& to, const Tensor& from, std::size_t to_parts, std::size_t from_parts) {
    check_types(to, from);
    if (to.bytes * from_parts == from.bytes * to_parts) return;
    throw nb::value_error(fmt::format("output has {} bytes, input {}: sizes must be as {} to {}", to.bytes, from.bytes,
                                      to_parts, from_parts)
                              .c_str());
  }
  /// One side of an all-to-all-v, in words.
  struct Row {
    Counts counts, offsets;
  };
  [[nodiscard]] Row row_of(const Counts& lengths, const Tensor& tensor, ElementType type) const {
    const auto places = places_of(lengths, ranks(), tensor.bytes);
    if (!places)
      throw nb::value_error(
          fmt::format("pieces of {} bytes for {} ranks and {} bytes", fmt::join(lengths, ", "), ranks(), tensor.bytes)
              .c_str());
    Row row{lengths, *places};
    for (Counts* const column : {&row.counts, &row.offsets})
      for (std::size_t& words : *column) words /= bytes_of(type);
    return row;
  }

  /// Makes a call on torch's current stream, or, asynchronous, on the group's behind it.
  template <class Call>
  [[nodiscard]] Ended start(bool is_async, std::initializer_list<const Tensor*> tensors, const Call& call) {
    World& world = joined()->world();
    if (world.failed()) world.check();
    if (is_host_) return start_on_host(is_async, tensors, call);
    Stream& current = streams_.current();
    Stream& on = is_async ? *own_ : current;
    if (&on != &current) {
      current.record(*begun_);
      on.wait_event(*begun_);
    }
    // Programs compute on the default stream; what they call on another one, outside a graph, is to run beside that.
    const bool is_beside = is_async || (!is_legacy(on) && on.capture() == 0);
    Latest& latest = come_after_latest(on);
    with_room([&] {
      const nb::gil_scoped_release unlocked;
      call(CollectiveCall{.stream = &on, .mappings = joined()->mappings, .overlapped = is_beside});
    });
    latest.is_recorded = false;
    if (!is_legacy(on)) record_end(latest);
    return &on == &current ? Ended() : Ended(CallEnd(streams_, latest.end));
  }

  /// On the group's stream, so that calls of other groups need not be over. Without one that is pending the caller runs
  /// its call itself, which is quicker than to wake the stream's thread.
  template <class Call>
  [[nodiscard]] Ended start_on_host(bool is_async, std::initializer_list<const Tensor*> tensors, const Call& call) {
    const CollectiveCall how{.stream = own_};
    while (!uses_.empty() && uses_.front().end->done()) uses_.pop_front();
    if (!is_async) {
      with_room([&] {
        BlockingCall blocking;
        blocking.unlocked([&] {
          const WorkHere here(*own_);
          if (here.is_here()) blocking.hold(channel().team());
          call(how);
        });
      });
      synchronize();
      return std::nullopt;
    }
    with_room([&] {
      const nb::gil_scoped_release unlocked;
      call(how);
    });
    std::shared_ptr<Event> end = own_->make_event();
    own_->record(*end);
    Use& use = uses_.emplace_back(Use{end, {}});
    for (const Tensor* each : tensors) use.tensors.push_back(each->owner);
    return CallEnd(streams_, std::move(end));
  }

  template <class Call>
  void with_room(const Call& call) const {
    try {
      return call();
    } catch (const Error& error) {
      if (error.code() != Status::no_resource) throw;
    }
    make_room_();
    call();
  }

  /// Orders a call on a stream, and returns its place, with an event that nobody else holds.
  Latest& come_after_latest(Stream& on) {
    const std::uint64_t capture = on.capture();
    Latest& latest = capture == 0 ? eager_ : captured_;
    if (latest.capture != capture) latest = {};  // what is captured in one graph does not wait for another
    if (latest.end != nullptr && latest.stream != &on) {
      record_end(latest);
      on.wait_event(*latest.end);
    }
    if (latest.end == nullptr || latest.end.use_count() > 1) latest.end = on.make_event();
    latest.stream = &on;
    latest.capture = capture;
    return latest;
  }

  /// CUDA's default stream, where most programs call, always takes one more record: no graph captures it, nobody
  /// destroys it. What records the end of its last call later comes after more than that call.
  [[nodiscard]] static bool is_legacy(const Stream& stream) {
    return reinterpret_cast<std::uintptr_t>(stream.native()) == 1;  // cudaStreamLegacy
  }
  static void record_end(Latest& latest) {
    if (!latest.is_recorded) latest.stream->record(*latest.end);
    latest.is_recorded = true;
  }

  /// Tensors of an asynchronous call of a host rank.
  struct Use {
    std::shared_ptr<Event> end;
    std::vector<nb::object> tensors;
  };

  TorchStreams streams_;
  Stream* own_;
  bool is_host_;
  nb::callable make_room_;
  std::deque<Use> uses_;
  std::unique_ptr<Event> begun_;
  Latest eager_, captured_;
};

}  // namespace

void bind_torch_calls(nb::module_& module) {
  nb::list reduction_names;
  for (std::uint32_t i = 0; i < reductions; ++i) reduction_names.append(name(static_cast<Reduction>(i)));
  module.attr("_REDUCTIONS") = reduction_names;
  nb::class_<CallEnd>(module, "_CallEnd", "The end of a call on its stream.")
      .def("wait", &CallEnd::wait, nb::arg("timeout") = nb::none(),
           "Holds torch's current stream until then; on a host rank the caller, for `timeout` seconds at most.")
      .def("query", &CallEnd::query, "Whether it is reached.");
  nb::class_<TorchCalls> calls(module, "_TorchCalls", "The collectives of a process group of torch's.");
  for (const CollectiveShape& shape : collective_shapes) {
    if (shape.varies) continue;
    const auto call = [&shape](TorchCalls& self, const nb::object& output, const nb::object& source, bool is_async,
                               std::uint32_t reduction,
                               int root) { return self.call(shape, output, source, reduction, root, is_async); };
    calls.def(name(shape.operation), call, nb::arg("output").none(), nb::arg("source").none(), nb::arg("is_async"),
              nb::arg("reduction") = 0, nb::arg("root") = -1);
  }
  calls
      .def(nb::init<Members, nb::object, std::optional<std::uintptr_t>, nb::callable>(), nb::arg("members"),
           nb::arg("tensor"), nb::arg("stream").none(), nb::arg("make_room"))
      .def("alltoallv", &TorchCalls::alltoallv)
      .def("barrier", &TorchCalls::barrier, nb::arg("is_async"))
      .def("synchronize", &TorchCalls::synchronize)
      .def("synchronize_current", &TorchCalls::synchronize_current)
      .def("record", &TorchCalls::record)
      .def_rw("symmetric", &TorchCalls::symmetric)
      .def_prop_ro("last_transfer", &TorchCalls::last_transfer)
      .def("free", &TorchCalls::free, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace beeline::python
