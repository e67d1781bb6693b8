// SPDX-License-Identifier: Apache-2.0
// The process groups of the back end `beeline` in C++. torch_native.py has this file compiled against the torch that is
// installed; without it calls go through Python.
//
//   torch.distributed, c10d::Reducer --> NativeGroup::allreduce --> a table of C functions of beeline._beeline
//                                    <-- NativeWork <-------------- the call's end
#include <ATen/DLConvertor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>
#if __has_include(<torch/csrc/distributed/c10d/py/PyProcessGroup.hpp>)
#include <torch/csrc/distributed/c10d/py/PyProcessGroup.hpp>
#else
#include <torch/csrc/distributed/c10d/PyProcessGroup.hpp>
#endif

#include "torch_table.hpp"

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

const torch_table::Table* library = nullptr;  ///< set before the first group is made

/// What a capsule of that name holds.
template <class T>
T* held_by(const py::capsule& capsule, const char* name) {
  void* const pointer = PyCapsule_GetPointer(capsule.ptr(), name);
  if (pointer == nullptr) throw py::error_already_set();
  return static_cast<T*>(pointer);
}

/// Runs `part` without Python's lock, whether this thread has it or not.
template <class Part>
auto unlocked(const Part& part) {
  std::optional<py::gil_scoped_release> released;
  if (PyGILState_Check() != 0) released.emplace();
  return part();
}

/// Throws the error of a function of the library's that has failed.
void check(int status) {
  if (status == 0) return;
  const py::gil_scoped_acquire locked;
  library->raise();
  throw py::error_already_set();
}

[[noreturn]] void refuse(const std::string& text) {
  const py::gil_scoped_acquire locked;
  PyErr_SetString(PyExc_ValueError, text.c_str());
  throw py::error_already_set();
}

/// The handle of torch's current stream on the GPU of `stream`; nullptr without one, on a host rank.
void* current_stream(const std::optional<c10::Stream>& stream) {
  if (!stream) return nullptr;
  return c10::impl::VirtualGuardImpl(stream->device_type()).getStream(stream->device()).native_handle();
}

/// A tensor as the library takes it, while `tensor` lives.
class Vector {
 public:
  Vector(const at::Tensor& tensor, const char* argument) : tensor_(tensor) {
    try {
      at::toDLPackNonOwning(tensor, &description_);
    } catch (const c10::Error& reason) {
      const std::string text = reason.what_without_backtrace();
      refuse(std::string(argument) +
             ": Tensor without plain memory, as a sparse one: " + text.substr(0, text.find('\n')));
    }
  }
  [[nodiscard]] torch_table::Operand operand() const {
    return {&description_, const_cast<at::Tensor*>(&tensor_),
            [](void* tensor) -> void* { return new at::Tensor(*static_cast<at::Tensor*>(tensor)); },
            [](void* kept) { delete static_cast<at::Tensor*>(kept); }};
  }

 private:
  const at::Tensor& tensor_;
  DLTensor description_;
};

/// The library's calls of a group, which the capsule holds.
struct GroupCalls {
  Held capsule;
  torch_table::Calls* calls;
};

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
  using End = std::unique_ptr<torch_table::End, void (*)(torch_table::End*)>;

  /// `end`: on `stream`, where that is not torch's current one, or of a host rank.
  NativeWork(Tensors outputs, torch_table::End* end, std::optional<c10::Stream> stream)
      : outputs_(std::move(outputs)), end_(end, library->let_go), stream_(stream) {}
  /// Of a barrier, for whose end the CPU waits.
  NativeWork(torch_table::End* end, std::optional<c10::Stream> stream, std::shared_ptr<GroupCalls> barrier)
      : end_(end, library->let_go), stream_(stream), barrier_(std::move(barrier)) {}

  bool wait(std::chrono::milliseconds timeout) override {
    check(wait_for_end(timeout));
    if (barrier_)
      check(unlocked([&] { return library->synchronize_current(barrier_->calls, current_stream(stream_)); }));
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
  /// Under Python's lock: the exception of a call that is over, or None. On a GPU the next call raises it.
  [[nodiscard]] py::object failure() const {
    if (!is_reached() || !has_failed()) return py::none();
    library->raise();
    return py::error_already_set().value();
  }

 private:
  [[nodiscard]] bool is_reached() const { return !end_ || library->is_reached(end_.get()); }

  [[nodiscard]] int wait_for_end(std::chrono::milliseconds timeout) const {
    if (!end_) return 0;
    const double seconds = timeout == kNoTimeout ? -1 : std::chrono::duration<double>(timeout).count();
    return unlocked([&] { return library->wait(end_.get(), seconds, current_stream(stream_)); });
  }

  /// Whether a call of a host rank that is over has ended by an error.
  [[nodiscard]] bool has_failed() const { return !stream_ && wait_for_end(kNoTimeout) != 0; }

  Tensors outputs_;
  End end_;
  std::optional<c10::Stream> stream_;
  std::shared_ptr<GroupCalls> barrier_;
};

