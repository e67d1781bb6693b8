// SPDX-License-Identifier: Apache-2.0
// Registration of functions by a member, and its memory for their payloads.
#include <fmt/format.h>

#include <string>

#include "beeline/core/error.hpp"
#include "beeline/host/tasks.hpp"
#include "host/task_kernels.hpp"
#include "host/world/exchange.hpp"

namespace beeline {

/// Largest number of tasks in flight to this rank.
std::size_t TaskQueues::places_of_payloads() const { return slots_.count() / task_words; }

std::size_t TaskQueues::payload_buffer_bytes(std::size_t bytes_of_one) const {
  return (bytes_of_one + 15) / 16 * 16 * places_of_payloads();
}

TaskPlace TaskQueues::place_of(const TaskRegistration& what, std::string& fault) const {
  const Context& ctx = team_.host_context();
  if (what.payloads == nullptr) {
    if (what.payload_bytes != 0) fault = fmt::format("a buffer of {} bytes at a null address", what.payload_bytes);
    return {};
  }
  const detail::Reach reach{what.payloads, what.payload_bytes, 16};
  const TaskPlace place{ctx.offset_in_slot(what.payloads), what.payload_bytes / places_of_payloads() / 16 * 16};
  if (!detail::is_sound(ctx, reach, ctx.rank)) {
    const detail::Finding found = detail::finding_in(ctx, reach, ctx.rank);
    fault = "payloads: " + describe(found.fault, found.expected, found.observed);
  } else if (place.payload_bytes == 0) {
    fault = fmt::format("a buffer of {} bytes for {} tasks that may be under way: 16 bytes for each at least",
                        what.payload_bytes, places_of_payloads());
  }
  return place;
}

void TaskQueues::register_function(std::uint32_t function, const TaskRegistration& what) {
  const bool is_kernel = function < list_.functions && list_.is_kernel(function);
  announce(function, what, Status::invalid_argument,
           is_kernel ? fmt::format("function {} is a kernel", function) : std::string(), false);
}

void TaskQueues::register_kernel(std::uint32_t function, const TaskRegistration& what, const TaskKernelShape& shape) {
  Status status = Status::invalid_argument;
  std::string fault;
  if (function < list_.functions && !list_.is_kernel(function)) {
    fault = fmt::format("function {} is no kernel", function);
  } else if (function < list_.functions) {
    try {
      kernels_->prepare(function, shape);
    } catch (const Error& error) {
      status = error.code(), fault = error.what();
    }
  }
  announce(function, what, status, fault, true);
}

void TaskQueues::announce(std::uint32_t function, const TaskRegistration& what, Status status, std::string fault,
                          bool is_kernel) {
  struct Offer {
    TaskPlace place;
    std::uint32_t function;
    Status status;  ///< ok without an error
  } mine{{}, function, Status::ok};
  std::string fault_of_place;
  mine.place = place_of(what, fault_of_place);
  if (reinterpret_cast<std::uintptr_t>(what.completion) % alignof(std::uint64_t) != 0)
    fault_of_place = "a completion count that is not aligned to 8 bytes";
  if (function >= list_.functions) fault_of_place = describe(CallFault::no_function, list_.functions, function);
  if (!fault_of_place.empty()) status = Status::invalid_argument, fault = fault_of_place;
  if (!fault.empty()) mine.status = status;
  const auto all = detail::values_in(team_, "register_function", mine);
  const auto rank_of = [this](std::size_t member) { return team_.world_rank(static_cast<int>(member)); };
  for (std::size_t member = 0; member < all.size(); ++member)
    require(!all[member] || all[member]->status == Status::ok, all[member] ? all[member]->status : Status::ok,
            fmt::format("rank {} registers function {}: {}", rank_of(member), all[member] ? all[member]->function : 0,
                        rank_of(member) == team_.world().rank() ? fault : "what it gives is refused there"));
  for (std::size_t member = 0; member < all.size(); ++member)
    require(!all[member] || all[member]->function == function, Status::invalid_argument,
            fmt::format("rank {} registers function {}, rank {} function {}", team_.world().rank(), function,
                        rank_of(member), all[member] ? all[member]->function : 0));
  for (std::size_t member = 0; member < all.size(); ++member)
    if (all[member])
      team_.world().copy(&places_.data()[member * list_.functions + function], &all[member]->place, sizeof(TaskPlace));
  if (is_kernel) between_leases([&] { kernels_->adopt(function); });
  write(targets_.data()[function], {reinterpret_cast<std::uintptr_t>(what.object),
                                    reinterpret_cast<std::uintptr_t>(what.completion) + TaskTarget::registered_bit});
  team_.barrier();
}

void TaskQueues::unregister_function(std::uint32_t function) {
  require(function < list_.functions, Status::invalid_argument,
          describe(CallFault::no_function, list_.functions, function));
  write(targets_.data()[function], {});
}

}  // namespace beeline
