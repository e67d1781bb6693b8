// SPDX-License-Identifier: Apache-2.0
#include "domain.hpp"

#include <algorithm>

#include "beeline/core/task.hpp"
#include "beeline/device/signaled_word.hpp"

namespace jacobi {

namespace {

/// Writes the initial values into both buffers; `first_row` is the global number of row 0 of the slab.
struct Fill {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, Fields f, Size size,
                                      std::size_t first_row) const {
    const auto width = static_cast<std::size_t>(f.row);
    for (std::size_t n = grid.thread_rank(); n < width * static_cast<std::size_t>(f.rows + 2); n += grid.size()) {
      const std::size_t row = first_row + n / width, column = n % width;
      f.even[n] = f.odd[n] = column < size.columns + 2 ? initial_value(row, column) : 0.0f;
    }
  }
};

/// Floats from one row to the next.
std::size_t padded_row(const Size& size) {
  constexpr std::size_t line = 128 / sizeof(float);
  return (size.columns + 2 + line - 1) / line * line;
}

/// Floats of a buffer; the number is the same on every rank, so that offsets are the same, too.
std::size_t field_floats(const Size& size, int ranks) { return (slab_of(size, ranks, 0).rows + 2) * padded_row(size); }

Edges make_edges(const beeline::World& world, const Size& size, const Fields& f) {
  Edges edges{};
  edges.side[lower] = {beeline::no_peer, 1, 0};
  edges.side[upper] = {beeline::no_peer, f.rows, 0};
  if (const int below = world.rank() - 1; below >= 0) {
    const auto rows = static_cast<std::ptrdiff_t>(slab_of(size, world.size(), below).rows);
    edges.side[lower].peer = static_cast<std::uint32_t>(below);
    edges.side[lower].theirs = (rows + 1) * f.row;
  }
  if (const int above = world.rank() + 1; above < world.size())
    edges.side[upper].peer = static_cast<std::uint32_t>(above);
  return edges;
}

}  // namespace

std::size_t Domain::task_bytes(const Size& size, int ranks) {
  constexpr std::size_t slots = std::size_t{task_depth} * 16 * beeline::task_words * sizeof(beeline::SignaledWord);
  const std::size_t rows = 2 * (size.columns + 16) * sizeof(float);
  return static_cast<std::size_t>(ranks) * (task_depth * rows + slots);
}

std::size_t Domain::field_bytes(const Size& size, int ranks) { return 2 * field_floats(size, ranks) * sizeof(float); }

Domain::Domain(beeline::World& world, const Size& size, const HostGrid& host)
    : world_(world), size_(size), host_(host), slab_(slab_of(size, world.size(), world.rank())),
      even_(world, field_floats(size, world.size())), odd_(world, field_floats(size, world.size())) {
  const auto columns = static_cast<int>(size.columns);
  fields_ = {.even = even_.data(),
             .odd = odd_.data(),
             .row = static_cast<std::ptrdiff_t>(padded_row(size)),
             .columns = columns,
             .rows = static_cast<int>(slab_.rows),
             .quads = (columns + 2 + quad_points - 1) / quad_points};
  edges_ = make_edges(world, size, fields_);
}

void Domain::reset() {
  world_.barrier();  // no peer's row is still in flight to this rank
  const unsigned blocks = this->blocks<Fill, Fields, Size, std::size_t>(all());
  beeline::launch(world_, {.blocks = blocks, .threads = block_threads}, Fill{}, fields_, size_, slab_.first - 1);
  world_.synchronize();
  first_tag_ += iteration_;
  iteration_ = 0;
  world_.barrier();
}

Step Domain::take_steps(int iterations, bool communicate) {
  const Step first{iteration_, first_tag_, communicate};
  iteration_ += static_cast<std::uint64_t>(iterations);
  return first;
}

std::vector<float> Domain::gather() {
  world_.barrier();
  std::vector<float> whole;
  if (world_.rank() == 0) {
    const auto pitch = static_cast<std::size_t>(fields_.row), width = size_.columns + 2;
    whole.reserve(size_.stored());
    std::vector<float> part;
    for (int rank = 0; rank < world_.size(); ++rank) {
      // Each rank's own rows; for the outermost ranks also the grid's boundary rows.
      const std::size_t before = rank == 0 ? 1 : 0, after = rank == world_.size() - 1 ? 1 : 0;
      part.resize((slab_of(size_, world_.size(), rank).rows + before + after) * pitch);
      world_.copy(part.data(), world_.at(fields_.before(iteration_), rank) + (1 - before) * pitch,
                  part.size() * sizeof(float));
      for (auto row = part.begin(); row != part.end(); row += fields_.row)
        whole.insert(whole.end(), row, row + static_cast<std::ptrdiff_t>(width));
    }
  }
  world_.barrier();
  return whole;
}

Piece Domain::edge(unsigned side) const {
  const Edge& edge = edges_.side[side];
  if (!edge.open() || (side == upper && fields_.rows == 1 && edges_.side[lower].open())) return {};
  return {edge.mine, edge.mine + 1, 0, fields_.quads};
}

Piece Domain::interior() const {
  Piece piece = all();
  if (!edge(lower).empty()) ++piece.first_row;
  if (!edge(upper).empty()) --piece.last_row;
  return piece;
}

int Domain::segment_quads(int on_gpus) const {
  const int wanted = world_.device().is_gpu() ? on_gpus : host_.segment_quads;
  return wanted == 0 ? fields_.quads : std::min(wanted, fields_.quads);
}

unsigned Domain::blocks_of(const Piece& piece, unsigned resident) {
  constexpr std::size_t quads_of_a_block = 2 * block_threads;
  const auto quads = static_cast<std::size_t>(piece.last_row - piece.first_row) *
                     static_cast<std::size_t>(piece.last_quad - piece.first_quad);
  return static_cast<unsigned>(
      std::clamp<std::size_t>((quads + quads_of_a_block - 1) / quads_of_a_block, 1, std::max(resident, 1u)));
}

}  // namespace jacobi
