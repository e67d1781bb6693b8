// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// gosa for the methods that the host drives: CPU threads exchange the ranks' sums through pinned memory.

#include "domain.hpp"

namespace himeno {

/// A mailbox in pinned memory. The device posts its rank's sum to its own rank; the CPU sends it to the other ranks.
class HostGosa {
 public:
  explicit HostGosa(Domain& domain);

  /// Called after an iteration's kernels: adds up the sums of `blocks` blocks in the first `slots` slots, on the
  /// default stream.
  void enqueue_sum(const Step& step, unsigned slots, unsigned blocks);
  /// Waits for this rank's sum of `step`, sends it to every rank, and collects the sums of the previous step.
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
