// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The interface of the control schemes, and their list.

#include <vector>

#include "common/method.hpp"
#include "vectors.hpp"

namespace ring_reduction {

/// One scheme for driving the ring. Constructors and destructors are collective.
class Scheme : public apps::MethodOn<Vectors> {
 public:
  using MethodOn::MethodOn;

  /// Collective. Replaces the vector by its sum over the ranks, `reductions` times in a row, and returns when this
  /// rank's part is over. Throws the error of a failed wait: deadline, aborted, peer_died.
  virtual void run(int reductions) = 0;
  /// The division of the vector that the scheme uses.
  [[nodiscard]] virtual const Ring& ring() const = 0;
  /// Lanes of the kernel that communicates; {0, 0} if no kernel communicates.
  [[nodiscard]] virtual LaneShape lanes() const { return {0, 0}; }
  /// Service blocks of the rank's device that carry out its kernel's posts; 0 if there are none.
  [[nodiscard]] virtual unsigned service_blocks() const { return 0; }

 protected:
  [[nodiscard]] Vectors& vectors() const { return data(); }
};

/// A scheme, whose id is its method.
using SchemeInfo = apps::MethodInfo<Scheme, Vectors>;

/// Every scheme, the host's first.
[[nodiscard]] const std::vector<SchemeInfo>& schemes();

[[nodiscard]] SchemeInfo host();
[[nodiscard]] SchemeInfo stream();
[[nodiscard]] SchemeInfo device();
[[nodiscard]] SchemeInfo device_packets();
[[nodiscard]] SchemeInfo proxy();
[[nodiscard]] SchemeInfo proxy_device();
[[nodiscard]] SchemeInfo triggered();
[[nodiscard]] SchemeInfo triggered_stream();
[[nodiscard]] SchemeInfo task();

}  // namespace ring_reduction
