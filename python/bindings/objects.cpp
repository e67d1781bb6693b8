// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <charconv>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "beeline/hpe/object.hpp"
#include "bindings.hpp"
#include "keywords.hpp"
#include "tensor.hpp"
#include "unlocked.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

using Shape = std::vector<std::size_t>;

/// A device by its name: auto, cpu, cpu:1, cuda, cuda:1.
std::optional<hpe::Device> device_of(const std::string& text) {
  if (text == "auto") return std::nullopt;
  const std::size_t colon = std::min(text.find(':'), text.size());
  int index = 0;
  const char* const end = text.data() + text.size();
  if (colon < text.size()) {
    const auto [last, problem] = std::from_chars(text.data() + colon + 1, end, index);
    if (problem != std::errc{} || last != end) index = -1;
  }
  const std::string kind = text.substr(0, colon);
  if (index < 0 || (kind != "cpu" && kind != "cuda"))
    throw nb::value_error(fmt::format("device: {}; expected auto, cpu[:INDEX] or cuda[:INDEX]", text).c_str());
  return kind == "cpu" ? hpe::Device::host(index) : hpe::Device::gpu(index);
}

std::size_t object_extent(nb::handle number) {
  const std::optional<std::int64_t> extent = integer_of(number);
  if (!extent) throw nb::type_error("shape: expected a number of elements, or a sequence of numbers");
  if (*extent < 0) throw nb::value_error("shape: a negative number of elements");
  return static_cast<std::size_t>(*extent);
}

/// A number of elements, or a number for each axis.
Shape object_shape(const nb::object& shape) {
  const bool is_number = PyIndex_Check(shape.ptr()) != 0 || PySequence_Check(shape.ptr()) == 0;
  if (is_number || nb::isinstance<nb::str>(shape)) return {object_extent(shape)};
  Shape extents;
  for (const nb::handle extent : shape) extents.push_back(object_extent(extent));
  return extents;
}

hpe::Access host_access_of(const std::string& text) {
  const char* const names[] = {"read", "write"};
  return static_cast<hpe::Access>(choice_of("access", text, names));
}

nb::object view_of(void* address, const Shape& shape, nb::dlpack::dtype type, hpe::Device device,
                   const nb::object& owner) {
  const bool is_gpu = device.is_gpu();
  const nb::ndarray<nb::array_api> array(address, shape.size(), shape.data(), owner, nullptr, type,
                                         is_gpu ? nb::device::cuda::value : nb::device::cpu::value,
                                         is_gpu ? device.index() : 0);
  return nb::cast(array);
}

/// A view of numpy, which has no bfloat16, and holds its values as uint16.
nb::object numpy_view(void* address, const Shape& shape, nb::dlpack::dtype type, const nb::object& owner) {
  if (type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bfloat)) type = nb::dtype<std::uint16_t>();
  return nb::module_::import_("numpy").attr("from_dlpack")(view_of(address, shape, type, hpe::Device::host(), owner));
}

/// `beeline.Object`.
class ObjectOfPython {
 public:
  ObjectOfPython(Shape shape, nb::dlpack::dtype type, const hpe::ObjectOptions& options)
      : shape_(std::move(shape)), type_(type), memory_(bytes_of(shape_, type), options) {}

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] nb::dlpack::dtype type() const { return type_; }
  [[nodiscard]] hpe::ObjectMemory& memory() { return memory_; }
  [[nodiscard]] std::size_t element_bytes() const { return type_.bits / 8u; }
  /// A stream over a stream of CUDA, or one of a host device. Kept, since its end would wait for the work.
  [[nodiscard]] hpe::Stream& stream_over(hpe::Device device, void* native) {
    auto& stream = streams_[{device.is_gpu(), device.index(), native}];
    if (stream == nullptr)
      stream = device.is_gpu() ? std::make_unique<hpe::Stream>(hpe::Stream::adopt(device, native))
                               : std::make_unique<hpe::Stream>(device);
    return *stream;
  }

 private:
  static std::size_t bytes_of(const Shape& shape, nb::dlpack::dtype type) {
    std::size_t bytes = type.bits / 8u;
    for (const std::size_t extent : shape)
      if (__builtin_mul_overflow(bytes, extent, &bytes))
        throw Error(Status::no_resource, "an object with more elements than there are addresses");
    return bytes;
  }
  const Shape shape_;
  const nb::dlpack::dtype type_;
  hpe::ObjectMemory memory_;
  std::map<std::tuple<bool, int, void*>, std::unique_ptr<hpe::Stream>> streams_;
};

