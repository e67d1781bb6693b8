// SPDX-License-Identifier: Apache-2.0
// What of the back end `beeline` torch's own C++ code calls: the reducer of DistributedDataParallel, broadcasts of its
// buffers, the functional collectives of torch.compile. beeline/torch_native.py has this file compiled against the
// torch that is installed; without it these calls take the way through Python that `torch.distributed` takes.
//
//   c10d::Reducer --> NativeGroup::allreduce --> beeline._beeline._TorchCalls
//                 <-- NativeWork <-------------- its end
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>
#if __has_include(<torch/csrc/distributed/c10d/py/PyProcessGroup.hpp>)
#include <torch/csrc/distributed/c10d/py/PyProcessGroup.hpp>
#else
#include <torch/csrc/distributed/c10d/PyProcessGroup.hpp>
#endif

namespace beeline::torch_native {

namespace {

namespace py = pybind11;
using c10d::Work;
using Tensors = std::vector<at::Tensor>;
using WorkPointer = c10::intrusive_ptr<Work>;

/// A Python object that C++ code holds, and lets go without Python's lock.
class Held {
 public:
  Held() = default;
  explicit Held(py::object object) : object_(std::move(object)) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  Held(Held&& other) noexcept = default;
  Held& operator=(Held&& other) noexcept = default;
  ~Held() {
    if (!object_) return;
    if (Py_IsInitialized() == 0) {
      static_cast<void>(object_.release());  // Python has ended: nothing is left to let it go to
      return;
    }
    const py::gil_scoped_acquire locked;
    object_ = py::object();
  }

  /// Under Python's lock.
  [[nodiscard]] const py::object& get() const { return object_; }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(object_); }

 private:
  py::object object_;
};

/// Calls a Python object; throws what it raises. Under Python's lock.
template <class... Arguments>
py::object call(const py::object& function, const Arguments&... arguments) {
  PyObject* const values[] = {arguments.ptr()...};
  PyObject* const result = PyObject_Vectorcall(function.ptr(), values, sizeof...(arguments), nullptr);
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

/// What the works of torch's own back ends return: its result is there when `stream` has got here, or, without one, the
/// current streams of its devices.
c10::intrusive_ptr<c10::ivalue::Future> future_of(Tensors result, std::optional<c10::Stream> stream) {
  std::vector<c10::Device> devices;
  if (stream) {
    devices.push_back(stream->device());
  } else {
    for (const at::Tensor& each : result)
      if (!each.is_cpu() && std::find(devices.begin(), devices.end(), each.device()) == devices.end())
        devices.push_back(each.device());
  }
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors(), std::move(devices));
  const c10::OptionalStreamGuard on(stream);
  future->markCompleted(c10::IValue(std::move(result)));
  return future;
}

/// A call under way, or one that is over, or in the order of torch's current stream: `BeelineWork` in C++.
class NativeWork final : public Work {
 public:
  /// `end`: on `stream`, where that is not torch's current one, or of a host rank.
  NativeWork(Tensors outputs, py::object end, std::optional<c10::Stream> stream)
      : outputs_(std::move(outputs)), end_(std::move(end)), stream_(stream) {}

  bool wait(std::chrono::milliseconds timeout) override {
    if (end_) {
      const py::gil_scoped_acquire locked;
      const py::object wait = end_.get().attr("wait");
      timeout == kNoTimeout ? wait() : wait(std::chrono::duration<double>(timeout).count());
    }
    return true;
  }
  void synchronize() override { wait(kNoTimeout); }
  bool isCompleted() override { return is_reached(); }
  bool isSuccess() const override { return is_reached() && !has_failed(); }
  Tensors result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    if (!stream_) wait(kNoTimeout);  // a host rank's: nothing else would complete the future
    return future_of(outputs_, stream_);
  }

 private:
  [[nodiscard]] bool is_reached() const {
    if (!end_) return true;
    const py::gil_scoped_acquire locked;
    return end_.get().attr("query")().cast<bool>();
  }

  /// Whether a call of a host rank that is over has ended by an error. On a GPU the next call raises it.
  [[nodiscard]] bool has_failed() const {
    if (!end_ || stream_) return false;
    const py::gil_scoped_acquire locked;
    try {
      end_.get().attr("wait")();
    } catch (const py::error_already_set&) {
      return true;
    }
    return false;
  }

  Tensors outputs_;
  Held end_;
  std::optional<c10::Stream> stream_;
};

/// A process group of Python's whose commonest calls do not go through it where C++ code makes them.
class NativeGroup final : public c10d::PyProcessGroup {
 public:
  using PyProcessGroup::PyProcessGroup;

