// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface of the methods, and their list.

#include <vector>

#include "common/method.hpp"
#include "sorter.hpp"

namespace merge_sort {

/// One method to find the pivots, which say which keys devices swap.
class Method : public apps::MethodOn<const Setup> {
 public:
  explicit Method(const Setup& setup) : MethodOn(setup), sorter_(setup) {}

  /// Sets the initial keys. Blocking.
  void reset() { sorter_.reset(); }
  /// Sorts the keys. Blocking.
  [[nodiscard]] virtual Phases sort() = 0;
  /// The keys, in the order of the devices.
  [[nodiscard]] std::vector<Key> gather() const { return sorter_.gather(); }

 protected:
  [[nodiscard]] Sorter& sorter() { return sorter_; }

 private:
  Sorter sorter_;
};

using MethodInfo = apps::MethodInfo<Method, const Setup>;

/// Every method, that of CUDA 3 first.
[[nodiscard]] const std::vector<MethodInfo>& methods();

[[nodiscard]] MethodInfo copied_keys();
[[nodiscard]] MethodInfo remote_reads();

}  // namespace merge_sort
