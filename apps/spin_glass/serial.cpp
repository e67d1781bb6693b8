// SPDX-License-Identifier: Apache-2.0
#include "serial.hpp"

#include "common/reference.hpp"

namespace spin_glass {

Serial::Serial(const Size& size, const Model& model, int threads)
    : size_(size), model_(model), threads_(threads), spins_(size.sites()), couplings_(3 * size.sites()) {
  apps::on_threads(threads, std::size_t{0}, spins_.size(), [this](std::size_t first, std::size_t last) {
    for (std::size_t site = first; site < last; ++site) {
      spins_[site] = initial_spin(site);
      for (std::uint32_t axis = 0; axis < 3; ++axis)
        couplings_[3 * site + axis] = coupling(model_.couplings, site, axis);
    }
  });
}

void Serial::advance(int sweeps) {
  for (int done = 0; done < sweeps; ++done) {
    const Rule rule = rule_of(model_, ++sweep_);
    for (std::uint32_t colour = 0; colour < 2; ++colour)
      apps::on_threads(threads_, 0u, size_.z,
                       [&](std::uint32_t first, std::uint32_t last) { advance_colour(rule, colour, first, last); });
  }
}

void Serial::advance_colour(const Rule& rule, std::uint32_t colour, std::uint32_t first_z, std::uint32_t last_z) {
  for (std::uint32_t z = first_z; z < last_z; ++z)
    for (std::uint32_t y = 0; y < size_.y; ++y)
      for (std::uint32_t x = (colour + y + z) % 2; x < size_.x; x += 2)
        spins_[at(x, y, z)] = rule(spins_[at(x, y, z)], local_field(x, y, z), at(x, y, z));
}

Spin Serial::local_field(std::uint32_t x, std::uint32_t y, std::uint32_t z) const {
  const auto part = [&](std::size_t owner, std::uint32_t axis, std::size_t other) {
    return scaled(couplings_[3 * owner + axis], spins_[other]);
  };
  const std::size_t here = at(x, y, z), left = at(x + size_.x - 1, y, z), front = at(x, y + size_.y - 1, z),
                    below = at(x, y, z + size_.z - 1);
  const Spin along_x = sum(part(here, 0, at(x + 1, y, z)), part(left, 0, left));
  const Spin along_y = sum(part(here, 1, at(x, y + 1, z)), part(front, 1, front));
  const Spin along_z = sum(part(here, 2, at(x, y, z + 1)), part(below, 2, below));
  return sum(sum(along_x, along_y), along_z);
}

std::vector<float> Serial::field() const {
  std::vector<float> all;
  all.reserve(3 * spins_.size());
  for (std::uint32_t colour = 0; colour < 2; ++colour)
    for (std::uint32_t z = 0; z < size_.z; ++z)
      for (float Spin::*component : {&Spin::x, &Spin::y, &Spin::z})
        for (std::uint32_t y = 0; y < size_.y; ++y)
          for (std::uint32_t x = (colour + y + z) % 2; x < size_.x; x += 2)
            all.push_back(spins_[at(x, y, z)].*component);
  return all;
}

}  // namespace spin_glass
