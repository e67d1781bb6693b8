// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// gosa for methods that the host drives: CPU threads exchange the ranks' sums through pinned memory.

#include "domain.hpp"

namespace himeno {

/// A mailbox in pinned memory. The device posts its own sum to its own rank; the CPU passes it on.
class HostGosa {
 public:
  explicit HostGosa(Domain& domain);

  /// After an iteration's kernels: sums what `blocks` blocks left in the first `slots` slots, on the default stream.
  void enqueue_sum(const Step& step, unsigned slots, unsigned blocks);
  /// Waits for this rank's sum of that step, sends it to every rank, and collects the step before.
  void exchange(const Step& step);
  /// Collects the sums of the last step.
  void finish(const Step& last);

 private:
  void collect_tag(std::uint64_t tag);
  void check(beeline::Status status);

  Domain& domain_;
  beeline::SymmetricArray<std::uint64_t> words_;
  beeline::SymmetricArray<double> arrived_;
  Mailbox mailbox_;
};

}  // namespace himeno