ObjectOfPython& object_of(const nb::object& object) { return nb::cast<ObjectOfPython&>(object); }

nb::object host_view(const nb::object& object) {
  ObjectOfPython& self = object_of(object);
  return view_of(self.memory().data(), self.shape(), self.type(), hpe::Device::host(), object);
}

/// What `Object.host` returns.
struct HostBlock {
  nb::object object;
  std::size_t first;
  std::optional<std::size_t> count;
  hpe::Access access;
  std::unique_ptr<hpe::HostAccess> held;

  nb::object enter() {
    if (held != nullptr) throw nb::value_error("this access is open already");
    ObjectOfPython& self = object_of(object);
    hpe::ObjectState& state = self.memory().state();
    const std::size_t all = self.memory().bytes() / self.element_bytes();
    const std::size_t elements = count.value_or(all - std::min(first, all));
    held = unlocked(
        [&] { return std::make_unique<hpe::HostAccess>(state, first, elements, self.element_bytes(), access); });
    return numpy_view(self.memory().data(), self.shape(), self.type(), object);
  }
  void exit() { held.reset(); }
};

/// `Object.__array__`. A copy is made inside a HostAccess, which waits for kernels with Python's lock released.
nb::object array_of(const nb::object& object, const nb::object& dtype, std::optional<bool> copy) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object view = numpy_view_of(object, object_of(object).type());
  const bool is_other_type = !dtype.is_none() && !view.attr("dtype").equal(numpy.attr("dtype")(dtype));
  HostBlock held{object, 0, std::nullopt, hpe::Access::read, nullptr};
  if (copy.value_or(is_other_type)) held.enter();
  return numpy.attr("array")(view, nb::arg("dtype") = dtype, nb::arg("copy") = copy);
}

[[noreturn]] void refuse_pickling(const nb::object& /*self*/, const nb::object& /*protocol*/) {
  throw nb::type_error("a beeline.Object is neither pickled nor copied: numpy.array(object) copies its elements");
}

/// The cudaStream_t of a number, of an object of torch, or of torch's current stream; nullptr: the default stream.
void* native_stream(const nb::object& stream, int gpu) {
  nb::object given = stream;
  const nb::object modules = nb::module_::import_("sys").attr("modules");
  if (given.is_none() && nb::cast<bool>(modules.attr("__contains__")("torch")))
    given = nb::module_::import_("torch").attr("cuda").attr("current_stream")(gpu);
  if (given.is_none()) return nullptr;
  if (nb::hasattr(given, "cuda_stream")) given = given.attr("cuda_stream");
  const std::optional<std::int64_t> number = integer_of(given);
  if (!number) throw nb::type_error("stream: expected None, a number (cudaStream_t) or a torch.cuda.Stream");
  return reinterpret_cast<void*>(*number);
}

/// What `Object.on_device` returns.
struct DeviceBlock {
  nb::object object, stream;
  std::optional<hpe::Device> device;
  std::unique_ptr<hpe::DeviceAccess> held;

