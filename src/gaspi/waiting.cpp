// SPDX-License-Identifier: Apache-2.0
#include "gaspi/waiting.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gaspi/clock.hpp"

namespace beeline::gaspi {

std::uint64_t Waiting::slice_ns() const {
  const std::uint64_t slice = first_slice_ns(process_.deadline_ns(), timeout_ms_);
  if (timeout_ms_ == block_ms) return slice;
  const std::uint64_t waited = now_ns_ - start_ns_, limit = limit_ns();
  return waited >= limit ? 0 : std::min(slice, limit - waited);
}

std::uint64_t Waiting::limit_ns() const {
  constexpr std::uint64_t most = ~std::uint64_t{0} / 1'000'000;
  return std::min(timeout_ms_, most) * 1'000'000;
}

bool Waiting::is_over() const {
  if (timeout_ms_ == test_ms) return true;
  return timeout_ms_ != block_ms && now_ns_ - start_ns_ >= limit_ns();
}

std::string Waiting::text() const {
  return awaited_.number != Awaited::no_number ? fmt::format("{} {}", awaited_.what, awaited_.number)
                                               : std::string(awaited_.what);
}

void Waiting::require_needed() const {
  const int lost = process_.health().first_failed(awaited_.needed);
  if (lost >= 0)
    throw Failure(
        fmt::format("it waits for {}, and rank {} has failed: {}", text(), lost, process_.health().reason(lost)));
  if (awaited_.needs_a_peer && process_.health().failures() != 0 && process_.health().failures() >= process_.size() - 1)
    throw Failure(fmt::format("it waits for {}, and no other rank is left", text()));
}

void Waiting::log_if_late() {
  if (now_ns_ - logged_ns_ < process_.deadline_ns()) return;
  logged_ns_ = now_ns_;
  const std::vector<int> missing = awaited_.missing();
  const std::string names =
      missing.empty() ? std::string()
                      : fmt::format("; missing: rank{} {}", missing.size() == 1 ? "" : "s", fmt::join(missing, ", "));
  process_.log(fmt::format("for {:.0f} s a call has waited for {}{}", static_cast<double>(now_ns_ - start_ns_) / 1e9,
                           text(), names));
}

bool Waiting::go_on(beeline_status status) {
  const bool is_first = start_ns_ == 0;
  const std::uint64_t first_slice = slice_ns();
  now_ns_ = now_ns();
  // The first attempt may have taken a slice. It counts.
  if (is_first) start_ns_ = logged_ns_ = now_ns_ - (status == BEELINE_TIMEOUT ? first_slice : 0);
  switch (status) {
    case BEELINE_IN_PROGRESS:
    case BEELINE_TIMEOUT:
      break;
    case BEELINE_ABORTED:
    case BEELINE_PEER_DIED:
    case BEELINE_DEADLINE: {
      // First the service thread notes which ranks have failed, and goes on without them.
      const std::string text_of_failure = beeline_last_error();
      while (!process_.await_recovery(std::max<std::uint64_t>(slice_ns(), 1))) {
        now_ns_ = now_ns();
        require_needed();
        log_if_late();
        if (is_over()) return false;
      }
      require_needed();
      if (recovery_ == process_.recoveries()) throw Failure(text_of_failure);
      recovery_ = process_.recoveries();
      break;
    }
    default:
      throw Failure(beeline_last_error());
  }
  require_needed();
  if (is_over()) return false;
  log_if_late();
  return true;
}

}  // namespace beeline::gaspi
