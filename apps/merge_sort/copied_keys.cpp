// SPDX-License-Identifier: Apache-2.0
/// @file
/// Method copied_keys: the CPU searches for the pivots, and copies each key that it compares from the device that holds
/// it. Devices need not reach each other. Source: seed 001, which compares remote reads with it.

#include "beeline/hpe/copy.hpp"
#include "method.hpp"

namespace merge_sort {

namespace {

class CopiedKeys final : public Method {
 public:
  using Method::Method;

  [[nodiscard]] Phases sort() override {
    return sorter().sort([this](const Pair& pair) { search(pair); });
  }

 private:
  void search(const Pair& pair) {
    const Sequence left = sorter().sequence(pair.first, pair.middle), right = sorter().sequence(pair.middle, pair.last);
    const auto read = [](const Key* key) {
      Key copied = 0;
      beeline::hpe::copy(&copied, key, sizeof copied);
      return copied;
    };
    std::size_t before = 0;  // the end of a part's output is the beginning of the next part's
    for (std::size_t part = pair.first; part < pair.last; ++part) {
      const Range output = sorter().output_of(pair, part);
      sorter().pivots(part)[0] = before;
      before = pivot(left, right, output.first + output.count, read);
      sorter().pivots(part)[1] = before;
    }
  }
};

}  // namespace

MethodInfo copied_keys() {
  return MethodInfo::of<CopiedKeys>({"copied_keys", "the CPU finds the pivots, and copies each key that it compares"});
}

}  // namespace merge_sort
