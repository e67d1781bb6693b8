// SPDX-License-Identifier: Apache-2.0
#include "host/world/launches.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace beeline {

Launches::Launches(const Membership& membership, const Areas& areas, const OwnProcess& process)
    : membership_(membership), areas_(areas), process_(process) {
  cpu_set_t mine;
  static_assert(sizeof mine == sizeof(HostAreaHeader::cores));
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  std::memcpy(areas_.host_header()->cores, &mine, sizeof mine);
}

void Launches::count_cores() {
  double share = 0;
  for (std::size_t core = 0; core < max_cores; ++core) {
    const auto runs = [&](int each) { return (areas_.host_header(each)->cores[core / 64] >> core % 64 & 1u) != 0; };
    if (!runs(membership_.rank())) continue;
    int ranks = 0;
    for (const int other : membership_.local_ranks())
      if (!membership_.of(other).device.is_gpu() && runs(other)) ++ranks;
    share += 1.0 / ranks;
  }
  cores_ = std::max(1u, static_cast<unsigned>(share + 1e-6));
}

void Launches::name(std::uint16_t number, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (is_named(number)) return;
  text.copy(areas_.host_header()->kernel_names[number - 1u], max_kernel_name - 1);  // its last byte is zero
  named_[number - 1u].store(true, std::memory_order_release);
}

}  // namespace beeline