  nb::object enter() {
    if (held != nullptr) throw nb::value_error("this access is open already");
    ObjectOfPython& self = object_of(object);
    const hpe::Device on = device.value_or(self.memory().device());
    hpe::Stream& used = self.stream_over(on, on.is_gpu() ? native_stream(stream, on.index()) : nullptr);
    void* const address = unlocked([&] {
      void* const there = self.memory().on(on);
      held = std::make_unique<hpe::DeviceAccess>(used, std::vector<hpe::ObjectState*>{&self.memory().state()});
      if (!on.is_gpu()) used.synchronize();  // Python's work on a host device runs at once
      return there;
    });
    return on.is_gpu() ? view_of(address, self.shape(), self.type(), on, object)
                       : numpy_view(address, self.shape(), self.type(), object);
  }
  void exit() {
    unlocked([&] { held.reset(); });
  }
};

hpe::ObjectOptions options_of(const std::string& device, const std::string& protocol, const std::string& hint,
                              std::size_t block_bytes, std::optional<double> deadline_s) {
  using enum hpe::Protocol;
  using enum hpe::Hint;
  const char* const protocols[] = {name(automatic), name(protection), name(tracking), name(managed)};
  const char* const hints[] = {name(none), name(read_mostly), name(streaming), name(device_only)};
  hpe::ObjectOptions options;
  options.device = device_of(device);
  options.protocol = static_cast<hpe::Protocol>(choice_of("protocol", protocol, protocols));
  options.hint = static_cast<hpe::Hint>(choice_of("hint", hint, hints));
  options.block_bytes = block_bytes;
  options.deadline = deadline_of(deadline_s);
  return options;
}

nb::dict statistics_of(ObjectOfPython& self) {
  const hpe::ObjectStatistics now = self.memory().statistics();
  nb::dict all;
  all["faults"] = now.faults;
  all["fetched_bytes"] = now.fetched_bytes;
  all["sent_bytes"] = now.sent_bytes;
  all["block_bytes"] = now.block_bytes;
  all["protocol"] = name(now.protocol);
  return all;
}

constexpr const char* object_doc = R"(Elements that the CPU and devices use at one address (docs/objects.md).

shape, dtype  a number or numbers of elements, zero at first; as 'float32', numpy.float32, torch.float32
device  whose memory has the second copy: auto (the first GPU, else a host device), cpu:INDEX, cuda:INDEX
protocol  automatic, protection, tracking or managed: how the CPU's accesses are noticed
hint  none, read_mostly, streaming or device_only
block_bytes  of the blocks that move, a power of two; 0: 64 KiB or more
deadline_s  longest wait for the object in seconds; None: BEELINE_STREAM_DEADLINE_S

Speaks DLPack for the CPU: `numpy.asarray(object)`, `numpy.from_dlpack(object)` and `torch.from_dlpack(object)` are
views, whose elements move when they are used. numpy lacks bfloat16: its views of such objects are those of `host`, of
uint16. An object itself has no elements by index, no iterator and no buffer, and is not pickled: use a view. Copies by
CUDA's own calls, as torch's `.to('cuda')`, do not notice blocks: use `on_device`.)";

constexpr const char* host_doc = R"(A context manager that holds elements on the host, and gives a numpy view of all.

access  'read' or 'write'
first, count  the elements that are held, in the order of memory; by default all

System calls and C libraries may use the elements meanwhile. Kernels that use the object wait. The view of an object of
bfloat16, which numpy lacks, is of uint16.)";

constexpr const char* device_doc = R"(A context manager that hands the object to a device, and gives a view there.

device  its name; None: the object's own
stream  on a GPU, the stream of the work inside: a number (cudaStream_t) or a torch.cuda.Stream; None: torch's current
        stream if torch is loaded, else CUDA's default stream

The view speaks DLPack, as for `torch.from_dlpack`; of a host device it is a numpy array, of uint16 if the object is
of bfloat16. The object returns to the host once the stream has passed the work of the block. Do not use the view
afterwards. Meanwhile, other threads use the object inside `host` only: a plain access waits with Python's lock held,
which this block needs to end.)";

}  // namespace

