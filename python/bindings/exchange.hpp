// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// DLPack's C exchange API, by which a framework's tensors are read, and its streams asked for, without a call of
/// Python's. torch has it from 2.11 on.
///
/// Source: DLPack 1.3, `DLPackExchangeAPI`.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

namespace beeline::python {

/// What the capsule `__dlpack_c_exchange_api__` of a type of tensors points to. The functions return 0, or set Python's
/// error. Those that are not used here have no type.
struct TensorExchange {
  static constexpr std::uint32_t major_version = 1;

  struct {
    std::uint32_t major, minor;
  } version;
  const TensorExchange* earlier_version;
  void* allocate;
  void* managed_from_object;
  void* object_from_managed;
  /// What `object` is, as long as it lives; nullptr where the framework does not offer it.
  int (*tensor_from_object)(void* object, nanobind::dlpack::dltensor* tensor);
  /// The stream that the framework puts work on, in this thread.
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** stream);
};

/// That of the object's type; nullptr where it has none that is known here. A type is asked once.
[[nodiscard]] const TensorExchange* exchange_of(nanobind::handle object);

}  // namespace beeline::python
