// SPDX-License-Identifier: Apache-2.0
// The process groups of the back end `beeline` in C++. torch_native.py has this file compiled against the torch that is
// installed; without it calls go through Python.
//
//   torch.distributed, c10d::Reducer --> NativeGroup::allreduce --> a table of C functions of beeline._beeline
//                                    <-- NativeWork <-------------- the call's end
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

#include "torch_native_work.hpp"

namespace beeline::torch_native {

namespace {

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
  /// The nanoseconds that each call has taken in the library since the last question, which begins the measurement. For
  /// programs that call from one thread.
  [[nodiscard]] std::vector<std::int64_t> take_times_ns() {
    is_timed_ = true;
    return std::exchange(times_ns_, {});
  }

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
          check(timed([&] { return make(output.operand(), output.operand(), manner, &end); }));
        } else {
          const Vector source(sources[i], "input");
          check(timed([&] { return make(output.operand(), source.operand(), manner, &end); }));
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

  template <class Call>
  [[nodiscard]] int timed(const Call& call) {
    if (!is_timed_) return call();
    const auto start = std::chrono::steady_clock::now();
    const int status = call();
    times_ns_.push_back(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
    return status;
  }

  std::shared_ptr<GroupCalls> calls_;
  Reductions reductions_;
  Held in_python_;
  std::optional<c10::Stream> stream_;
  std::atomic<std::uint64_t> count_ = 0;
  std::atomic<bool> is_timed_ = false;
  std::vector<std::int64_t> times_ns_;
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
  module.def("take_times_ns", [](c10d::ProcessGroup& group) { return native(group).take_times_ns(); });
  module.def("future", [](Tensors result, const StreamNumbers& stream) {
    return std::make_shared<torch::jit::PythonFutureWrapper>(future_of(std::move(result), stream_of(stream)));
  });
}

}  // namespace beeline::torch_native
