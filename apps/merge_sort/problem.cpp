// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "beeline/core/error.hpp"
#include "common/quantity.hpp"
#include "common/reference.hpp"

namespace merge_sort {

using beeline::require;
using beeline::Status;

std::vector<std::size_t> parse_keys(const std::string& text) {
  constexpr std::size_t largest = std::size_t{64} << 30;
  std::vector<std::size_t> numbers;
  for (const std::string& item : apps::list_items(text)) {
    const std::optional<std::size_t> keys = apps::parse_quantity(item);
    require(keys && *keys > 0 && *keys <= largest, Status::invalid_argument,
            fmt::format("--keys: '{}' is no number of keys; valid: 1 to 64G, like 64K or 256M", item));
    numbers.push_back(*keys);
  }
  require(!numbers.empty(), Status::invalid_argument, "--keys: no number of keys is named");
  return numbers;
}

Range range_of(std::size_t keys, std::size_t parts, std::size_t part) {
  require(parts <= max_parts, Status::invalid_argument,
          fmt::format("{} devices: this program takes {} at most", parts, max_parts));
  require(parts <= keys, Status::invalid_argument,
          fmt::format("--keys: {} devices for {} keys: each device needs at least one", parts, keys));
  const std::size_t fewest = keys / parts, larger = keys % parts;
  return {part * fewest + std::min(part, larger), fewest + (part < larger ? 1 : 0)};
}

Contents contents_of(const Problem& problem, int threads) {
  Contents all;
  std::mutex mutex;
  apps::on_threads(threads, std::size_t{0}, problem.keys, [&](std::size_t first, std::size_t last) {
    Contents mine;
    for (std::size_t index = first; index < last; ++index) mine.add(initial_key(problem, index));
    const std::lock_guard lock(mutex);
    all.count += mine.count, all.hash += mine.hash;
  });
  return all;
}

Checked check_keys(const std::vector<Key>& keys) {
  Checked checked;
  checked.in_order = std::ranges::is_sorted(keys);
  for (const Key key : keys) checked.contents.add(key);
  return checked;
}

void check(const apps::Devices& devices, const std::vector<std::size_t>& keys, bool verify) {
  constexpr std::size_t buffers = 3;                     // keys, keys after a step, keys of other devices
  constexpr std::size_t margin = std::size_t{64} << 20;  // what CUB needs beside them
  for (const std::size_t count : keys)
    apps::require_room(devices,
                       {.problem = fmt::format("a sort of {} keys on {} devices", count, devices.size()),
                        .device_bytes = buffers * range_of(count, devices.size(), 0).count * sizeof(Key) + margin,
                        .reference_bytes = verify ? count * sizeof(Key) : 0});
}

}  // namespace merge_sort
