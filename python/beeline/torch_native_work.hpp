// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Common parts of the C++ part of the torch back end: calls of the library's table, its tensors, and works.

#include <ATen/DLConvertor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#if __has_include(<torch/csrc/distributed/c10d/py/PyProcessGroup.hpp>)
#include <torch/csrc/distributed/c10d/py/PyProcessGroup.hpp>
#else
#include <torch/csrc/distributed/c10d/PyProcessGroup.hpp>
#endif

#include "torch_table.hpp"

namespace beeline::torch_native {

namespace py = pybind11;
using c10d::Work;
using Tensors = std::vector<at::Tensor>;
using Bytes = std::vector<std::size_t>;
using WorkPointer = c10::intrusive_ptr<Work>;

/// A Python object that C++ code holds, and may release without Python's lock.
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
      static_cast<void>(object_.release());  // Python has ended, so the object cannot be released
      return;
    }
    const py::gil_scoped_acquire locked;
    object_ = py::object();
  }

  /// Called under Python's lock.
  [[nodiscard]] const py::object& get() const { return object_; }

 private:
  py::object object_;
};

inline const torch_table::Table* library = nullptr;  ///< set before the first group is made

/// The object in a capsule of that name.
template <class T>
T* held_by(const py::capsule& capsule, const char* name) {
  void* const pointer = PyCapsule_GetPointer(capsule.ptr(), name);
  if (pointer == nullptr) throw py::error_already_set();
  return static_cast<T*>(pointer);
}

/// Runs `part` without Python's lock, whether or not this thread holds the lock.
template <class Part>
auto unlocked(const Part& part) {
  std::optional<py::gil_scoped_release> released;
  if (PyGILState_Check() != 0) released.emplace();
  return part();
}

/// If `status` is not 0, throws the error of the library's function that failed.
inline void check(int status) {
  if (status == 0) return;
  const py::gil_scoped_acquire locked;
  library->raise();
  throw py::error_already_set();
}

[[noreturn]] inline void refuse(const std::string& text) {
  const py::gil_scoped_acquire locked;
  PyErr_SetString(PyExc_ValueError, text.c_str());
  throw py::error_already_set();
}

/// The handle of torch's current stream on the GPU of `stream`; nullptr on a host rank, which has no `stream`.
inline void* current_stream(const std::optional<c10::Stream>& stream) {
  if (!stream) return nullptr;
  return c10::impl::VirtualGuardImpl(stream->device_type()).getStream(stream->device()).native_handle();
}

/// A tensor as the library's functions take it; valid as long as `tensor` lives.
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

/// Whether `parts` are `count` dense tensors with the type, size and device of `each`, which is dense and contiguous.
inline bool are_parts(const Tensors& parts, std::int64_t count, const at::Tensor& each) {
  const auto is_alike = [&](const at::Tensor& part) {
    return part.layout() == c10::kStrided && part.scalar_type() == each.scalar_type() &&
           part.device() == each.device() && part.numel() == each.numel();
  };
  return each.layout() == c10::kStrided && each.is_contiguous() && static_cast<std::int64_t>(parts.size()) == count &&
         std::all_of(parts.begin(), parts.end(), is_alike);
}

/// Whether these are `count` dense tensors of the same type on that device.
inline bool are_pieces(const Tensors& tensors, std::int64_t count, c10::Device device) {
  return static_cast<std::int64_t>(tensors.size()) == count &&
         std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& each) {
           return each.layout() == c10::kStrided && each.scalar_type() == tensors[0].scalar_type() &&
                  each.device() == device;
         });
}

inline bool are_contiguous(const Tensors& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& each) { return each.is_contiguous(); });
}

inline std::int64_t count_of(const Tensors& tensors) {
  std::int64_t count = 0;
  for (const at::Tensor& each : tensors) count += each.numel();
  return count;
}

inline Bytes bytes_of(const Tensors& tensors) {
  Bytes bytes;
  for (const at::Tensor& each : tensors) bytes.push_back(each.nbytes());
  return bytes;
}

/// The concatenated elements of the tensors.
inline at::Tensor put_together(const Tensors& tensors) {
  Tensors rows;
  for (const at::Tensor& each : tensors) rows.push_back(each.detach().reshape(-1));
  return rows.size() == 1 ? rows.front() : at::cat(rows);
}

/// Copies consecutive elements into tensors.
inline void take_apart(const at::Tensor& together, const Tensors& parts) {
  Tensors rows;
  std::int64_t first = 0;
  for (const at::Tensor& part : parts) {
    rows.push_back(together.narrow(0, first, part.numel()).view(part.sizes()));
    first += part.numel();
  }
  at::_foreach_copy_(parts, rows);
}

/// The library's calls of a group, which the capsule keeps alive.
struct GroupCalls {
  Held capsule;
  torch_table::Calls* calls;
};

/// A future like those of torch's own back ends: its result is ready when `stream`, or otherwise the current streams of
/// its devices, have reached this point.
inline c10::intrusive_ptr<c10::ivalue::Future> future_of(Tensors result, std::optional<c10::Stream> stream) {
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

/// A call that is pending, complete, or in the order of torch's current stream: `BeelineWork` in C++.
class NativeWork final : public Work {
 public:
  using End = std::unique_ptr<torch_table::End, void (*)(torch_table::End*)>;

  ///   end  of a host rank's call, or on `stream` if that is not torch's current stream
  NativeWork(Tensors outputs, torch_table::End* end, std::optional<c10::Stream> stream)
      : outputs_(std::move(outputs)), end_(end, library->let_go), stream_(stream) {}
  /// For a host rank's call, which copies the results to their destinations itself when the call is over.
  NativeWork(Tensors outputs, torch_table::End* end, std::function<void()> finish)
      : outputs_(std::move(outputs)), end_(end, library->let_go), finish_(std::move(finish)) {}
  /// For a barrier whose end the CPU waits for.
  NativeWork(torch_table::End* end, std::optional<c10::Stream> stream, std::shared_ptr<GroupCalls> barrier)
      : end_(end, library->let_go), stream_(stream), barrier_(std::move(barrier)) {}

  bool wait(std::chrono::milliseconds timeout) override {
    check(wait_for_end(timeout));
    finish();
    if (barrier_)
      check(unlocked([&] { return library->synchronize_current(barrier_->calls, current_stream(stream_)); }));
    return true;
  }
  void synchronize() override { wait(kNoTimeout); }
  bool isCompleted() override {
    if (!is_reached()) return false;
    if (!has_failed()) finish();
    return true;
  }
  bool isSuccess() const override { return is_reached() && !has_failed(); }
  Tensors result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    if (!stream_) wait(kNoTimeout);  // a host rank's call: nothing else would complete the future
    return future_of(outputs_, stream_);
  }
  /// Called under Python's lock. The exception of a call that is over, or None. On a GPU the next call raises the
  /// error.
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

  void finish() {
    unlocked([&] {
      const std::lock_guard lock(finishing_);
      if (finish_) std::exchange(finish_, nullptr)();
    });
  }

  /// Whether a host rank's call that is over has failed.
  [[nodiscard]] bool has_failed() const { return !stream_ && wait_for_end(kNoTimeout) != 0; }

  Tensors outputs_;
  End end_;
  std::optional<c10::Stream> stream_;
  std::shared_ptr<GroupCalls> barrier_;
  std::mutex finishing_;
  std::function<void()> finish_;
};

}  // namespace beeline::torch_native
