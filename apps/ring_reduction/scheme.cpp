// SPDX-License-Identifier: Apache-2.0
#include "scheme.hpp"

namespace ring_reduction {

const std::vector<SchemeInfo>& schemes() {
  static const std::vector<SchemeInfo> all{
      host(), stream(), proxy(), proxy_device(), triggered(), triggered_stream(), task(), device(), device_packets()};
  return all;
}

}  // namespace ring_reduction
