// SPDX-License-Identifier: Apache-2.0
#include "host/repeated_signals.hpp"

#include <fmt/format.h>

#include "beeline/core/log.hpp"

namespace beeline {

void RepeatedSignalLog::report(std::uint32_t sender, std::uint32_t receiver, std::uint64_t offset,
                               std::uint64_t value) {
  constexpr std::size_t most = 8;  // of an array of signals the first few suffice
  {
    const std::lock_guard lock(mutex_);
    if (reported_.size() >= most || !reported_.emplace(receiver, offset).second) return;
  }
  log(LogLevel::warning,
      fmt::format("rank {} sets a signal of rank {} to {}, which it is already (at {}): a wait cannot tell this signal "
                  "from the one before, and may return before its data have come. Let values grow from signal to "
                  "signal, or set the word to 0 after each wait and send the next signal after an answer "
                  "(BEELINE_CHECK; once for each signal, of {} at most)",
                  sender, receiver, value, areas_.describe_offset(offset), most),
      rank_);
}

}  // namespace beeline
