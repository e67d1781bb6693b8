// SPDX-License-Identifier: Apache-2.0
#include "scheme.hpp"

namespace ring_reduction {

const std::vector<SchemeInfo>& schemes() {
  static const std::vector<SchemeInfo> all{
      {"host", "host/copy_engine/signal",
       "the CPU starts every copy and every sum, and waits for them before the next step", make_host},
      {"stream", "stream/copy_engine/signal",
       "copies, sums and waits for signals follow each other on streams, enqueued beforehand", make_stream},
      {"device", "device/peer/signal", "one kernel for all reductions: each block puts and signals its own chunks",
       make_device},
      {"device_packets", "device/peer/ll", "one kernel for all reductions: each block sends its chunks as packets",
       make_device_packets},
  };
  return all;
}

}  // namespace ring_reduction
