// SPDX-License-Identifier: Apache-2.0
// The collectives of one of torch's process groups for Python: one entry for each call. Tensors and streams are read
// through DLPack's C exchange API; for an asynchronous call Python gets its end.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bindings.hpp"
#include "exchange.hpp"
#include "group_calls.hpp"
#include "torch_table.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

/// Gets torch's current stream of this thread on a world's GPU.
class TorchStreams {
 public:
  /// Throws TypeError if the tensor type offers no C exchange API.
  TorchStreams(std::shared_ptr<JoinedWorld> world, const nb::object& tensor)
      : world_(std::move(world)), exchange_(exchange_of(tensor)) {
    if (exchange_ == nullptr) throw nb::type_error("this torch has no DLPack C exchange API: torch 2.11 or later has");
  }
  /// The handle of the stream; nullptr on a host rank.
  [[nodiscard]] void* current() const {
    void* native = nullptr;
    const Device& device = world_->known().device();
    if (device.is_gpu() && exchange_->current_stream(nb::device::cuda::value, device.index, &native) != 0)
      throw nb::python_error();
    return native;
  }

 private:
  std::shared_ptr<JoinedWorld> world_;
  const TensorExchange* exchange_;
};

/// The end of an asynchronous call on its stream.
class EndObject {
 public:
  EndObject(TorchStreams streams, CallEnd end) : streams_(std::move(streams)), end_(std::move(end)) {}
  void wait(Seconds timeout) const {
    void* const current = streams_.current();
    const nb::gil_scoped_release unlocked;
    end_.wait(timeout, current);
  }
  [[nodiscard]] bool query() const { return end_.query(); }

 private:
  TorchStreams streams_;
  CallEnd end_;
};

void* keep(void* object) {
  const nb::gil_scoped_acquire locked;
  return nb::handle(static_cast<PyObject*>(object)).inc_ref().ptr();
}

void let_go(void* object) {
  if (Py_IsInitialized() == 0) return;
  const nb::gil_scoped_acquire locked;
  nb::handle(static_cast<PyObject*>(object)).dec_ref();
}

class TorchCalls {
 public:
  /// Collective.
  ///   tensor     any torch tensor
  ///   stream, make_room  as for `GroupCalls`
  TorchCalls(const Members& members, const nb::object& tensor, std::optional<std::uintptr_t> stream,
             nb::callable make_room)
      : calls_(std::make_shared<GroupCalls>(members, stream,
                                            [make_room = std::move(make_room)] {
                                              const nb::gil_scoped_acquire locked;
                                              make_room();
                                            })),
        streams_(calls_->joined(), tensor) {}

  /// See `GroupCalls::call`. `output` and `source` are the same tensor for a call in place, and None on ranks without
  /// one.
  [[nodiscard]] std::optional<EndObject> call(const CollectiveShape& shape, const nb::object& output,
                                              const nb::object& source, std::uint32_t reduction, int root,
                                              bool is_async) {
    const GroupCalls::Parts parts = calls_->parts(shape, root);
    GroupCalls::Operand to, from;
    if (parts.output != 0) to = reached(output, "output", Access::write);
    const bool in_place = parts.output != 0 && source.is(output);
    if (parts.source != 0) from = in_place ? to : reached(source, "input", Access::read);
    return made(is_async, [&](const GroupCalls::Manner& manner) {
      return calls_->call(shape, to, from, static_cast<Reduction>(reduction), root, manner);
    });
  }

  [[nodiscard]] std::optional<EndObject> alltoallv(const nb::object& output, const nb::object& source,
                                                   const Counts& send, const Counts& receive, bool is_async) {
    const GroupCalls::Operand to = reached(output, "output", Access::write),
                              from = reached(source, "input", Access::read);
    return made(is_async,
                [&](const GroupCalls::Manner& manner) { return calls_->alltoallv(to, from, send, receive, manner); });
  }

  [[nodiscard]] std::optional<EndObject> barrier(bool is_async) {
    return made(is_async, [&](const GroupCalls::Manner& manner) { return calls_->barrier(manner); });
  }

  [[nodiscard]] EndObject record() const { return {streams_, calls_->record(streams_.current())}; }

  void synchronize_current() const {
    void* const current = streams_.current();
    const nb::gil_scoped_release unlocked;
    calls_->synchronize_current(current);
  }

  [[nodiscard]] GroupCalls& calls() const { return *calls_; }
  [[nodiscard]] nb::object capsule() const { return calls_capsule(calls_); }

 private:
  [[nodiscard]] GroupCalls::Operand reached(const nb::object& object, const char* argument, Access access) const {
    return {reached_tensor(object, argument, access, *calls_->joined()), {nullptr, object.ptr(), keep, let_go}};
  }

  /// Makes a call without Python's lock.
  template <class Call>
  [[nodiscard]] std::optional<EndObject> made(bool is_async, const Call& call) const {
    const GroupCalls::Manner manner{is_async, streams_.current()};
    Ended end;
    {
      const nb::gil_scoped_release unlocked;
      end = call(manner);
    }
    if (!end) return std::nullopt;
    return EndObject(streams_, std::move(*end));
  }

  std::shared_ptr<GroupCalls> calls_;
  TorchStreams streams_;
};

}  // namespace

void bind_torch_calls(nb::module_& module) {
  nb::list reduction_names;
  for (std::uint32_t i = 0; i < reductions; ++i) reduction_names.append(name(static_cast<Reduction>(i)));
  module.attr("_REDUCTIONS") = reduction_names;
  module.attr("_TORCH_TABLE") = table_capsule();
  nb::class_<EndObject>(module, "_CallEnd", "The end of a call on its stream.")
      .def("wait", &EndObject::wait, nb::arg("timeout") = nb::none(),
           "Holds torch's current stream until then; on a host rank the caller, for `timeout` seconds at most.")
      .def("query", &EndObject::query, "Whether it is reached.");
  nb::class_<TorchCalls> calls(module, "_TorchCalls", "The collectives of a process group of torch's.");
  for (const CollectiveShape& shape : collective_shapes) {
    if (shape.varies) continue;
    const auto call = [&shape](TorchCalls& self, const nb::object& output, const nb::object& source, bool is_async,
                               std::uint32_t reduction,
                               int root) { return self.call(shape, output, source, reduction, root, is_async); };
    calls.def(name(shape.operation), call, nb::arg("output").none(), nb::arg("source").none(), nb::arg("is_async"),
              nb::arg("reduction") = 0, nb::arg("root") = -1);
  }
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  calls
      .def(nb::init<Members, nb::object, std::optional<std::uintptr_t>, nb::callable>(), nb::arg("members"),
           nb::arg("tensor"), nb::arg("stream").none(), nb::arg("make_room"))
      .def("alltoallv", &TorchCalls::alltoallv)
      .def("barrier", &TorchCalls::barrier, nb::arg("is_async"))
      .def(
          "synchronize", [](const TorchCalls& self) { self.calls().synchronize(); }, Unlocked())
      .def("synchronize_current", &TorchCalls::synchronize_current)
      .def("record", &TorchCalls::record)
      .def_prop_rw(
          "symmetric", [](const TorchCalls& self) { return self.calls().symmetric.load(); },
          [](const TorchCalls& self, bool asserted) { self.calls().symmetric = asserted; })
      .def_prop_ro(
          "last_transfer", [](const TorchCalls& self) { return self.calls().last_transfer(); }, Unlocked())
      .def_prop_ro("capsule", &TorchCalls::capsule, "For the C++ part of the back end.")
      .def(
          "free", [](const TorchCalls& self) { self.calls().free(); }, Unlocked());
}

}  // namespace beeline::python