/// A process group of Python's whose commonest calls do not go through Python.
class NativeGroup final : public c10d::PyProcessGroup {
 public:
  using PyProcessGroup::PyProcessGroup;
  /// By their numbers in torch.
  using Reductions = std::unordered_map<int, std::uint32_t>;

  /// Under Python's lock.
  ///   calls       the capsule of the group's `_TorchCalls`
  ///   reductions  the library's numbers
  ///   in_python   the class whose functions raise the errors of calls that cannot be made here, and their helper
  ///   stream      of asynchronous calls; nothing on a host rank
  void attach(const py::capsule& calls, Reductions reductions, const py::object& in_python,
              std::optional<c10::Stream> stream) {
    calls_ = std::make_shared<GroupCalls>(
        GroupCalls{Held(calls), held_by<torch_table::Calls>(calls, torch_table::calls_capsule)});
    reductions_ = std::move(reductions);
    in_python_ = Held(in_python);
    stream_ = stream;
  }
  /// How many calls have come here.
  [[nodiscard]] std::uint64_t calls() const { return count_; }

  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override {
    require_one(tensors);
    return reduce_all(tensors, opts);
  }
  WorkPointer allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) override {
    return reduce_all(tensors, opts);
  }
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override {
    require_one(tensors);
    return collective(Collective::reduce, tensors, tensors, opts.asyncOp, reduction(opts.reduceOp),
                      static_cast<int>(opts.rootRank));
  }
  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override {
    require_one(tensors);
    return collective(Collective::broadcast, tensors, tensors, opts.asyncOp, 0, static_cast<int>(opts.rootRank));
  }
  WorkPointer barrier(const c10d::BarrierOptions& opts) override {
    return unlocked([&]() -> WorkPointer {
      ++count_;
      const torch_table::Manner manner{opts.asyncOp, current_stream(stream_)};
      torch_table::End* end = nullptr;
      check(library->barrier(calls_->calls, &manner, &end));  // one call for both forms: members may differ in it
      if (opts.asyncOp) return c10::make_intrusive<NativeWork>(end, stream_, calls_);
      check(library->synchronize(calls_->calls));
      check(library->synchronize_current(calls_->calls, manner.current_stream));  // as with other back ends
      return c10::make_intrusive<NativeWork>(Tensors(), nullptr, std::nullopt);
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
  using Collective = torch_table::Collective;

  static void require_one(const Tensors& tensors) {
    if (tensors.size() != 1) refuse(std::to_string(tensors.size()) + " tensors: one is expected");
  }

  template <class Options>
  WorkPointer reduce_all(const Tensors& tensors, const Options& opts) {
    return collective(Collective::allreduce, tensors, tensors, opts.asyncOp, reduction(opts.reduceOp));
  }
  WorkPointer gather(const Tensors& outputs, const Tensors& sources, const c10d::AllgatherOptions& opts) {
    return collective(Collective::allgather, outputs, sources, opts.asyncOp);
  }
  WorkPointer reduce_and_scatter(const Tensors& outputs, const Tensors& sources,
                                 const c10d::ReduceScatterOptions& opts) {
    return collective(Collective::reduce_scatter, outputs, sources, opts.asyncOp, reduction(opts.reduceOp));
  }

  /// What cannot be divided is refused in Python.
  WorkPointer exchange(at::Tensor& output, at::Tensor& source, std::vector<std::int64_t>& output_splits,
                       std::vector<std::int64_t>& source_splits, const c10d::AllToAllOptions& opts) {
    const std::optional<Bytes> receive = parts(output, output_splits), send = parts(source, source_splits);
    if (!receive || !send) {
      const py::gil_scoped_acquire locked;
      py::object work = in_python_.get().attr("alltoall_base")(py::cast(static_cast<ProcessGroup*>(this)), output,
                                                               source, output_splits, source_splits, opts);
      return c10::make_intrusive<PyWorkHolder>(std::move(work));
    }
    if (output_splits.empty() && source_splits.empty())
      return collective(Collective::alltoall, {output}, {source}, opts.asyncOp);
    return started({output}, {source}, opts.asyncOp,
                   [&](const auto& to, const auto& from, const auto& manner, torch_table::End** end) {
                     return library->alltoallv(calls_->calls, &to, &from, send->data(), receive->data(), &manner, end);
                   });
  }

  /// The bytes of each rank's part; nothing where rows are not those of the ranks together. Without splits all have as
  /// many.
  using Bytes = std::vector<std::size_t>;
  [[nodiscard]] std::optional<Bytes> parts(const at::Tensor& tensor, const std::vector<std::int64_t>& splits) const {
    if (tensor.layout() != c10::kStrided || tensor.dim() == 0) return std::nullopt;
    const std::int64_t rows = tensor.size(0), ranks = size_;
    const std::vector<std::int64_t> each = splits.empty() ? std::vector(ranks, rows / ranks) : splits;
    if (static_cast<std::int64_t>(each.size()) != ranks || std::reduce(each.begin(), each.end()) != rows)
      return std::nullopt;
    const std::size_t row = rows == 0 ? 0 : tensor.nbytes() / static_cast<std::size_t>(rows);
    Bytes bytes;
    for (const std::int64_t part : each) bytes.push_back(static_cast<std::size_t>(part) * row);
    return bytes;
  }

  /// The library's number; raises in Python for those that it does not have.
  [[nodiscard]] std::uint32_t reduction(const c10d::ReduceOp& operation) const {
    const auto found = reductions_.find(static_cast<int>(operation.op_));
    if (found != reductions_.end()) return found->second;
    const py::gil_scoped_acquire locked;
    return in_python_.get().attr("reduction_number")(static_cast<int>(operation.op_)).cast<std::uint32_t>();
  }

  WorkPointer collective(Collective what, const Tensors& outputs, const Tensors& sources, bool is_async,
                         std::uint32_t reduction = 0, int root = -1) {
    return started(outputs, sources, is_async,
                   [&](const auto& output, const auto& source, const auto& manner, torch_table::End** end) {
                     return library->call(calls_->calls, what, &output, &source, reduction, root, &manner, end);
                   });
  }

  /// Makes a call for each pair of tensors; the work is over when the last of them is.
  template <class Call>
  WorkPointer started(const Tensors& outputs, const Tensors& sources, bool is_async, const Call& make) {
    if (outputs.empty() || outputs.size() != sources.size())
      refuse("lists of " + std::to_string(outputs.size()) + " and " + std::to_string(sources.size()) + " tensors");
    return unlocked([&] {
      ++count_;
      const torch_table::Manner manner{is_async, current_stream(stream_)};
      NativeWork::End last(nullptr, library->let_go);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Vector output(outputs[i], "output");
        torch_table::End* end = nullptr;
        if (outputs[i].is_same(sources[i])) {
          check(make(output.operand(), output.operand(), manner, &end));
        } else {
          const Vector source(sources[i], "input");
          check(make(output.operand(), source.operand(), manner, &end));
        }
        last.reset(end);
      }
      if (last == nullptr) return c10::make_intrusive<NativeWork>(outputs, nullptr, std::nullopt);
      if (stream_) {  // torch keeps the memory of tensors until the stream has passed here
        for (const at::Tensor& output : outputs) output.record_stream(*stream_);
        if (&outputs != &sources)
          for (const at::Tensor& source : sources) source.record_stream(*stream_);
      }
      return c10::make_intrusive<NativeWork>(outputs, last.release(), stream_);
    });
  }

  std::shared_ptr<GroupCalls> calls_;
  Reductions reductions_;
  Held in_python_;
  std::optional<c10::Stream> stream_;
  std::atomic<std::uint64_t> count_ = 0;
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
  module.def("use", [](const py::capsule& offered) {
    const auto* const table = held_by<const torch_table::Table>(offered, torch_table::table_capsule);
    if (table->version != torch_table::current_version)
      throw py::import_error("it calls version " + std::to_string(torch_table::current_version) +
                             " of the library's table, but beeline._beeline has version " +
                             std::to_string(table->version));
    library = table;
  });
  module.def("attach", [](c10d::ProcessGroup& group, const py::capsule& calls, NativeGroup::Reductions reductions,
                          const py::object& in_python, const StreamNumbers& stream) {
    native(group).attach(calls, std::move(reductions), in_python, stream_of(stream));
  });
  py::class_<NativeWork, Work, c10::intrusive_ptr<NativeWork>>(module, "NativeWork")
      .def("is_success", &NativeWork::isSuccess, py::call_guard<py::gil_scoped_release>())
      .def("exception", &NativeWork::failure)
      .def("result", &NativeWork::result);
  module.def("calls", [](c10d::ProcessGroup& group) { return native(group).calls(); });
  module.def("future", [](Tensors result, const StreamNumbers& stream) {
    return std::make_shared<torch::jit::PythonFutureWrapper>(future_of(std::move(result), stream_of(stream)));
  });
}

}  // namespace beeline::torch_native
