// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The vector in the devices' memory.

#include <vector>

#include "beeline/hpe/memory.hpp"
#include "beeline/hpe/stream.hpp"
#include "problem.hpp"

namespace fft {

/// Each device's part of a vector, and its stream. A step of the transform reads the elements and writes the other
/// buffer, which `flip` then makes the elements.
class Parts {
 public:
  explicit Parts(const Setup& setup);

  [[nodiscard]] std::size_t devices() const { return streams_.size(); }
  /// Elements of a part.
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(Complex); }
  [[nodiscard]] beeline::hpe::Stream& stream(std::size_t number) { return streams_[number]; }
  [[nodiscard]] Complex* elements(std::size_t number) const { return buffers_[current_][number].as<Complex>(); }
  [[nodiscard]] Complex* other(std::size_t number) const { return buffers_[1 - current_][number].as<Complex>(); }
  void flip() { current_ = 1 - current_; }

  /// Makes each stream wait for what all others have now.
  void join_streams();
  void synchronize();
  /// Sets the initial elements. Blocking.
  void reset();
  /// The elements of all devices, one part after the other. Blocking.
  [[nodiscard]] std::vector<Complex> gather() const;

 private:
  std::size_t count_;
  std::vector<beeline::hpe::Stream> streams_;
  std::vector<beeline::hpe::DeviceMemory> buffers_[2];
  unsigned current_ = 0;
};

}  // namespace fft
