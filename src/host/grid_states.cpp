// SPDX-License-Identifier: Apache-2.0
// Who has which grid state: streams, and the graphs that were captured from them.
#include <fmt/format.h>

#include <utility>

#include "host/world_implementation.hpp"

namespace beeline {

std::shared_ptr<GridState> World::Implementation::take_grid() const {
  const std::lock_guard lock(free_grids->mutex);
  require(!free_grids->indices.empty(), Status::no_resource,
          fmt::format("{} streams, and graphs with waiting kernels, exist", max_streams));
  const std::uint32_t grid = free_grids->indices.back();
  free_grids->indices.pop_back();
  return {&heap_header(rank)->grids[grid].state, [to = free_grids, grid](GridState*) {
            const std::lock_guard giving_back(to->mutex);
            to->indices.push_back(grid);
          }};
}

std::shared_ptr<GridState> World::Implementation::lend_grid_state() {
  std::shared_ptr<GridState> grid = take_grid();
  GridState* const state = grid.get();
  return {state, [this, grid = std::move(grid)](GridState* let_go) mutable {
            ledger().forget(let_go);
            {
              const std::lock_guard lock(grid_mutex);
              captured.erase(let_go);
            }
            grid.reset();
          }};
}

World::Implementation::GraphGrid World::Implementation::graph_grid(Stream& on, std::uint64_t capture) {
  const std::lock_guard lock(grid_mutex);
  Captured& last = captured[on.grid_state()];
  std::shared_ptr<GraphBooking> booking = last.booking.lock();
  std::shared_ptr<GridState> grid = last.capture == capture ? last.grid.lock() : nullptr;
  if (booking != nullptr && grid != nullptr) return {grid.get(), booking.get()};
  if (booking == nullptr) booking = std::make_shared<GraphBooking>(ledger());
  grid = take_grid();
  on.keep_with_graph(
      std::make_shared<std::pair<std::shared_ptr<GraphBooking>, std::shared_ptr<GridState>>>(booking, grid));
  last = {capture, grid, booking};
  return {grid.get(), booking.get()};
}

}  // namespace beeline
