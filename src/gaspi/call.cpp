// SPDX-License-Identifier: Apache-2.0
#include "gaspi/call.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace beeline::gaspi {

void refuse_null(const char* argument) { refuse(GASPI_ERR_NULLPTR, std::string(argument) + " is a null pointer"); }

void log_failure(const char* function, const char* text) noexcept {
  try {
    std::string line = text;  // the texts of Beeline may have several lines
    for (char& each : line)
      if (each == '\n') each = ';';
    const Process* const process = Process::running();
    const std::string rank = process == nullptr ? std::string() : fmt::format("rank {}: ", process->rank());
    line = fmt::format("gaspi: {}{}: {}\n", rank, function, line);
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (const std::exception&) {  // without memory there is no line
  }
}

}  // namespace beeline::gaspi
