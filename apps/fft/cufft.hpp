// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// cuFFT, opened at run time: machines without it build and run the program.

#include "local_transform.hpp"

namespace fft {

/// Transforms in place, by cuFFT.
class CufftTransform final : public LocalTransform {
 public:
  CufftTransform(beeline::hpe::Device gpu, std::size_t count, std::size_t transforms);
  ~CufftTransform() override;
  CufftTransform(const CufftTransform&) = delete;
  CufftTransform& operator=(const CufftTransform&) = delete;
  [[nodiscard]] bool is_in_place() const override { return true; }
  [[nodiscard]] Complex* enqueue(beeline::hpe::Stream& stream, Complex* elements, Complex* other) override;

 private:
  beeline::hpe::Device gpu_;
  int plan_ = 0;
};

}  // namespace fft
