// SPDX-License-Identifier: Apache-2.0
#include "sorter.hpp"

#include <algorithm>
#include <chrono>

#include "beeline/hpe/copy.hpp"

namespace merge_sort {

namespace hpe = beeline::hpe;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Sorter::Part::Part(hpe::Device device, Range keys_of_part)
    : range(keys_of_part), keys(device, range.count * sizeof(Key)), other(device, range.count * sizeof(Key)),
      received(device, range.count * sizeof(Key)), scratch(device, scratch_bytes(device, range.count)), stream(device),
      now(keys.as<Key>()), next(other.as<Key>()) {}

Sorter::Sorter(const Setup& setup) : setup_(setup), pivots_(2 * max_parts * sizeof(std::size_t)) {
  for (std::size_t part = 0; part < setup.devices.size(); ++part)
    parts_.emplace_back(setup.devices[part], range_of(setup.problem.keys, setup.devices.size(), part));
}

void Sorter::reset() {
  for (Part& part : parts_) enqueue_keys(part.stream, part.now, setup_.problem, part.range);
  synchronize();
}

void Sorter::synchronize() {
  for (Part& part : parts_) part.stream.synchronize();
}

void Sorter::enqueue_sorts() {
  for (Part& part : parts_) {
    Key* const sorted = enqueue_sort(part.stream, part.now, part.next, part.range.count, part.scratch);
    if (sorted != part.now) std::swap(part.now, part.next);
  }
  synchronize();
}

std::vector<Key> Sorter::gather() const {
  std::vector<Key> all(setup_.problem.keys);
  for (const Part& part : parts_) hpe::copy(all.data() + part.range.first, part.now, part.range.count * sizeof(Key));
  return all;
}

std::vector<Pair> Sorter::pairs(std::size_t width) const {
  std::vector<Pair> all;
  for (std::size_t first = 0; first + width < parts_.size(); first += 2 * width)
    all.push_back({first, first + width, std::min(first + 2 * width, parts_.size())});
  return all;
}

Sequence Sorter::sequence(std::size_t first, std::size_t last) const {
  Sequence all{};
  for (std::size_t part = first; part < last; ++part) {
    all.keys[all.parts] = parts_[part].now;
    all.first[all.parts + 1] = all.first[all.parts] + parts_[part].range.count;
    ++all.parts;
  }
  return all;
}

Range Sorter::output_of(const Pair& pair, std::size_t part) const {
  return {parts_[part].range.first - parts_[pair.first].range.first, parts_[part].range.count};
}

Sorter::Runs Sorter::enqueue_swap(const Pair& pair, std::size_t part) {
  const Range output = output_of(pair, part);
  const std::size_t first = pivots(part)[0], end = pivots(part)[1], from_left = end - first;
  Key* const received = parts_[part].received.as<Key>();
  const Run left = bring(part, sequence(pair.first, pair.middle), {first, from_left}, received);
  const Run right = bring(part, sequence(pair.middle, pair.last), {output.first - first, output.count - from_left},
                          received + from_left);
  return {left, right};
}

/// The run of a sequence that a part merges: where it is, if the part holds all of it; otherwise copied to `to`.
Run Sorter::bring(std::size_t part, const Sequence& from, Range range, Key* to) {
  if (range.count == 0) return {to, 0};
  const std::size_t holder = from.part_of(range.first), last = from.part_of(range.first + range.count - 1);
  if (holder == last && from.keys[holder] == parts_[part].now) return {from.address(range.first), range.count};
  std::size_t done = 0;
  while (done < range.count) {
    const std::size_t index = range.first + done, end = from.first[from.part_of(index) + 1];
    const std::size_t count = std::min(range.count - done, end - index);
    hpe::copy(to + done, from.address(index), count * sizeof(Key), parts_[part].stream);
    done += count;
  }
  return {to, range.count};
}

}  // namespace merge_sort
