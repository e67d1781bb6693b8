// SPDX-License-Identifier: Apache-2.0
#include "parts.hpp"

#include "beeline/hpe/copy.hpp"
#include "kernels.hpp"

namespace fft {

Parts::Parts(const Setup& setup) : count_(setup.part()) {
  for (const beeline::hpe::Device device : setup.devices) {
    streams_.emplace_back(device);
    for (auto& buffers : buffers_) buffers.emplace_back(device, bytes());
  }
}

void Parts::join_streams() {
  for (std::size_t number = 0; number < devices(); ++number)
    for (std::size_t other = 0; other < devices(); ++other)
      if (other != number) streams_[number].wait_for(streams_[other]);
}

void Parts::synchronize() {
  for (beeline::hpe::Stream& stream : streams_) stream.synchronize();
}

void Parts::reset() {
  for (std::size_t number = 0; number < devices(); ++number)
    enqueue_initial_elements(streams_[number], elements(number), number * count_, count_);
  synchronize();
}

std::vector<Complex> Parts::gather() const {
  std::vector<Complex> all(devices() * count_);
  for (std::size_t number = 0; number < devices(); ++number)
    beeline::hpe::copy(all.data() + number * count_, elements(number), bytes());
  return all;
}

}  // namespace fft
