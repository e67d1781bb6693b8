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

  void add_host(std::size_t block) { holders_[block] |= host; }
  void set_host_alone(std::size_t block) { holders_[block] = host; }
  void add(std::size_t block, unsigned copy) { holders_[block] |= device(copy); }
  void set_alone(std::size_t block, unsigned copy) { holders_[block] = device(copy); }
  /// The host has changed a part of the block: of the devices' copies only `copy`, if it was current, remains, since
  /// its device gets the part.
  void keep(std::size_t block, unsigned copy) { holders_[block] = host | (holders_[block] & device(copy)); }

 private:
  std::vector<std::uint32_t> holders_;
};

}  // namespace beeline::hpe::detail
