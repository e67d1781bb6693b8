// SPDX-License-Identifier: Apache-2.0
// Barriers and all-reduces of groups (11).
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>

#include "gaspi/checks.hpp"
#include "gaspi/reductions.hpp"
#include "gaspi/statistics.hpp"

namespace beeline::gaspi {

namespace {

/// A committed group; valid until this thread's next call.
Group& require_group(Process& process, gaspi_group_t number) {
  Group* const group = process.groups().find_again(number);
  if (group == nullptr) [[unlikely]]
    refuse(GASPI_ERR_INV_GROUP, fmt::format("there is no group {}", number));
  if (group->state.load(std::memory_order_acquire) != Group::State::committed) [[unlikely]]
    refuse(GASPI_ERR_INV_GROUP, fmt::format("group {} is not committed", number));
  return *group;
}

/// The only call of its kind for a group.
class OneCall {
 public:
  OneCall(std::atomic<bool>& is_in_call, const char* kind, gaspi_group_t group) : is_in_call_(is_in_call) {
    if (is_in_call_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      refuse(GASPI_ERR_ACTIVE_COLL, fmt::format("another thread is in {} of group {}", kind, group));
  }
  ~OneCall() { is_in_call_.store(false, std::memory_order_release); }
  OneCall(const OneCall&) = delete;
  OneCall& operator=(const OneCall&) = delete;

 private:
  std::atomic<bool>& is_in_call_;
};

/// The members that have not entered this rank's last barrier of the group.
std::vector<int> members_before_barrier(const Group& group) {
  std::vector<int> ranks;
  for (int member = 0; member < static_cast<int>(group.ranks.size()); ++member) {
    std::uint64_t entered = 0;
    if (beeline_get(group.team, &entered, group.entered, sizeof entered, member) != BEELINE_OK) break;
    if (entered < *group.entered) ranks.push_back(group.ranks[static_cast<std::size_t>(member)]);
  }
  return ranks;
}

template <class Type, gaspi_operation_t operation>
class Predefined final : public Combination {
 public:
  explicit Predefined(std::size_t count) : count_(count) {}
  void combine(std::byte* one, std::byte* two, std::byte* result) const override {
    const auto *a = reinterpret_cast<const Type*>(one), *b = reinterpret_cast<const Type*>(two);
    auto* const to = reinterpret_cast<Type*>(result);
    for (std::size_t i = 0; i < count_; ++i) {
      if constexpr (operation == GASPI_OP_SUM) to[i] = a[i] + b[i];
      if constexpr (operation == GASPI_OP_MIN) to[i] = std::min(a[i], b[i]);
      if constexpr (operation == GASPI_OP_MAX) to[i] = std::max(a[i], b[i]);
    }
  }

 private:
  const std::size_t count_;
};

/// A reduction by a function of the program.
class UserDefined final : public Combination {
 public:
  UserDefined(gaspi_reduce_operation_t function, gaspi_reduce_state_t state, gaspi_number_t count,
              gaspi_size_t element_bytes, gaspi_timeout_t timeout_ms)
      : function_(function), state_(state), count_(count), element_bytes_(element_bytes), timeout_ms_(timeout_ms) {}
  void combine(std::byte* one, std::byte* two, std::byte* result) const override {
    const gaspi_return_t returned = function_(one, two, result, state_, count_, element_bytes_, timeout_ms_);
    if (returned != GASPI_SUCCESS)
      throw Failure(returned, fmt::format("the program's reduction has returned {}", static_cast<int>(returned)));
  }

