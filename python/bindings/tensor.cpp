// SPDX-License-Identifier: Apache-2.0
#include "tensor.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "exchange.hpp"
#include "memory.hpp"

namespace nb = nanobind;

namespace beeline::python {

namespace {

using Code = nb::dlpack::dtype_code;

struct NamedType {
  const char* name;
  Code code;
  std::uint8_t bits;
};
constexpr NamedType types[] = {
    {"uint8", Code::UInt, 8},       {"uint16", Code::UInt, 16},       {"uint32", Code::UInt, 32},
    {"uint64", Code::UInt, 64},     {"int8", Code::Int, 8},           {"int16", Code::Int, 16},
    {"int32", Code::Int, 32},       {"int64", Code::Int, 64},         {"bool", Code::Bool, 8},
    {"float16", Code::Float, 16},   {"float32", Code::Float, 32},     {"float64", Code::Float, 64},
    {"bfloat16", Code::Bfloat, 16}, {"complex64", Code::Complex, 64}, {"complex128", Code::Complex, 128},
};

[[noreturn]] void refuse(const std::string& message) { throw nb::value_error(message.c_str()); }

/// Whether the elements are contiguous in C order. Axes of extent 1 may have any stride.
bool is_contiguous(const nb::dlpack::dltensor& array, std::size_t elements) {
  if (elements == 0 || array.strides == nullptr) return true;
  std::int64_t expected = 1;
  for (int i = array.ndim; i-- > 0;) {
    if (array.shape[i] != 1 && array.strides[i] != expected) return false;
    expected *= array.shape[i];
  }
  return true;
}

std::string name_of(const char* type) { return type; }
std::string name_of(const nb::object& object) { return type_of(object); }

///   type   the name of the tensor's type, or an object of that type
///   world  of the call; nullptr: it has none
template <class Type>
Elements checked(const nb::dlpack::dltensor& array, const Type& type, const char* argument, const JoinedWorld* world) {
  std::size_t elements = 1;
  for (int i = 0; i < array.ndim; ++i) elements *= static_cast<std::size_t>(array.shape[i]);
  if (!is_contiguous(array, elements))
    refuse(fmt::format("{}: {} that is not contiguous; make it so, as with numpy.ascontiguousarray or .contiguous()",
                       argument, name_of(type)));
  const int kind = array.device.device_type;
  const bool host = kind == nb::device::cpu::value || kind == nb::device::cuda_host::value;
  const bool gpu = kind == nb::device::cuda::value || kind == nb::device::cuda_managed::value;
  if (!host && !gpu)
    refuse(fmt::format("{}: {} on a device of DLPack's kind {}; CPUs (1) and CUDA (2) are known", argument,
                       name_of(type), kind));
  if (gpu && world != nullptr && !world->has_gpus())
    refuse(fmt::format("{}: {} on a GPU, but no rank of this world has one: rank {} runs on {}", argument,
                       name_of(type), world->known().rank(), world->known().device().name));
  return {.data = static_cast<std::byte*>(array.data) + array.byte_offset,
          .elements = elements,
          .bytes = (elements * array.dtype.bits * array.dtype.lanes + 7) / 8,
          .type = array.dtype,
          .gpu = gpu ? array.device.device_id : -1};
}

/// Throws for a tensor that DLPack cannot describe; the reason is the Python error that is set.
[[noreturn]] void refuse_undescribed(const nb::object& object, const char* argument) {
  const nb::python_error reason;
  const auto text = nb::cast<std::string>(nb::str(reason.value()));
  refuse(fmt::format("{}: {} without plain memory, as a sparse one: {}", argument, type_of(object),
                     text.substr(0, text.find('\n'))));
}

/// Throws for an array that DLPack does not describe (as one with another byte order), naming its type and the reason.
[[noreturn]] void refuse_unshared(const nb::object& object, const char* argument) {
  std::string reason = "DLPack does not describe it";
  try {
    static_cast<void>(object.attr("__dlpack__")());
  } catch (const nb::python_error& error) {
    reason = nb::cast<std::string>(nb::str(error.value()));
  }
  std::string type;
  if (nb::hasattr(object, "dtype")) {
    const nb::object dtype = object.attr("dtype");
    type = nb::str(dtype).c_str();
  }
  refuse(fmt::format("{}: {}{} cannot be used in place: {}", argument, type_of(object),
                     type.empty() ? "" : " of dtype " + type, reason.substr(0, reason.find('\n'))));
}

/// DLPack's description of an array that nanobind has recognized.
template <class Array>
nb::dlpack::dltensor described(const Array& array) {
  return {.data = const_cast<void*>(static_cast<const void*>(array.data())),
          .device = {array.device_type(), array.device_id()},
          .ndim = static_cast<std::int32_t>(array.ndim()),
          .dtype = array.dtype(),
          .shape = const_cast<std::int64_t*>(array.shape_ptr()),
          .strides = const_cast<std::int64_t*>(array.stride_ptr())};
}

}  // namespace

std::optional<std::int64_t> integer_of(nb::handle object) {
  if (PyIndex_Check(object.ptr()) == 0) return std::nullopt;
  const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  std::int64_t value = 0;
  if (!nb::try_cast(number, value)) return std::nullopt;
  return value;
}

std::string type_of(const nb::object& object) { return nb::cast<std::string>(object.type().attr("__name__")); }

std::string type_name(nb::dlpack::dtype type) {
  for (const NamedType& known : types)
    if (type.lanes == 1 && type.bits == known.bits && type.code == static_cast<std::uint8_t>(known.code))
      return known.name;
  return fmt::format("DLPack type {}:{}x{}", type.code, type.bits, type.lanes);
}

std::optional<ElementType> computed_type(nb::dlpack::dtype type) {
  constexpr auto computed = [] {
    std::array<nb::dlpack::dtype, element_types> all{};
    for (std::uint32_t i = 0; i < element_types; ++i)
      for (const NamedType& known : types)
        if (std::string_view(known.name) == name(static_cast<ElementType>(i)))
          all[i] = {static_cast<std::uint8_t>(known.code), known.bits, 1};
    return all;
  }();
  for (std::uint32_t i = 0; i < element_types; ++i)
    if (computed[i] == type) return static_cast<ElementType>(i);
  return std::nullopt;
}

Words moved_words(const Elements& elements) {
  if (const std::optional<ElementType> type = computed_type(elements.type)) return {*type, 1};
  return {ElementType::uint8, static_cast<std::size_t>(elements.type.bits * elements.type.lanes + 7) / 8};
}

Words reduced_words(const Elements& elements, Reduction reduction) {
  if (const std::optional<ElementType> type = computed_type(elements.type)) return {*type, 1};
  nb::dlpack::dtype part = elements.type;
  part.code = static_cast<std::uint8_t>(Code::Float), part.bits /= 2;
  const std::optional<ElementType> type = computed_type(part);
  const bool is_complex = elements.type.code == static_cast<std::uint8_t>(Code::Complex);
  if (is_complex && type && (reduction == Reduction::sum || reduction == Reduction::average)) return {*type, 2};
  std::string known;
  for (std::uint32_t i = 0; i < element_types; ++i) known += fmt::format("{}, ", name(static_cast<ElementType>(i)));
  refuse(
      fmt::format("there is no {} of {}: known are reductions of {}and sums and averages of complex64 and complex128",
                  name(reduction), type_name(elements.type), known));
}

nb::dlpack::dtype element_type(const nb::object& type) {
  std::string name = nb::cast<std::string>(nb::str(nb::hasattr(type, "__name__") ? type.attr("__name__") : type));
  constexpr std::string_view torch = "torch.";
  if (name.starts_with(torch)) name.erase(0, torch.size());
  std::string known_names;
  for (const NamedType& known : types) {
    if (name == known.name) return {static_cast<std::uint8_t>(known.code), known.bits, 1};
    known_names += fmt::format("{}{}", known_names.empty() ? "" : ", ", known.name);
  }
  refuse(fmt::format("dtype {}: known are {}", name, known_names));
}

nb::object numpy_view_of(const nb::object& object, nb::dlpack::dtype type) {
  if (type.code == static_cast<std::uint8_t>(Code::Bfloat))
    throw nb::type_error("numpy has no bfloat16: torch.from_dlpack gives a view of these elements");
  return nb::module_::import_("numpy").attr("from_dlpack")(object);
}

namespace {

Tensor described_tensor(const nb::object& object, const char* argument, Access access, const JoinedWorld* world) {
  if (const Memory* memory = nullptr; nb::try_cast(object, memory) && memory != nullptr)
    return {{.data = memory->address(),
             .elements = memory->elements(),
             .bytes = memory->bytes(),
             .type = memory->type(),
             .gpu = memory->on_gpu() ? memory->joined()->known().device(memory->rank()).index : -1},
            object};
  if (const TensorExchange* const exchange = exchange_of(object); exchange != nullptr) {
    nb::dlpack::dltensor array;
    if (exchange->tensor_from_object(object.ptr(), &array) != 0) refuse_undescribed(object, argument);
    return {checked(array, object, argument, world), object};
  }
  if (nb::ndarray<> array; access == Access::write && nb::try_cast(object, array))
    return {checked(described(array), object, argument, world), object};
  nb::ndarray<nb::ro> array;
  const bool is_described = nb::try_cast(object, array);
  if (!is_described && nb::hasattr(object, "__dlpack__")) refuse_unshared(object, argument);
  if (!is_described)
    throw nb::type_error(fmt::format("{}: expected a numpy array, a beeline.Memory or a tensor that speaks DLPack (one "
                                     "that requires grad does not: detach it), not {}",
                                     argument, type_of(object))
                             .c_str());
  if (access == Access::write) refuse(fmt::format("{}: {} that is read-only", argument, type_of(object)));
  return {checked(described(array), object, argument, world), object};
}

}  // namespace

Tensor tensor_of(const nb::object& object, const char* argument, Access access, const JoinedWorld& world) {
  return described_tensor(object, argument, access, &world);
}

Tensor tensor_of(const nb::object& object, const char* argument, Access access) {
  return described_tensor(object, argument, access, nullptr);
}

void require_same_type(nb::dlpack::dtype destination, nb::dlpack::dtype source) {
  if (destination == source) return;
  // numpy has no bfloat16, and holds its values as uint16.
  const auto is_words_of = [](nb::dlpack::dtype words, nb::dlpack::dtype type) {
    return words == nb::dtype<std::uint16_t>() &&
           type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bfloat) && type.bits == words.bits &&
           type.lanes == 1;
  };
  if (is_words_of(destination, source) || is_words_of(source, destination)) return;
  refuse(fmt::format("destination has elements of type {}, source {}: convert one, or view it as the other's type",
                     type_name(destination), type_name(source)));
}

