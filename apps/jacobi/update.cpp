// SPDX-License-Identifier: Apache-2.0
#include "update.hpp"

#include <algorithm>

#include "sweep.hpp"

namespace jacobi {

namespace {

struct UpdatePieces {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, Fields f, Piece one, Piece other,
                                      std::uint64_t iteration) const {
    update(grid.thread_rank(), grid.size(), f, one, iteration);
    update(grid.thread_rank(), grid.size(), f, other, iteration);
  }
};

unsigned blocks_for(const Domain& domain, const Piece& piece) {
  return domain.blocks<UpdatePieces, Fields, Piece, Piece, std::uint64_t>(piece);
}

}  // namespace

Update::Update(const Domain& domain, const Piece& one, const Piece& other)
    : domain_(domain), one_(one), other_(other), blocks_(std::max(blocks_for(domain, one), blocks_for(domain, other))) {
}

void Update::enqueue(std::uint64_t iteration) const {
  if (one_.empty() && other_.empty()) return;
  beeline::launch(domain_.world(), {.blocks = blocks_, .threads = block_threads}, UpdatePieces{}, domain_.fields(),
                  one_, other_, iteration);
}

}  // namespace jacobi
