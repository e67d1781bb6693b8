// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The guard of every public function, and the names under which a function is exported.

#include <PGASPI.h>

#include <exception>
#include <new>
#include <string>
#include <type_traits>

#include "gaspi/failure.hpp"
#include "gaspi/waiting.hpp"

/// Exports the function pgaspi_NAME of this file as gaspi_NAME, too, which a profiler's function may replace.
#define GASPI_EXPORT(name) extern "C" __attribute__((weak, alias("pgaspi_" #name))) decltype(pgaspi_##name) gaspi_##name

namespace beeline::gaspi {

/// Writes a line that says why `function` failed.
void log_failure(const char* function, const char* text) noexcept;

/// Refuses a call before anything is touched.
[[noreturn, gnu::cold]] inline void refuse(gaspi_return_t value, const std::string& text) {
  throw Failure(value, text);
}

/// Requires that a call of Beeline has succeeded. Throws Failure with Beeline's text.
///   value  what the caller gets otherwise
inline void require_ok(beeline_status status, gaspi_return_t value = GASPI_ERROR) {
  if (status != BEELINE_OK) [[unlikely]]
    throw Failure(value, beeline_last_error());
}

[[noreturn]] void refuse_null(const char* argument);
inline void require_pointer(const void* pointer, const char* argument) {
  if (pointer == nullptr) [[unlikely]]
    refuse_null(argument);
}

/// Calls `body()` and returns its result: success if it returns nothing. Exceptions become the standard's values, with
/// one line in the log.
template <class Body>
[[nodiscard]] gaspi_return_t call_any_time(const char* function, const Body& body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return GASPI_SUCCESS;
    } else {
      return static_cast<gaspi_return_t>(body());
    }
  } catch (const Failure& failure) {
    log_failure(function, failure.what());
    return static_cast<gaspi_return_t>(failure.value());
  } catch (const std::bad_alloc&) {
    log_failure(function, "no memory");
    return GASPI_ERR_MEMALLOC;
  } catch (const std::exception& error) {
    log_failure(function, error.what());
    return GASPI_ERROR;
  }
}

/// As above, for a function that is allowed only between initialization and termination: calls `body(process)`.
template <class Body>
[[nodiscard]] gaspi_return_t call(const char* function, const Body& body) noexcept {
  return call_any_time(function, [&] {
    Process* const process = Process::running();
    if (process == nullptr) [[unlikely]]
      refuse(GASPI_ERR_NOINIT, "before gaspi_proc_init or after gaspi_proc_term");
    return body(*process);
  });
}

}  // namespace beeline::gaspi
