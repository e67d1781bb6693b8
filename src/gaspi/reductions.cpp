// SPDX-License-Identifier: Apache-2.0
#include "gaspi/reductions.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "gaspi/service.hpp"

namespace beeline::gaspi {

namespace {

constexpr std::size_t round_bytes = reduced_row_bytes / 2;
static_assert(round_bytes >= most_reduced_bytes + sizeof(std::uint64_t));
static_assert(user_defined_kind(most_reduced_bytes, 1) >> kind_bits == 0 &&
              user_defined_kind(1, most_reduced_bytes) >> kind_bits == 0);

// By the values of gaspi_operation_t and gaspi_datatype_t.
constexpr std::array operations{"GASPI_OP_MIN", "GASPI_OP_MAX", "GASPI_OP_SUM"};
constexpr std::array types{"GASPI_TYPE_INT",    "GASPI_TYPE_UINT", "GASPI_TYPE_FLOAT",
                           "GASPI_TYPE_DOUBLE", "GASPI_TYPE_LONG", "GASPI_TYPE_ULONG"};

std::string describe(ReductionKind kind) {
  if ((kind & 1) != 0)
    return fmt::format("{} of {} elements of {}", operations.at(kind >> 1 & 3), kind >> 6, types.at(kind >> 3 & 7));
  return fmt::format("the program's function of {} elements of {} bytes", kind >> 1 & 0x7ff, kind >> 12);
}

bool is_on_device(const void* address) {
  std::int32_t kind = BEELINE_MEMORY_HOST;
  if (beeline_memory_kind(address, &kind) != BEELINE_OK) throw Failure(beeline_last_error());
  return kind == BEELINE_MEMORY_DEVICE;
}

/// Copies a vector of the program's, which may be in GPU memory, from or to a row, which is in host memory.
///   vector  the one of the two addresses that the program has passed
void copy_vector(const Process& process, const void* vector, void* to, const void* from, std::size_t bytes) {
  if (!process.has_gpu() || !is_on_device(vector))
    std::memcpy(to, from, bytes);
  else if (beeline_copy(process.world(), to, from, bytes) != BEELINE_OK)
    throw Failure(beeline_last_error());
}

}  // namespace

std::byte* Reductions::row_of(int member, std::uint64_t round) const {
  return group_.gathered + static_cast<std::size_t>(member) * reduced_row_bytes + (round % 2) * round_bytes;
}

std::uint64_t* Reductions::signal_of(int member) const {
  return reinterpret_cast<std::uint64_t*>(row_of(member) + round_bytes - sizeof(std::uint64_t));
}

void Reductions::require_kind(ReductionKind mine) const {
  const int me = beeline_team_rank(group_.team);
  for (int member = 0; member < members(); ++member) {
    if (member == me) continue;
    const ReductionKind other = *signal_of(member) - signal_of_round();
    if (other != mine)
      throw Failure(fmt::format("calls of group {} differ: rank {} asks for {}, this rank for {}", group_.number,
                                group_.ranks[static_cast<std::size_t>(member)], describe(other), describe(mine)));
  }
}

Result Reductions::reduce(const Process& process, ReductionKind kind, std::span<const std::byte> source,
                          std::byte* destination, const Combination& combination, std::uint64_t timeout_ms) {
  if (const int lost = process.health().first_failed(group_.ranks); lost >= 0)
    throw Failure(
        fmt::format("group {} has rank {}, which has failed: {}", group_.number, lost, process.health().reason(lost)));
  if (kind_ != 0 && kind_ != kind)
    refuse(GASPI_ERR_ACTIVE_COLL, "another all-reduce of the group has timed out, and has to end first");
  const int me = beeline_team_rank(group_.team);
  if (kind_ == 0) {
    // The caller's vector may change after a time-out.
    copy_vector(process, source.data(), row_of(me, round_ + 1), source.data(), source.size());
    ++round_, kind_ = kind, sent_ = arrived_ = 0;
  }
  const auto missing = [this, me] {
    std::vector<int> ranks;
    for (int member = 0; member < members(); ++member)
      if (member != me &&
          std::atomic_ref<std::uint64_t>(*signal_of(member)).load(std::memory_order_relaxed) < signal_of_round())
        ranks.push_back(group_.ranks[static_cast<std::size_t>(member)]);
    return ranks;
  };
  const Awaited awaited{.what = "the other members' all-reduce of group",
                        .number = group_.number,
                        .needed = group_.ranks,
                        .missing = &missing};
  const Result result = wait_for(process, awaited, timeout_ms, [&](std::uint64_t slice_ns) -> beeline_status {
    for (; sent_ < members(); ++sent_) {
      if (sent_ == me) continue;
      if (const beeline_status status =
              beeline_put_signal(group_.team, row_of(me), row_of(me), source.size(), signal_of(me),
                                 signal_of_round() + kind, sent_, service_queue);
          status != BEELINE_OK)
        return status;
    }
    for (; arrived_ < members(); ++arrived_) {
      if (arrived_ == me) continue;
      if (const beeline_status status = beeline_wait(group_.team, signal_of(arrived_), BEELINE_GREATER_EQUAL,
                                                     signal_of_round(), arrived_, slice_ns);
          status != BEELINE_OK)
        return status;
    }
    return BEELINE_OK;
  });
  if (result != Result::success) return result;
  kind_ = 0;
  require_kind(kind);
  combine_all(process, source.size(), destination, combination);
  return result;
}

void Reductions::combine_all(const Process& process, std::size_t bytes, std::byte* destination,
                             const Combination& combination) const {
  alignas(64) std::array<std::array<std::byte, most_reduced_bytes>, 2> sums;
  std::byte* sum = row_of(0);
  for (int member = 1; member < members(); ++member) {
    std::byte* const next = sums[static_cast<std::size_t>(member) % 2].data();
    combination.combine(sum, row_of(member), next);
    sum = next;
  }
  copy_vector(process, destination, destination, sum, bytes);
}

}  // namespace beeline::gaspi
