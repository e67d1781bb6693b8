// SPDX-License-Identifier: Apache-2.0
#include "host/world/grids.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "beeline/core/error.hpp"

namespace beeline {

struct Grids::Free {
  Free() {
    for (std::uint32_t grid = max_streams; grid-- > 0;) indices.push_back(grid);
  }
  std::mutex mutex;
  std::vector<std::uint32_t> indices;
};

class Grids::Booking {
 public:
  explicit Booking(ResidencyLedger& ledger) : ledger_(ledger) {}
  ~Booking() { ledger_.forget(this); }
  Booking(const Booking&) = delete;
  Booking& operator=(const Booking&) = delete;

 private:
  ResidencyLedger& ledger_;
};

Grids::Grids(PaddedGridState* states, const Device& device)
    : states_(states), ledger_(device.is_gpu() ? ResidencyLedger::of_gpu(device.index) : own_ledger_),
      free_(std::make_shared<Free>()) {}

std::shared_ptr<GridState> Grids::take() const {
  const std::lock_guard lock(free_->mutex);
  require(!free_->indices.empty(), Status::no_resource,
          fmt::format("{} streams, and graphs with waiting kernels, exist", max_streams));
  const std::uint32_t grid = free_->indices.back();
  free_->indices.pop_back();
  return {&states_[grid].state, [to = free_, grid](GridState*) {
            const std::lock_guard giving_back(to->mutex);
            to->indices.push_back(grid);
          }};
}

std::shared_ptr<GridState> Grids::lend() {
  std::shared_ptr<GridState> grid = take();
  GridState* const state = grid.get();
  return {state, [this, grid = std::move(grid)](GridState* let_go) mutable {
            ledger_.forget(let_go);
            {
              const std::lock_guard lock(mutex_);
              captured_.erase(let_go);
            }
            grid.reset();
          }};
}

Grids::GraphGrid Grids::for_graph(Stream& on, std::uint64_t capture) {
  const std::lock_guard lock(mutex_);
  Captured& last = captured_[on.grid_state()];
  std::shared_ptr<Booking> booking = last.booking.lock();
  std::shared_ptr<GridState> grid = last.capture == capture ? last.grid.lock() : nullptr;
  if (booking != nullptr && grid != nullptr) return {grid.get(), booking.get()};
  if (booking == nullptr) booking = std::make_shared<Booking>(ledger_);
  grid = take();
  on.keep_with_graph(std::make_shared<std::pair<std::shared_ptr<Booking>, std::shared_ptr<GridState>>>(booking, grid));
  last = {capture, grid, booking};
  return {grid.get(), booking.get()};
}

}  // namespace beeline
