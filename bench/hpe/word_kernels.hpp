// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Kernels and memory of the measurements of objects.

#include <cstddef>
#include <cstdint>

#include "beeline/hpe/object.hpp"

namespace beeline::bench::hpe {

using Words = beeline::hpe::Object<std::uint32_t>;

constexpr unsigned most_blocks = 1024, block_threads = 256;

/// Reads all words, and stores a sum for each thread of the kernel. Counts of words are multiples of 4.
///   sums  [most_blocks * block_threads] memory of the stream's device
void launch_sum(beeline::hpe::Stream& stream, Words& words, std::uint32_t* sums);
void launch_sum(beeline::hpe::Stream& stream, std::uint32_t* words, std::size_t count, std::uint32_t* sums);
/// Adds one to each word.
void launch_increment(beeline::hpe::Stream& stream, Words& words);
void launch_increment(beeline::hpe::Stream& stream, std::uint32_t* words, std::size_t count);

/// Words in memory of cudaMallocManaged, zero at first.
class ManagedWords {
 public:
  ManagedWords(beeline::hpe::Device gpu, std::size_t count);
  ~ManagedWords();
  ManagedWords(const ManagedWords&) = delete;
  ManagedWords& operator=(const ManagedWords&) = delete;
  [[nodiscard]] std::uint32_t* data() const { return start_; }

 private:
  std::uint32_t* start_ = nullptr;
};

}  // namespace beeline::bench::hpe
