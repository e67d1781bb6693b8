// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The measurements of `beeline bench floating`.

#include <cstddef>
#include <vector>

namespace beeline::bench::hpe {

/// `hpe::copy` beside the bare call: the call that enqueues, and blocking copies.
void measure_copy_calls(const std::vector<std::size_t>& sizes);
/// Throughput and lock times of 1 to 16 threads on one device. Source: seed 001, figure 8.
void measure_threads(const std::vector<std::size_t>& sizes);
/// Copies from one device to another, one way and both ways, by scheme. Source: seed 001, figure 7.
void measure_inter_device(const std::vector<std::size_t>& sizes);

}  // namespace beeline::bench::hpe
