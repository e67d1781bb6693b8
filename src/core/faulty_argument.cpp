// SPDX-License-Identifier: Apache-2.0
#include "core/faulty_argument.hpp"

namespace beeline::detail {

namespace {

bool is_of_address(CallFault fault) {
  return fault == CallFault::not_symmetric || fault == CallFault::null_address || fault == CallFault::misaligned ||
         fault == CallFault::not_allocated || fault == CallFault::cpu_in_gpu_memory ||
         fault == CallFault::gpu_atomic_on_host;
}

}  // namespace

const char* faulty_argument(Operation operation, CallFault fault) {
  if (fault == CallFault::null_own_end || fault == CallFault::own_end_elsewhere || fault == CallFault::own_end_on_gpu)
    return operation == Operation::get ? "destination: " : "source: ";
  if (!is_of_address(fault)) return "";
  switch (operation) {
    case Operation::put:
      return "destination: ";
    case Operation::get:
      return "source: ";
    case Operation::atomic:
      return "target: ";
    case Operation::at:
      return "local: ";
    case Operation::wait_any:
      return "signals: ";
    case Operation::signal:
    case Operation::signal_add:
    case Operation::wait:
    case Operation::exchange:
      return "signal: ";
    case Operation::task:
      return "reply: ";
    default:
      return "";
  }
}

}  // namespace beeline::detail