  /// Under Python's lock.
  ///   calls         the group's `_TorchCalls`
  ///   reduction_of  Beeline's number of a reduction of torch's, by its number; raises for those that it does not have
  ///   stream        of asynchronous calls; nothing on a host rank
  void attach(const py::object& calls, py::object reduction_of, std::optional<c10::Stream> stream) {
    allreduce_ = Held(calls.attr("allreduce"));
    broadcast_ = Held(calls.attr("broadcast"));
    allgather_ = Held(calls.attr("allgather"));
    reduce_scatter_ = Held(calls.attr("reduce_scatter"));
    alltoall_ = Held(calls.attr("alltoall"));
    alltoallv_ = Held(calls.attr("alltoallv"));
    reduction_of_ = Held(std::move(reduction_of));
    stream_ = stream;
  }
  /// How many calls have come here.
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override {
    require_one(tensors);
    return reduce_all(tensors, opts);
  }
  WorkPointer allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) override {
    return reduce_all(tensors, opts);
  }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override {
    require_one(tensors);
    return started(tensors, tensors, opts.asyncOp, [&](const py::object& output, const py::object& source) {
      return call(broadcast_.get(), output, source, py::bool_(opts.asyncOp), py::int_(0), py::int_(opts.rootRank));
    });
  }

  // Names differ among torch's versions: those that a base class has are overridden.
  // NOLINTBEGIN(modernize-use-override)
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& source, const c10d::AllgatherOptions& opts) {
    return gather({output}, {source}, opts);
  }
  WorkPointer all_gather_single(at::Tensor& output, at::Tensor& source, const c10d::AllgatherOptions& opts) {
    return gather({output}, {source}, opts);
  }
  WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& sources, const c10d::AllgatherOptions& opts) {
    return gather(outputs, sources, opts);
  }
  WorkPointer all_gather_single_coalesced(Tensors& outputs, Tensors& sources, const c10d::AllgatherOptions& opts) {
    return gather(outputs, sources, opts);
  }
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& source, const c10d::ReduceScatterOptions& opts) {
    return reduce_and_scatter({output}, {source}, opts);
  }
  WorkPointer reduce_scatter_single(at::Tensor& output, at::Tensor& source, const c10d::ReduceScatterOptions& opts) {
    return reduce_and_scatter({output}, {source}, opts);
  }
  WorkPointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& sources,
                                              const c10d::ReduceScatterOptions& opts) {
    return reduce_and_scatter(outputs, sources, opts);
  }
  WorkPointer reduce_scatter_single_coalesced(Tensors& outputs, Tensors& sources,
                                              const c10d::ReduceScatterOptions& opts) {
    return reduce_and_scatter(outputs, sources, opts);
  }
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& source, std::vector<std::int64_t>& output_splits,
                            std::vector<std::int64_t>& source_splits, const c10d::AllToAllOptions& opts) {
    return exchange(output, source, output_splits, source_splits, opts);
  }
  WorkPointer all_to_all_single(at::Tensor& output, at::Tensor& source, std::vector<std::int64_t>& output_splits,
                                std::vector<std::int64_t>& source_splits, const c10d::AllToAllOptions& opts) {
    return exchange(output, source, output_splits, source_splits, opts);
  }
  // NOLINTEND(modernize-use-override)

 private:
  static void require_one(const Tensors& tensors) {
    if (tensors.size() == 1) return;
    const py::gil_scoped_acquire locked;
    PyErr_Format(PyExc_ValueError, "%zu tensors: one is expected", tensors.size());
    throw py::error_already_set();
  }

  template <class Options>
  WorkPointer reduce_all(const Tensors& tensors, const Options& opts) {
    return started(tensors, tensors, opts.asyncOp, [&](const py::object& output, const py::object& source) {
      return call(allreduce_.get(), output, source, py::bool_(opts.asyncOp), reduction(opts.reduceOp));
    });
  }
  WorkPointer gather(const Tensors& outputs, const Tensors& sources, const c10d::AllgatherOptions& opts) {
    return started(outputs, sources, opts.asyncOp, [&](const py::object& output, const py::object& source) {
      return call(allgather_.get(), output, source, py::bool_(opts.asyncOp));
    });
  }
  WorkPointer reduce_and_scatter(const Tensors& outputs, const Tensors& sources,
                                 const c10d::ReduceScatterOptions& opts) {
    return started(outputs, sources, opts.asyncOp, [&](const py::object& output, const py::object& source) {
      return call(reduce_scatter_.get(), output, source, py::bool_(opts.asyncOp), reduction(opts.reduceOp));
    });
  }

  /// What cannot be divided is refused in Python.
  WorkPointer exchange(at::Tensor& output, at::Tensor& source, std::vector<std::int64_t>& output_splits,
                       std::vector<std::int64_t>& source_splits, const c10d::AllToAllOptions& opts) {
    const py::gil_scoped_acquire locked;
    const bool is_even = output_splits.empty() && source_splits.empty();
    const std::optional<py::list> receive = parts(output, output_splits), send = parts(source, source_splits);
    if (receive && send)
      return started({output}, {source}, opts.asyncOp, [&](const py::object& to, const py::object& from) {
        const py::bool_ is_async(opts.asyncOp);
        return is_even ? call(alltoall_.get(), to, from, is_async)
                       : call(alltoallv_.get(), to, from, *send, *receive, is_async);
      });
    const py::object self = py::cast(static_cast<ProcessGroup*>(this));
    py::object work = self.attr("alltoall_base")(output, source, output_splits, source_splits, opts);
    return c10::make_intrusive<PyWorkHolder>(std::move(work));
  }

  /// The bytes of each rank's part; nothing where rows are not those of the ranks together. Without splits all have as
  /// many.
  [[nodiscard]] std::optional<py::list> parts(const at::Tensor& tensor, const std::vector<std::int64_t>& splits) const {
    if (tensor.layout() != c10::kStrided || tensor.dim() == 0) return std::nullopt;
    const std::int64_t rows = tensor.size(0), ranks = size_;
    const std::vector<std::int64_t> each = splits.empty() ? std::vector(ranks, rows / ranks) : splits;
    if (static_cast<std::int64_t>(each.size()) != ranks || std::reduce(each.begin(), each.end()) != rows)
      return std::nullopt;
    const std::int64_t row = rows == 0 ? 0 : static_cast<std::int64_t>(tensor.nbytes()) / rows;
    py::list bytes;
    for (const std::int64_t part : each) bytes.append(part * row);
    return bytes;
  }

  [[nodiscard]] py::object reduction(const c10d::ReduceOp& operation) {
    return reduction_of_.get()(static_cast<int>(operation.op_));
  }

  /// Makes a call for each pair of tensors; the work is over when the last of them is.
  template <class Call>
  WorkPointer started(const Tensors& outputs, const Tensors& sources, bool is_async, const Call& make) {
    const py::gil_scoped_acquire locked;
    if (outputs.empty() || outputs.size() != sources.size()) {
      PyErr_Format(PyExc_ValueError, "lists of %zu and %zu tensors", outputs.size(), sources.size());
      throw py::error_already_set();
    }
    ++calls_;
    py::object end;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const py::object output = py::cast(outputs[i]);
      end = make(output, outputs[i].is_same(sources[i]) ? output : py::cast(sources[i]));
    }
    if (end.is_none()) return c10::make_intrusive<NativeWork>(outputs, py::object(), std::nullopt);
    if (stream_) {  // torch keeps the memory of tensors until the stream has passed here
      for (const at::Tensor& output : outputs) output.record_stream(*stream_);
      if (&outputs != &sources)
        for (const at::Tensor& source : sources) source.record_stream(*stream_);
    }
    return c10::make_intrusive<NativeWork>(outputs, std::move(end), stream_);
  }

  Held allreduce_, broadcast_, allgather_, reduce_scatter_, alltoall_, alltoallv_, reduction_of_;
  std::optional<c10::Stream> stream_;
  std::uint64_t calls_ = 0;
};

