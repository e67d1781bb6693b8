// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/channel_memory.hpp"

#include <exception>

#include "host/world_implementation.hpp"

namespace beeline::detail {

int Makers::size() const { return team_ == nullptr ? world_->size() : team_->size(); }

bool Makers::failed() const { return world_->failed() || (team_ != nullptr && team_->failed()); }

std::vector<std::vector<std::byte>> Makers::allgather(std::span<const std::byte> mine) const {
  World::Implementation& world = world_->implementation();
  return team_ == nullptr ? world.exchange(call_, mine) : world.exchange_in(*team_, call_, mine);
}

void Makers::barrier() const { team_ == nullptr ? world_->barrier() : team_->barrier(); }

void* Makers::allocate(std::size_t bytes, Heap heap) const {
  return team_ == nullptr ? world_->allocate(bytes, heap) : team_->allocate(bytes, heap);
}

void Makers::free(void* pointer) const { team_ == nullptr ? world_->free(pointer) : team_->free(pointer); }

ChannelMemory::ChannelMemory(const Makers& makers, std::size_t bytes, Heap heap)
    : makers_(makers), data_(static_cast<std::byte*>(makers.allocate(bytes, heap))) {}

ChannelMemory::~ChannelMemory() {
  // What failed goes with the world. While an exception leaves this rank, the others do not free.
  if (makers_.failed() || std::uncaught_exceptions() > 0) return;
  try {
    makers_.free(data_);
  } catch (const std::exception& error) {
    log(LogLevel::warning, error.what(), makers_.world().rank());
  }
}

}  // namespace beeline::detail
