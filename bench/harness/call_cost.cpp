// SPDX-License-Identifier: Apache-2.0
#include "harness/call_cost.hpp"

#include <signal.h>

namespace beeline::bench {

#if defined(__x86_64__)

namespace {

volatile std::uint64_t instructions = 0;
constexpr unsigned long long trap_flag = 0x100;  // the processor traps after each instruction

void count(int) { instructions = instructions + 1; }

}  // namespace

std::uint64_t count_instructions(void (*call)(void*), void* argument) {
  struct sigaction counting {
  }, before{};
  counting.sa_handler = count;
  ::sigaction(SIGTRAP, &counting, &before);
  instructions = 0;
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | trap_flag);
  call(argument);
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~trap_flag);
  ::sigaction(SIGTRAP, &before, nullptr);
  return instructions;
}

#else

std::uint64_t count_instructions(void (*call)(void*), void* argument) {
  call(argument);
  return 0;
}

#endif

}  // namespace beeline::bench
