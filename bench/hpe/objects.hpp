// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The measurements of `beeline bench objects`. Source: seed 001, asymmetric distributed shared memory.

#include <cstddef>
#include <vector>

namespace beeline::bench::hpe {

/// The CPU writes all words, a kernel reads all, and again.
void measure_streaming(const std::vector<std::size_t>& sizes);
/// A kernel writes all words, and the CPU reads a word of one block in a hundred, at equal distances: the same words
/// after each kernel.
void measure_sparse(const std::vector<std::size_t>& sizes);
/// As `measure_sparse`, but words of other blocks after each kernel.
void measure_scattered(const std::vector<std::size_t>& sizes);
/// As `measure_sparse`, at distances that are not equal.
void measure_irregular(const std::vector<std::size_t>& sizes);
/// As `measure_scattered`, at distances that are not equal.
void measure_random(const std::vector<std::size_t>& sizes);
/// A kernel writes all words, and the CPU reads all in the order of addresses.
void measure_sequential(const std::vector<std::size_t>& sizes);
/// The CPU's first access to a block after a kernel.
void measure_first_access(const std::vector<std::size_t>& sizes);

}  // namespace beeline::bench::hpe