 private:
  const gaspi_reduce_operation_t function_;
  const gaspi_reduce_state_t state_;
  const gaspi_number_t count_;
  const gaspi_size_t element_bytes_;
  const gaspi_timeout_t timeout_ms_;
};

/// Calls `use(combination, bytes of a vector)` for a predefined reduction.
template <class Type, class Use>
Result with_type(gaspi_operation_t operation, std::size_t count, const Use& use) {
  switch (operation) {
    case GASPI_OP_MIN:
      return use(Predefined<Type, GASPI_OP_MIN>(count), count * sizeof(Type));
    case GASPI_OP_MAX:
      return use(Predefined<Type, GASPI_OP_MAX>(count), count * sizeof(Type));
    case GASPI_OP_SUM:
      return use(Predefined<Type, GASPI_OP_SUM>(count), count * sizeof(Type));
  }
  refuse(GASPI_ERR_INV_NUM, fmt::format("there is no reduction {}", static_cast<int>(operation)));
}
template <class Use>
Result with_combination(gaspi_operation_t operation, gaspi_datatype_t type, std::size_t count, const Use& use) {
  switch (type) {
    case GASPI_TYPE_INT:
      return with_type<int>(operation, count, use);
    case GASPI_TYPE_UINT:
      return with_type<unsigned int>(operation, count, use);
    case GASPI_TYPE_FLOAT:
      return with_type<float>(operation, count, use);
    case GASPI_TYPE_DOUBLE:
      return with_type<double>(operation, count, use);
    case GASPI_TYPE_LONG:
      return with_type<long>(operation, count, use);
    case GASPI_TYPE_ULONG:
      return with_type<unsigned long>(operation, count, use);
  }
  refuse(GASPI_ERR_INV_NUM, fmt::format("there is no type {} of elements", static_cast<int>(type)));
}

/// The vectors of a call.
struct Vectors {
  gaspi_const_pointer_t source;
  gaspi_pointer_t destination;
};

Result reduce(Process& process, gaspi_group_t number, const Vectors& vectors, std::size_t bytes, ReductionKind kind,
              const Combination& combination, std::uint64_t timeout_ms) {
  Group& group = require_group(process, number);
  const OneCall only(group.is_in_reduction, "an all-reduce", number);
  if (group.work == nullptr) group.work = std::make_unique<Reductions>(group);
  const Result result = static_cast<Reductions&>(*group.work)
                            .reduce(process, kind, {static_cast<const std::byte*>(vectors.source), bytes},
                                    static_cast<std::byte*>(vectors.destination), combination, timeout_ms);
  if (result == Result::success) count(Counter::reductions);
  return result;
}

}  // namespace

}  // namespace beeline::gaspi

using namespace beeline::gaspi;

gaspi_return_t pgaspi_barrier(gaspi_group_t group, gaspi_timeout_t timeout_ms) {
  return call("gaspi_barrier", [&](Process& process) {
    Group& of = require_group(process, group);
    const OneCall only(of.is_in_barrier, "a barrier", group);
    if (!of.has_open_barrier)
      std::atomic_ref<std::uint64_t>(*of.entered).store(*of.entered + 1, std::memory_order_relaxed);
    const auto missing = [&of] { return members_before_barrier(of); };
    const Awaited awaited{
        .what = "the other members' barrier of group", .number = group, .needed = of.ranks, .missing = &missing};
    const Result result = wait_for(process, awaited, timeout_ms,
                                   [&](std::uint64_t slice_ns) { return beeline_barrier(of.team, slice_ns); });
    of.has_open_barrier = result == Result::timeout;
    if (result == Result::success) count(Counter::barriers);
    return result;
  });
}
GASPI_EXPORT(barrier);

gaspi_return_t pgaspi_allreduce(gaspi_const_pointer_t buffer_send, gaspi_pointer_t buffer_receive, gaspi_number_t num,
                                gaspi_operation_t operation, gaspi_datatype_t datatype, gaspi_group_t group,
                                gaspi_timeout_t timeout_ms) {
  return call("gaspi_allreduce", [&](Process& process) {
    require_pointer(buffer_send, "buffer_send");
    require_pointer(buffer_receive, "buffer_receive");
    if (num == 0 || num > configuration().allreduce_elem_max)
      refuse(GASPI_ERR_INV_NUM,
             fmt::format("{} elements, where 1 to {} are possible", num, configuration().allreduce_elem_max));
    return with_combination(operation, datatype, num, [&](const Combination& combination, std::size_t bytes) {
      return reduce(process, group, {buffer_send, buffer_receive}, bytes, predefined_kind(operation, datatype, num),
                    combination, timeout_ms);
    });
  });
}
GASPI_EXPORT(allreduce);

gaspi_return_t pgaspi_allreduce_user(gaspi_const_pointer_t buffer_send, gaspi_pointer_t buffer_receive,
                                     gaspi_number_t num, gaspi_size_t element_size,
                                     gaspi_reduce_operation_t reduce_operation, gaspi_reduce_state_t reduce_state,
                                     gaspi_group_t group, gaspi_timeout_t timeout_ms) {
  return call("gaspi_allreduce_user", [&](Process& process) {
    require_pointer(buffer_send, "buffer_send");
    require_pointer(buffer_receive, "buffer_receive");
    require_pointer(reinterpret_cast<const void*>(reduce_operation), "reduce_operation");
    const std::uint64_t most = configuration().allreduce_buf_size;
    if (num == 0) refuse(GASPI_ERR_INV_NUM, "0 elements");
    if (element_size == 0 || element_size > most || num > most / element_size)
      refuse(GASPI_ERR_INV_SIZE,
             fmt::format("{} elements of {} bytes, where vectors have 1 to {} bytes", num, element_size, most));
    const UserDefined combination(reduce_operation, reduce_state, num, element_size, timeout_ms);
    return reduce(process, group, {buffer_send, buffer_receive}, num * element_size,
                  user_defined_kind(num, element_size), combination, timeout_ms);
  });
}
GASPI_EXPORT(allreduce_user);
