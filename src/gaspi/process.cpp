// SPDX-License-Identifier: Apache-2.0
#include "gaspi/process.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "gaspi/service.hpp"

namespace beeline::gaspi {

Process::Process(std::vector<std::unique_ptr<Extension>> extensions)
    : extensions_(std::move(extensions)), service_(std::make_unique<Service>(*this)) {}

Process::~Process() = default;

std::uint64_t Process::recoveries() const { return service_->recoveries(); }

bool Process::await_recovery(std::uint64_t limit_ns) const { return service_->await_recovery(limit_ns); }

void Process::log(const std::string& text) const {
  const std::string line = fmt::format("gaspi: rank {}: {}\n", rank_, text);  // one write: lines of ranks do not mix
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace beeline::gaspi
