// SPDX-License-Identifier: Apache-2.0
#include "hpe/bare_fault.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "beeline/core/error.hpp"

namespace beeline::bench::hpe {

namespace {

struct sigaction previous_handler;
std::uintptr_t range_first, range_end;
const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));

void open_page(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (address < range_first || address >= range_end) std::abort();
  ::mprotect(reinterpret_cast<void*>(address / page_bytes * page_bytes), page_bytes, PROT_READ | PROT_WRITE);
}

}  // namespace

BareFaults::BareFaults(std::size_t bytes)
    : bytes_(bytes),
      start_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {
  require(start_ != MAP_FAILED, Status::no_resource, "no memory for bare faults");
  range_first = reinterpret_cast<std::uintptr_t>(start_);
  range_end = range_first + bytes;
  struct sigaction own {};
  own.sa_sigaction = &open_page;
  own.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &own, &previous_handler);
}

BareFaults::~BareFaults() {
  ::sigaction(SIGSEGV, &previous_handler, nullptr);
  ::munmap(start_, bytes_);
}

void BareFaults::protect() const { ::mprotect(start_, bytes_, PROT_NONE); }

}  // namespace beeline::bench::hpe
