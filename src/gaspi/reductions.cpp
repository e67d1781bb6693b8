// SPDX-License-Identifier: Apache-2.0
#include "gaspi/reductions.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "gaspi/service.hpp"

namespace beeline::gaspi {

namespace {

constexpr std::size_t round_bytes = reduced_row_bytes / 2;
static_assert(round_bytes >= most_reduced_bytes + sizeof(std::uint64_t));

}  // namespace

std::byte* Reductions::row_of(int member) const {
  return group_.gathered + static_cast<std::size_t>(member) * reduced_row_bytes + (round_ % 2) * round_bytes;
}

std::uint64_t* Reductions::signal_of(int member) const {
  return reinterpret_cast<std::uint64_t*>(row_of(member) + round_bytes - sizeof(std::uint64_t));
}

Result Reductions::reduce(const Process& process, std::uint64_t kind, std::span<const std::byte> source,
                          std::byte* destination, const Combination& combination, std::uint64_t timeout_ms) {
  if (kind_ != 0 && kind_ != kind)
    refuse(GASPI_ERR_ACTIVE_COLL, "another all-reduce of the group has timed out, and has to end first");
  const int me = beeline_team_rank(group_.team);
  if (kind_ == 0) {
    ++round_, kind_ = kind, sent_ = arrived_ = 0;
    std::memcpy(row_of(me), source.data(), source.size());  // the caller's vector may change after a time-out
  }
  const Awaited awaited{.what = "the other members' all-reduce", .needed = group_.ranks};
  const Result result = wait_for(process, awaited, timeout_ms, [&](std::uint64_t slice_ns) -> beeline_status {
    for (; sent_ < members(); ++sent_) {
      if (sent_ == me) continue;
      if (const beeline_status status = beeline_put_signal(group_.team, row_of(me), row_of(me), source.size(),
                                                           signal_of(me), round_, sent_, service_queue);
          status != BEELINE_OK)
        return status;
    }
    for (; arrived_ < members(); ++arrived_) {
      if (arrived_ == me) continue;
      if (const beeline_status status =
              beeline_wait(group_.team, signal_of(arrived_), BEELINE_GREATER_EQUAL, round_, arrived_, slice_ns);
          status != BEELINE_OK)
        return status;
    }
    return BEELINE_OK;
  });
  if (result != Result::success) return result;
  kind_ = 0;
  combine_all(source.size(), destination, combination);
  return result;
}

void Reductions::combine_all(std::size_t bytes, std::byte* destination, const Combination& combination) const {
  alignas(64) std::array<std::array<std::byte, most_reduced_bytes>, 2> sums;
  std::byte* sum = row_of(0);
  for (int member = 1; member < members(); ++member) {
    std::byte* const next = sums[static_cast<std::size_t>(member) % 2].data();
    combination.combine(sum, row_of(member), next);
    sum = next;
  }
  std::memcpy(destination, sum, bytes);
}

}  // namespace beeline::gaspi
