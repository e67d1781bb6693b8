// SPDX-License-Identifier: Apache-2.0
#include "tensor.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <iterator>

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
    {"uint8", Code::UInt, 8},       {"uint16", Code::UInt, 16},   {"uint32", Code::UInt, 32},
    {"uint64", Code::UInt, 64},     {"int8", Code::Int, 8},       {"int16", Code::Int, 16},
    {"int32", Code::Int, 32},       {"int64", Code::Int, 64},     {"bool", Code::Bool, 8},
    {"float16", Code::Float, 16},   {"float32", Code::Float, 32}, {"float64", Code::Float, 64},
    {"bfloat16", Code::Bfloat, 16},
};

[[noreturn]] void refuse(const std::string& message) { throw nb::value_error(message.c_str()); }

std::string type_of(const nb::object& object) { return nb::cast<std::string>(object.type().attr("__name__")); }

/// Whether elements follow each other in the order of C. Extents of 1 may have any stride.
template <class Array>
bool is_contiguous(const Array& array) {
  if (array.size() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != expected) return false;
    expected *= static_cast<std::int64_t>(array.shape(i));
  }
  return true;
}

template <class Array>
Tensor checked(const Array& array, const nb::object& object, const char* argument, const JoinedWorld& world) {
  if (!is_contiguous(array))
    refuse(fmt::format("{}: {} that is not contiguous; make it so, as with numpy.ascontiguousarray or .contiguous()",
                       argument, type_of(object)));
  const bool host =
      array.device_type() == nb::device::cpu::value || array.device_type() == nb::device::cuda_host::value;
  const bool gpu =
      array.device_type() == nb::device::cuda::value || array.device_type() == nb::device::cuda_managed::value;
  if (!host && !gpu)
    refuse(fmt::format("{}: {} on a device of DLPack's kind {}; CPUs (1) and CUDA (2) are known", argument,
                       type_of(object), array.device_type()));
  if (gpu && !world.has_gpus())
    refuse(fmt::format("{}: {} on a GPU, but no rank of this world has one: rank {} runs on {}", argument,
                       type_of(object), world.known().rank(), world.known().device().name));
  return {.data = const_cast<void*>(static_cast<const void*>(array.data())),
          .elements = array.size(),
          .bytes = array.nbytes(),
          .type = type_name(array.dtype()),
          .gpu = gpu ? static_cast<int>(array.device_id()) : -1,
          .owner = object};
}

}  // namespace

std::string type_name(nb::dlpack::dtype type) {
  for (const NamedType& known : types)
    if (type.lanes == 1 && type.bits == known.bits && type.code == static_cast<std::uint8_t>(known.code))
      return known.name;
  return fmt::format("DLPack type {}:{}x{}", type.code, type.bits, type.lanes);
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

Tensor tensor_of(const nb::object& object, const char* argument, Access access, const JoinedWorld& world) {
  if (const Memory* memory = nullptr; nb::try_cast(object, memory) && memory != nullptr)
    return {.data = memory->address(),
            .elements = memory->elements(),
            .bytes = memory->bytes(),
            .type = type_name(memory->type()),
            .gpu = memory->on_gpu() ? world.known().device(memory->rank()).index : -1,
            .owner = object};
  if (nb::ndarray<> array; access == Access::write && nb::try_cast(object, array))
    return checked(array, object, argument, world);
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(object, array))
    throw nb::type_error(fmt::format("{}: expected a numpy array, a beeline.Memory or a tensor that speaks DLPack (one "
                                     "that requires grad does not: detach it), not {}",
                                     argument, type_of(object))
                             .c_str());
  if (access == Access::write) refuse(fmt::format("{}: {} that is read-only", argument, type_of(object)));
  return checked(array, object, argument, world);
}

Tensor reached_tensor(const nb::object& object, const char* argument, Access access, const JoinedWorld& joined) {
  Tensor tensor = tensor_of(object, argument, access, joined);
  const World& world = joined.world();
  const Device& device = world.device();
  const bool reached =
      device.is_gpu() ? tensor.gpu == device.index || world.owner_of(tensor.data) >= 0 : tensor.gpu < 0;
  if (!reached)
    refuse(fmt::format("{}: a tensor {}, but rank {} runs on {}", argument,
                       tensor.gpu < 0 ? "in host memory" : fmt::format("on GPU {}", tensor.gpu), world.rank(),
                       device.is_gpu() ? fmt::format("GPU {}", device.index) : "a CPU"));
  return tensor;
}

}  // namespace beeline::python
