// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method remote_reads: a kernel of each device finds the pivots of its own output, and reads the keys that it compares
/// in the memory of the devices that hold them. Source: seed 001, remote accelerator memory accesses.

#include "method.hpp"

namespace merge_sort {

namespace {

class RemoteReads final : public Method {
 public:
  using Method::Method;

  [[nodiscard]] Phases sort() override {
    return sorter().sort([this](const Pair& pair) {
      const Sequence left = sorter().sequence(pair.first, pair.middle);
      const Sequence right = sorter().sequence(pair.middle, pair.last);
      for (std::size_t part = pair.first; part < pair.last; ++part)
        enqueue_search(sorter().stream(part), left, right, sorter().output_of(pair, part), sorter().pivots(part));
    });
  }
};

}  // namespace

MethodInfo remote_reads() {
  return MethodInfo::of<RemoteReads>(
      {.name = "remote_reads",
       .summary = "kernels find the pivots, and read the keys that they compare on the other devices",
       .why_not = apps::why_no_reach});
}

}  // namespace merge_sort
