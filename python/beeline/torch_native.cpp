// SPDX-License-Identifier: Apache-2.0
// The process groups of the back end `beeline` in C++. torch_native.py compiles this file for the installed torch;
// without the result, calls go through Python.
//
//   torch.distributed, c10d::Reducer --> NativeGroup::allreduce --> a table of C functions of beeline._beeline
//                                    <-- NativeWork <-------------- the call's end
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
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

/// A process group of Python whose most frequent calls do not go through Python.
class NativeGroup final : public c10d::PyProcessGroup {
 public:
  using PyProcessGroup::PyProcessGroup;
  /// The library's reductions, by their numbers in torch.
  using Reductions = std::unordered_map<int, std::uint32_t>;

  /// Called under Python's lock.
  ///   calls       the capsule of the group's `_TorchCalls`
  ///   reductions  the library's numbers
  ///   in_python   a class whose functions raise the errors of calls that this class cannot make, and carry out other
  ///               calls
  ///   stream      for asynchronous calls; nothing on a host rank
  void attach(const py::capsule& calls, Reductions reductions, const py::object& in_python,
              std::optional<c10::Stream> stream) {
    calls_ = std::make_shared<GroupCalls>(
        GroupCalls{Held(calls), held_by<torch_table::Calls>(calls, torch_table::calls_capsule)});
    reductions_ = std::move(reductions);
    in_python_ = Held(in_python);
    stream_ = stream;
  }
  /// How many calls were made through this class.
  [[nodiscard]] std::uint64_t calls() const { return count_; }
  /// The nanoseconds that each call has spent in the library since the previous `take_times_ns`; the first one starts
  /// the measurement. For programs that call from one thread.
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
      check(library->barrier(calls_->calls, &manner, &end));  // one call for both forms: members may differ
      if (opts.asyncOp) return c10::make_intrusive<NativeWork>(end, stream_, calls_);
      check(library->synchronize(calls_->calls));
      check(library->synchronize_current(calls_->calls, manner.current_stream));  // the CPU waits, too
      return nullptr;
    });
  }

  // --- Lists of tensors: those that these functions do not take are refused, or taken, in Python ------------------

  WorkPointer allgather(std::vector<Tensors>& outputs, Tensors& sources, const c10d::AllgatherOptions& opts) override {
    if (outputs.size() != 1 || sources.size() != 1 || !are_parts(outputs[0], size_, sources[0]))
      return in_python("allgather", outputs, sources, opts);
    return with_list(Collective::allgather, outputs[0], sources[0], opts.asyncOp, -1);
  }
  WorkPointer gather(std::vector<Tensors>& outputs, Tensors& sources, const c10d::GatherOptions& opts) override {
    const bool is_root = opts.rootRank == rank_;
    if (sources.size() != 1 || outputs.size() < std::size_t{is_root} ||
        !are_parts(is_root ? outputs[0] : Tensors(), is_root ? size_ : 0, sources[0]))
      return in_python("gather", outputs, sources, opts);
    return with_list(Collective::gather, is_root ? outputs[0] : Tensors(), sources[0], opts.asyncOp,
                     static_cast<int>(opts.rootRank));
  }
  WorkPointer scatter(Tensors& outputs, std::vector<Tensors>& sources, const c10d::ScatterOptions& opts) override {
    const bool is_root = opts.rootRank == rank_;
    if (outputs.size() != 1 || sources.size() < std::size_t{is_root} ||
        !are_parts(is_root ? sources[0] : Tensors(), is_root ? size_ : 0, outputs[0]) ||
        (is_root && !are_contiguous(sources[0])))
      return in_python("scatter", outputs, sources, opts);
    const at::Tensor together = is_root ? put_together(sources[0]) : at::Tensor();
    return collective(Collective::scatter, outputs, {together}, opts.asyncOp, 0, static_cast<int>(opts.rootRank));
  }
  WorkPointer reduce_scatter(Tensors& outputs, std::vector<Tensors>& sources,
                             const c10d::ReduceScatterOptions& opts) override {
    if (outputs.size() != 1 || sources.size() != 1 || !are_parts(sources[0], size_, outputs[0]))
      return in_python("reduce_scatter", outputs, sources, opts);
    return reduce_and_scatter(outputs, {put_together(sources[0])}, opts);
  }
  WorkPointer alltoall(Tensors& outputs, Tensors& sources, const c10d::AllToAllOptions& opts) override {
    if (!are_pieces(outputs, size_, device()) || !are_pieces(sources, size_, device()) || !are_contiguous(sources) ||
        outputs[0].scalar_type() != sources[0].scalar_type())
      return in_python("alltoall", outputs, sources, opts);
    const Bytes receive = bytes_of(outputs), send = bytes_of(sources);
    return start_list(outputs, sources, opts.asyncOp, [&](const torch_table::Manner& manner) {
      const at::Tensor mine = put_together(sources);
      const at::Tensor together = at::empty({count_of(outputs)}, outputs[0].options());
      torch_table::End* end = nullptr;
      const Vector output(together, "output"), source(mine, "input");
      const auto to = output.operand(), from = source.operand();
      check(library->alltoallv(calls_->calls, &to, &from, send.data(), receive.data(), &manner, &end));
      return Started{end, [together, outputs] { take_apart(together, outputs); }};
    });
  }

  // Names differ among torch's versions: those that exist in a base class override it.
  // NOLINTBEGIN(modernize-use-override)
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& source, const c10d::AllgatherOptions& opts) {
    return gather_all({output}, {source}, opts);
  }
  WorkPointer all_gather_single(at::Tensor& output, at::Tensor& source, const c10d::AllgatherOptions& opts) {
    return gather_all({output}, {source}, opts);
  }
  WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& sources, const c10d::AllgatherOptions& opts) {
    return gather_all(outputs, sources, opts);
  }
  WorkPointer all_gather_single_coalesced(Tensors& outputs, Tensors& sources, const c10d::AllgatherOptions& opts) {
    return gather_all(outputs, sources, opts);
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
  WorkPointer gather_all(const Tensors& outputs, const Tensors& sources, const c10d::AllgatherOptions& opts) {
    return collective(Collective::allgather, outputs, sources, opts.asyncOp);
  }
  WorkPointer reduce_and_scatter(const Tensors& outputs, const Tensors& sources,
                                 const c10d::ReduceScatterOptions& opts) {
    return collective(Collective::reduce_scatter, outputs, sources, opts.asyncOp, reduction(opts.reduceOp));
  }

  /// Splits that do not fit are refused in Python.
  WorkPointer exchange(at::Tensor& output, at::Tensor& source, std::vector<std::int64_t>& output_splits,
                       std::vector<std::int64_t>& source_splits, const c10d::AllToAllOptions& opts) {
    const std::optional<Bytes> receive = parts(output, output_splits), send = parts(source, source_splits);
    if (!receive || !send) return in_python("alltoall_base", output, source, output_splits, source_splits, opts);
    if (output_splits.empty() && source_splits.empty())
      return collective(Collective::alltoall, {output}, {source}, opts.asyncOp);
    return started({output}, {source}, opts.asyncOp,
                   [&](const auto& to, const auto& from, const auto& manner, torch_table::End** end) {
                     return library->alltoallv(calls_->calls, &to, &from, send->data(), receive->data(), &manner, end);
                   });
  }

  /// Calls the function `name` of the Python class, and returns its work; throws what the function raises.
  template <class... Arguments>
  WorkPointer in_python(const char* name, Arguments&... arguments) {
    const py::gil_scoped_acquire locked;
    py::object work = in_python_.get().attr(name)(py::cast(static_cast<ProcessGroup*>(this)), arguments...);
    return c10::make_intrusive<PyWorkHolder>(std::move(work));
  }

  [[nodiscard]] c10::Device device() const { return stream_ ? stream_->device() : c10::Device(c10::kCPU); }
  [[nodiscard]] bool are_parts(const Tensors& parts, std::int64_t count, const at::Tensor& each) const {
    return each.device() == device() && torch_native::are_parts(parts, count, each);
  }

  /// A collective on tensors that the group makes, and a function that copies the results to their destinations.
  struct Started {
    torch_table::End* end;
    std::function<void()> finish;
  };

  /// All ranks, or only the root (then the other ranks have no outputs), get every rank's `source` in a list of
  /// outputs.
  WorkPointer with_list(Collective what, const Tensors& outputs, const at::Tensor& source, bool is_async, int root) {
    return start_list(outputs, {source}, is_async, [&](const torch_table::Manner& manner) {
      at::Tensor together;
      std::optional<Vector> output;
      if (!outputs.empty()) together = at::empty({count_of(outputs)}, source.options());
      if (!outputs.empty()) output.emplace(together, "output");
      const Vector input(source, "input");
      const torch_table::Operand to = output ? output->operand() : torch_table::Operand(), from = input.operand();
      torch_table::End* end = nullptr;
      check(library->call(calls_->calls, what, &to, &from, 0, root, &manner, &end));
      return Started{end, [together, outputs] {
                       if (!outputs.empty()) take_apart(together, outputs);
                     }};
    });
  }

  /// Runs `call`, which makes tensors and starts a collective on them, either asynchronously or in stream order.
  template <class Call>
  WorkPointer start_list(const Tensors& outputs, const Tensors& sources, bool is_async, const Call& call) {
    return unlocked([&]() -> WorkPointer {
      ++count_;
      if (is_async && !stream_) {
        Started started = call(torch_table::Manner{true, nullptr});
        return c10::make_intrusive<NativeWork>(outputs, started.end, std::move(started.finish));
      }
      if (!is_async) {
        call(torch_table::Manner{false, current_stream(stream_)}).finish();
        return nullptr;
      }
      c10::Event here(stream_->device_type());
      here.record(c10::impl::VirtualGuardImpl(stream_->device_type()).getStream(stream_->device()));
      here.block(*stream_);
      const c10::StreamGuard on(*stream_);
      call(torch_table::Manner{false, stream_->native_handle()}).finish();
      torch_table::End* end = nullptr;
      check(library->record(calls_->calls, stream_->native_handle(), &end));
      record_streams(outputs);
      record_streams(sources);
      return c10::make_intrusive<NativeWork>(outputs, end, stream_);
    });
  }
  /// torch keeps the memory of these tensors until the stream has reached this point. As `Tensor::record_stream`, which
  /// takes longer: it goes through torch's dispatcher.
  void record_streams(const Tensors& tensors) const {
    const c10::impl::VirtualGuardImpl gpu(stream_->device_type());
    for (const at::Tensor& each : tensors)
      if (each.defined()) gpu.recordDataPtrOnStream(each.storage().data_ptr(), *stream_);
  }

  /// The bytes of each rank's part; nothing if the rows do not add up to those of the tensor. Without splits, all parts
  /// have the same size.
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

  /// The library's number of the reduction; raises in Python if the library does not have it.
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

  /// Makes one call for each pair of tensors; the work is complete when the last of them is. Synchronous calls have no
  /// work, as those of torch's own back ends: the caller, or torch's current stream, has waited.
  template <class Call>
  WorkPointer started(const Tensors& outputs, const Tensors& sources, bool is_async, const Call& make) {
    if (outputs.empty() || outputs.size() != sources.size())
      refuse("lists of " + std::to_string(outputs.size()) + " and " + std::to_string(sources.size()) + " tensors");
    return unlocked([&]() -> WorkPointer {
      ++count_;
      const torch_table::Manner manner{is_async, current_stream(stream_)};
      NativeWork::End last(nullptr, library->let_go);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Vector output(outputs[i], "output");
        torch_table::End* end = nullptr;
        if (outputs[i].is_same(sources[i])) {
          check(timed([&] { return make(output.operand(), output.operand(), manner, &end); }));
        } else if (!sources[i].defined()) {  // only the root of a scatter has sources
          check(timed([&] { return make(output.operand(), torch_table::Operand(), manner, &end); }));
        } else {
          const Vector source(sources[i], "input");
          check(timed([&] { return make(output.operand(), source.operand(), manner, &end); }));
        }
        last.reset(end);
      }
      if (!is_async) return nullptr;
      if (stream_) record_streams(outputs);
      if (stream_ && &outputs != &sources) record_streams(sources);
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

/// A stream as `torch.Stream` in Python identifies it.
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
  // Replaces the constructor of torch's class for its subclasses in Python: they keep their class, and calls from C++
  // reach this group.
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
