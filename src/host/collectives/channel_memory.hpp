// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Those who make a channel together, and the memory that they get for it.

#include <cstddef>
#include <span>
#include <vector>

#include "beeline/host/team.hpp"
#include "beeline/host/world.hpp"

namespace beeline::detail {

/// All ranks of a world, or the members of a team alone. Its functions are collective over them.
class Makers {
 public:
  /// `team`: nullptr for the world. `call`: what they make, which ranks in different calls are told.
  Makers(World& world, Team* team, const char* call) : world_(&world), team_(team), call_(call) {}

  [[nodiscard]] World& world() const { return *world_; }
  [[nodiscard]] int size() const;
  /// Whether they are all ranks of the world.
  [[nodiscard]] bool are_all() const { return team_ == nullptr; }
  [[nodiscard]] bool failed() const;
  /// Everyone's bytes, by rank; none from ranks that have failed or left. A few.
  [[nodiscard]] std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> mine) const;
  void barrier() const;
  [[nodiscard]] void* allocate(std::size_t bytes, Heap heap) const;
  void free(void* pointer) const;

 private:
  World* world_;
  Team* team_;
  const char* call_;
};

/// Zeroed symmetric memory, freed by its destructor; see `SymmetricArray`.
class ChannelMemory {
 public:
  ChannelMemory(const Makers& makers, std::size_t bytes, Heap heap);
  ~ChannelMemory();
  ChannelMemory(const ChannelMemory&) = delete;
  ChannelMemory& operator=(const ChannelMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  Makers makers_;
  std::byte* data_;
};

}  // namespace beeline::detail
