// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// DLPack's C exchange API, which reads a framework's tensors and its current stream without calling Python code. torch
/// has it from 2.11 on.
///
/// Source: DLPack 1.3, `DLPackExchangeAPI`.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

namespace beeline::python {

/// The target of the capsule `__dlpack_c_exchange_api__` of a tensor type. The functions return 0, or set Python's
/// error. Functions that are not used here have no declared type.
struct TensorExchange {
  static constexpr std::uint32_t major_version = 1;

  struct {
    std::uint32_t major, minor;
  } version;
  const TensorExchange* earlier_version;
  void* allocate;
  void* managed_from_object;
  void* object_from_managed;
  /// Describes `object` as a tensor, valid as long as the object lives; nullptr if the framework does not offer this.
  int (*tensor_from_object)(void* object, nanobind::dlpack::dltensor* tensor);
  /// Gets the stream on which the framework enqueues work in this thread.
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** stream);
};

/// The exchange API of the object's type; nullptr if it has none with a known version. Each type is queried once.
[[nodiscard]] const TensorExchange* exchange_of(nanobind::handle object);

}  // namespace beeline::python