/// A stream as Python's `torch.Stream` names it.
using StreamNumbers = std::optional<std::tuple<c10::StreamId, int, int>>;

std::optional<c10::Stream> stream_of(const StreamNumbers& numbers) {
  if (!numbers) return std::nullopt;
  const auto [id, device, kind] = *numbers;
  return c10::Stream::unpack3(id, static_cast<c10::DeviceIndex>(device), static_cast<c10::DeviceType>(kind));
}

NativeGroup& native(c10d::ProcessGroup& group) {
  auto* const found = dynamic_cast<NativeGroup*>(&group);
  if (found == nullptr) throw py::type_error("a group that `construct` has not made");
  return *found;
}

}  // namespace

PYBIND11_MODULE(_beeline_torch, module) {
  const py::object group = py::module_::import("torch.distributed").attr("ProcessGroup");
  const auto* const known = py::detail::get_type_info(typeid(c10d::ProcessGroup));
  if (known == nullptr || reinterpret_cast<PyObject*>(known->type) != group.ptr())
    throw py::import_error("torch's classes are not seen from a module that this compiler makes");
  // A constructor of torch's class, for its subclasses in Python: they stay what they are, and C++ calls come here.
  module.attr("construct") = py::cpp_function(
      [](py::detail::value_and_holder& place, int rank, int size) { place.value_ptr() = new NativeGroup(rank, size); },
      py::name("__init__"), py::is_method(group), py::detail::is_new_style_constructor());
  module.def("attach", [](c10d::ProcessGroup& group, const py::object& calls, py::object reduction_of,
                          const StreamNumbers& stream) {
    native(group).attach(calls, std::move(reduction_of), stream_of(stream));
  });
  module.def("calls", [](c10d::ProcessGroup& group) { return native(group).calls(); });
  module.def("future", [](Tensors result, const StreamNumbers& stream) {
    return std::make_shared<torch::jit::PythonFutureWrapper>(future_of(std::move(result), stream_of(stream)));
  });
}

}  // namespace beeline::torch_native
