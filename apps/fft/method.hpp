// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The methods, which differ in how a device gets its partner's part.

#include <memory>
#include <vector>

#include "common/method.hpp"
#include "local_transform.hpp"
#include "parts.hpp"

namespace fft {

/// A transform over devices: steps between pairs of devices, as many as the logarithm of their number, of which the
/// last one divides each device's part into sub-parts; then transforms of these inside each device.
class Method : public apps::MethodOn<const Setup> {
 public:
  /// Uses the devices of `setup`; work on them is over when the constructor returns.
  explicit Method(const Setup& setup);

  /// Sets the initial elements. Blocking.
  void reset() { parts_.reset(); }
  /// Transforms the elements, `transforms` times in a row, and returns when that is over. Without `communicate` the
  /// steps between devices are left out.
  void run(int transforms, bool communicate = true);
  /// The transformed vector in the order of frequencies, after one transform. Blocking.
  [[nodiscard]] std::vector<Complex> gather() const { return in_order(parts_.gather(), parts_.devices() * splits_); }
  /// For measurements of the devices' bandwidths.
  [[nodiscard]] Parts& parts() { return parts_; }

 protected:
  /// The partner's elements, where the device's kernels can read them; in the order of the device's stream.
  [[nodiscard]] virtual const Complex* partner_elements(std::size_t number, std::size_t partner) = 0;

 private:
  /// A step: each device with the one `distance` away.
  void exchange(std::size_t distance);
  void transform_parts();

  Parts parts_;
  const std::size_t outer_splits_, splits_;  ///< sub-parts of a device's part: of the last step, and in all
  std::vector<std::unique_ptr<LocalTransform>> local_;
};

struct MethodInfo : apps::MethodInfo<Method, const Setup> {
  bool on_one_device = false;  ///< whether it uses the first device alone
};

/// Every method.
[[nodiscard]] const std::vector<MethodInfo>& methods();

}  // namespace fft
