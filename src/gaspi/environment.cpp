// SPDX-License-Identifier: Apache-2.0
// Version, time, output, processors (13 and GASPI_Ext.h).
#include <sched.h>

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <fmt/format.h>

#include "gaspi/call.hpp"

namespace beeline::gaspi {

namespace {

using Clock = std::chrono::steady_clock;

const Clock::time_point loaded = Clock::now();

/// The processor's counter of cycles; where there is none, nanoseconds.
std::uint64_t cycles() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
#endif
}

/// Megahertz of `cycles`, measured once over 10 ms.
double measure_megahertz() {
  const auto start = Clock::now();
  const std::uint64_t first = cycles();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::uint64_t passed = cycles() - first;
  const std::chrono::duration<double, std::micro> us = Clock::now() - start;
  return static_cast<double>(passed) / us.count();
}

/// Prints in one piece, so that lines of ranks do not mix.
void print(const char* call, const char* text, std::va_list values) {
  if (text == nullptr) return log_failure(call, "format is a null pointer");
  std::va_list again;
  va_copy(again, values);
  const int length = std::vsnprintf(nullptr, 0, text, values);
  std::vector<char> line(static_cast<std::size_t>(length < 0 ? 0 : length) + 1);
  std::vsnprintf(line.data(), line.size(), text, again);
  va_end(again);
  const Process* const process = Process::running();
  if (process == nullptr)
    std::fprintf(stdout, "%s", line.data());
  else
    std::fprintf(stdout, "[%d] %s", process->rank(), line.data());
  std::fflush(stdout);
}

/// Number of the socket of a processor; -1 if the system does not say.
int socket_of(int processor) {
  const std::string name = fmt::format("/sys/devices/system/cpu/cpu{}/topology/physical_package_id", processor);
  std::FILE* const file = std::fopen(name.c_str(), "r");
  if (file == nullptr) return -1;
  int socket = -1;
  if (std::fscanf(file, "%d", &socket) != 1) socket = -1;
  std::fclose(file);
  return socket;
}

cpu_set_t own_processors() {
  cpu_set_t own;
  CPU_ZERO(&own);
  if (::sched_getaffinity(0, sizeof own, &own) != 0)
    throw Failure("the system does not say on which processors it runs");
  return own;
}

}  // namespace

}  // namespace beeline::gaspi

using namespace beeline::gaspi;

gaspi_return_t pgaspi_version(float* version) {
  return call_any_time("gaspi_version", [&] {
    require_pointer(version, "version");
    *version = 17.1F;
  });
}
GASPI_EXPORT(version);

gaspi_return_t pgaspi_time_get(gaspi_time_t* wtime) {
  return call_any_time("gaspi_time_get", [&] {
    require_pointer(wtime, "wtime");
    *wtime = std::chrono::duration<float, std::milli>(Clock::now() - loaded).count();
  });
}
GASPI_EXPORT(time_get);

gaspi_return_t pgaspi_time_resolution(gaspi_time_t* resolution) {
  return call_any_time("gaspi_time_resolution", [&] {
    require_pointer(resolution, "resolution");
    *resolution = std::chrono::duration<float, std::milli>(Clock::duration(1)).count();
  });
}
GASPI_EXPORT(time_resolution);

gaspi_return_t pgaspi_time_ticks(gaspi_cycles_t* ticks) {
  return call_any_time("gaspi_time_ticks", [&] {
    require_pointer(ticks, "ticks");
    *ticks = cycles();
  });
}
extern "C" __attribute__((weak, alias("pgaspi_time_ticks"))) gaspi_return_t gaspi_time_ticks(gaspi_cycles_t*);

gaspi_return_t pgaspi_cpu_frequency(gaspi_float* cpu_mhz) {
  return call_any_time("gaspi_cpu_frequency", [&] {
    require_pointer(cpu_mhz, "cpu_mhz");
    static const double megahertz = measure_megahertz();
    *cpu_mhz = static_cast<gaspi_float>(megahertz);
  });
}
GASPI_EXPORT(cpu_frequency);

void pgaspi_printf(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  print("gaspi_printf", format, values);
  va_end(values);
}
GASPI_EXPORT(printf);

void pgaspi_printf_to(gaspi_rank_t, const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  print("gaspi_printf_to", format, values);
  va_end(values);
}
GASPI_EXPORT(printf_to);

void pgaspi_print_affinity_mask(void) {
  static_cast<void>(call_any_time("gaspi_print_affinity_mask", [] {
    const cpu_set_t own = own_processors();
    std::string list;
    for (int processor = 0; processor < CPU_SETSIZE; ++processor)
      if (CPU_ISSET(processor, &own)) list += fmt::format(" {}", processor);
    pgaspi_printf("processors:%s\n", list.c_str());
  }));
}
GASPI_EXPORT(print_affinity_mask);

gaspi_return_t pgaspi_numa_socket(gaspi_uchar* socket) {
  return call_any_time("gaspi_numa_socket", [&] {
    require_pointer(socket, "socket");
    const cpu_set_t own = own_processors();
    int found = -1;
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (!CPU_ISSET(processor, &own)) continue;
      const int of = socket_of(processor);
      if (of < 0 || (found >= 0 && of != found)) throw Failure("the thread may run on several sockets");
      found = of;
    }
    *socket = static_cast<gaspi_uchar>(found);
  });
}
GASPI_EXPORT(numa_socket);

gaspi_return_t pgaspi_set_socket_affinity(gaspi_uchar socket) {
  return call_any_time("gaspi_set_socket_affinity", [&] {
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    for (int processor = 0; processor < CPU_SETSIZE; ++processor)
      if (socket_of(processor) == socket) CPU_SET(processor, &wanted);
    if (CPU_COUNT(&wanted) == 0) throw Failure(fmt::format("there is no socket {}", socket));
    if (::sched_setaffinity(0, sizeof wanted, &wanted) != 0)
      throw Failure(fmt::format("the thread may not run on socket {}", socket));
  });
}
GASPI_EXPORT(set_socket_affinity);
