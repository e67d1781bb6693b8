// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

#include <unordered_map>

namespace nb = nanobind;

namespace beeline::python {

namespace {

const TensorExchange* offered_by(nb::handle type) {
  const nb::object capsule = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
  constexpr const char* name = "dlpack_exchange_api";
  if (PyCapsule_IsValid(capsule.ptr(), name) == 0) return nullptr;
  const auto* const offered = static_cast<const TensorExchange*>(PyCapsule_GetPointer(capsule.ptr(), name));
  const bool known = offered->version.major == TensorExchange::major_version && offered->tensor_from_object != nullptr;
  return known ? offered : nullptr;
}

}  // namespace

const TensorExchange* exchange_of(nb::handle object) {
  // Used under Python's lock. The map holds a reference to each type, so that no other type gets its address. The map
  // is never destroyed, since Python may have ended.
  static auto& known = *new std::unordered_map<const PyTypeObject*, const TensorExchange*>;
  const PyTypeObject* const type = Py_TYPE(object.ptr());
  if (const auto place = known.find(type); place != known.end()) return place->second;
  const nb::handle held = object.type().inc_ref();
  return known.emplace(type, offered_by(held)).first->second;
}

}  // namespace beeline::python
