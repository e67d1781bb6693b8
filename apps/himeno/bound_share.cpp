// SPDX-License-Identifier: Apache-2.0
#include "bound_share.hpp"

namespace himeno {

std::optional<double> bound_share(const Size& size, double iterations_per_second,
                                  const std::optional<double>& bandwidth) {
  if (!bandwidth) return std::nullopt;
  return size.interior() * bytes_per_point * iterations_per_second / *bandwidth;
}

}  // namespace himeno