void require_same_size(const Elements& destination, const Elements& source) {
  require_same_type(destination.type, source.type);
  if (destination.bytes != source.bytes)
    throw nb::value_error(
        fmt::format("destination has {} bytes, source {}: they must be equal", destination.bytes, source.bytes)
            .c_str());
}

namespace {

/// Throws ValueError unless this rank's device reaches the elements.
void require_reached(const Elements& elements, const char* argument, const World& world) {
  const Device& device = world.device();
  const bool reached =
      device.is_gpu() ? elements.gpu == device.index || world.owner_of(elements.data) >= 0 : elements.gpu < 0;
  if (!reached)
    refuse(fmt::format("{}: a tensor {}, but rank {} runs on {}", argument,
                       elements.gpu < 0 ? "in host memory" : fmt::format("on GPU {}", elements.gpu), world.rank(),
                       device.is_gpu() ? fmt::format("GPU {}", device.index) : "a CPU"));
}

}  // namespace

Tensor reached_tensor(const nb::object& object, const char* argument, Access access, const JoinedWorld& joined) {
  Tensor tensor = tensor_of(object, argument, access, joined);
  const World& world = joined.world();
  if (const Memory* memory = nullptr; nb::try_cast(object, memory) && memory != nullptr && memory->is_remote())
    refuse(fmt::format("{}: memory of rank {}, which is on another node than rank {}: copy it with World.copy",
                       argument, memory->rank(), world.rank()));
  require_reached(tensor, argument, world);
  return tensor;
}

Elements reached_elements(const nb::dlpack::dltensor& array, const char* type, const char* argument,
                          const JoinedWorld& joined) {
  const Elements elements = checked(array, type, argument, &joined);
  require_reached(elements, argument, joined.world());
  return elements;
}

}  // namespace beeline::python
