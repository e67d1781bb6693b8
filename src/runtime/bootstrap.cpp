// SPDX-License-Identifier: Apache-2.0
#include "beeline/runtime/bootstrap.hpp"

namespace beeline {

const char* name(RankState state) noexcept {
  switch (state) {
    case RankState::healthy:
      return "healthy";
    case RankState::failed:
      return "failed";
    case RankState::left:
      return "left";
  }
  return "unknown";
}

void Bootstrap::barrier(std::int64_t deadline_ns) { (void)allgather({}, deadline_ns); }

std::unique_ptr<Bootstrap> make_single_bootstrap() { return std::move(make_thread_bootstraps(1).front()); }

}  // namespace beeline
