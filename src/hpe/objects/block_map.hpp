// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Where the current copies of an object's blocks are.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace beeline::hpe::detail {

/// Blocks [first, end) of an object.
struct Blocks {
  std::size_t first = 0, end = 0;
  [[nodiscard]] bool is_empty() const { return first >= end; }
};

/// For each block, the set of its current copies: the host's, and those of devices by their index in the object. One
/// copy alone may be written. At first all copies are current, since all are zero.
class BlockMap {
 public:
  static constexpr unsigned most_copies = 31;
  static constexpr std::uint32_t host = 1;

  explicit BlockMap(std::size_t blocks) : holders_(blocks, ~std::uint32_t{0}) {}

  [[nodiscard]] static std::uint32_t device(unsigned copy) { return std::uint32_t{2} << copy; }
  [[nodiscard]] std::size_t size() const { return holders_.size(); }
  [[nodiscard]] bool is_on_host(std::size_t block) const { return (holders_[block] & host) != 0; }
  [[nodiscard]] bool is_on_host_alone(std::size_t block) const { return holders_[block] == host; }
  [[nodiscard]] bool is_on(std::size_t block, unsigned copy) const { return (holders_[block] & device(copy)) != 0; }
  /// The device copy from which a block that the host lacks is fetched.
  [[nodiscard]] unsigned first_device(std::size_t block) const {
    return static_cast<unsigned>(std::countr_zero(holders_[block] & ~host)) - 1;
  }
  [[nodiscard]] std::uint32_t holders(std::size_t block) const { return holders_[block]; }

  /// Whether `copy` is the only current one of every block, as between kernels of one device.
  [[nodiscard]] bool are_all_on(unsigned copy) const { return sole_holder_ == device(copy); }

  void add_host(std::size_t block) { change(block) |= host; }
  void set_host_alone(std::size_t block) { change(block) = host; }
  void add(std::size_t block, unsigned copy) { change(block) |= device(copy); }
  void set_alone(Blocks blocks, unsigned copy) {
    for (std::size_t block = blocks.first; block < blocks.end; ++block) change(block) = device(copy);
    if (blocks.first == 0 && blocks.end == holders_.size()) sole_holder_ = device(copy);
  }
  /// The host has changed a part of the block: of the devices' copies only `copy`, if it was current, remains, since
  /// its device gets the part.
  void keep(std::size_t block, unsigned copy) { change(block) = host | (holders_[block] & device(copy)); }

 private:
  [[nodiscard]] std::uint32_t& change(std::size_t block) {
    sole_holder_ = 0;
    return holders_[block];
  }

  std::vector<std::uint32_t> holders_;
  std::uint32_t sole_holder_ = 0;  ///< of all blocks; 0: unknown
};

}  // namespace beeline::hpe::detail