void bind_objects(nb::module_& module) {
  nb::class_<HostBlock>(module, "_HostBlock")
      .def("__enter__", &HostBlock::enter)
      .def("__exit__", [](HostBlock& self, const nb::args&) { self.exit(); });
  nb::class_<DeviceBlock>(module, "_DeviceBlock")
      .def("__enter__", &DeviceBlock::enter)
      .def("__exit__", [](DeviceBlock& self, const nb::args&) { self.exit(); });
  nb::class_<ObjectOfPython>(module, "Object", object_doc)
      .def(
          "__init__",
          [](ObjectOfPython* self, const nb::object& shape, const nb::object& dtype, const std::string& device,
             const std::string& protocol, const std::string& hint, std::size_t block_bytes,
             std::optional<double> deadline_s) {
            const Shape extents = object_shape(shape);
            const nb::dlpack::dtype type = element_type(dtype);
            const hpe::ObjectOptions options = options_of(device, protocol, hint, block_bytes, deadline_s);
            unlocked([&] { new (self) ObjectOfPython(extents, type, options); });
          },
          nb::arg("shape"), nb::arg("dtype") = "float32", nb::kw_only(), nb::arg("device") = "auto",
          nb::arg("protocol") = "automatic", nb::arg("hint") = "none", nb::arg("block_bytes") = 0,
          nb::arg("deadline_s") = nb::none())
      .def_prop_ro(
          "shape", [](const ObjectOfPython& self) { return nb::tuple(nb::cast(self.shape())); }, "In elements.")
      .def_prop_ro(
          "dtype", [](const ObjectOfPython& self) { return type_name(self.type()); }, "Of an element, as 'float32'.")
      .def_prop_ro(
          "address", [](ObjectOfPython& self) { return reinterpret_cast<std::uintptr_t>(self.memory().data()); },
          "On the host, and on the object's GPU.")
      .def_prop_ro("statistics", &statistics_of, "Faults, bytes fetched and sent so far, block_bytes, protocol in use.")
      .def(
          "host",
          [](const nb::object& self, const std::string& access, std::size_t first, std::optional<std::size_t> count) {
            return HostBlock{self, first, count, host_access_of(access), nullptr};
          },
          nb::arg("access") = "write", nb::kw_only(), nb::arg("first") = 0, nb::arg("count") = nb::none(), host_doc)
      .def(
          "on_device",
          [](const nb::object& self, const std::optional<std::string>& device, const nb::object& stream) {
            return DeviceBlock{self, stream, device ? device_of(*device) : std::nullopt, nullptr};
          },
          nb::arg("device") = nb::none(), nb::kw_only(), nb::arg("stream") = nb::none(), device_doc)
      .def(
          "free", [](ObjectOfPython& self) { unlocked([&] { self.memory().release(); }); },
          R"(Releases the memory; views must not be used any more.

Waits for kernels, and for `host` and `on_device` of other threads; raises DeadlineError if they go on. Inside the
calling thread's own `host` or `on_device` raises InvalidArgumentError at once.)")
      .def(
          "__dlpack__",
          [](const nb::object& self, const nb::kwargs& keywords) {
            return host_view(self).attr("__dlpack__")(**keywords);
          },
          "DLPack's export for the CPU, without a copy.")
      .def(
          "__dlpack_device__", [](const ObjectOfPython&) { return nb::make_tuple(nb::device::cpu::value, 0); },
          "DLPack's device: (1, 0).")
      .def("__array__", array_of, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
           "For `numpy.asarray(object)`: a view, or a copy as inside `host('read')`. Raises TypeError for bfloat16.")
      .def("__reduce_ex__", refuse_pickling, nb::arg("protocol"),
           "Raises TypeError: an object is neither pickled nor copied by `copy.copy`.")
      .def("__len__",
           [](const ObjectOfPython& self) {
             if (self.shape().empty()) throw nb::type_error("this object has no axis");
             return self.shape().front();
           })
      .def("__repr__", [](const ObjectOfPython& self) {
        return fmt::format("<beeline.Object: {} x ({})>", type_name(self.type()), fmt::join(self.shape(), ", "));
      });
}

}  // namespace beeline::python
