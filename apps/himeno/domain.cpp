// SPDX-License-Identifier: Apache-2.0
#include "domain.hpp"

#include <algorithm>
#include <cstring>

#include "beeline/core/error.hpp"

namespace himeno {

namespace {

constexpr std::size_t pressure_buffers = 2;

/// Writes the initial values of one array; `first_plane` is the global z of the slab's plane 0.
struct Fill {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, float* values, Array array, Data data,
                                      Size size, int row, int first_plane, int planes) const {
    const std::size_t plane = static_cast<std::size_t>(row) * static_cast<std::size_t>(size.y);
    for (std::size_t n = grid.thread_rank(); n < plane * static_cast<std::size_t>(planes); n += grid.size()) {
      const int z = first_plane + static_cast<int>(n / plane);
      const int y = static_cast<int>(n % plane) / row, x = static_cast<int>(n % plane) % row;
      values[n] = x < size.x ? initial_value(data, size, array, x, y, z) : 0.0f;
    }
  }
};

int padded_row(const Size& size) { return (size.x + vector_cells - 1) / vector_cells * vector_cells; }

/// Number of floats of one array; it is the same on every rank, so that offsets are the same, too.
std::size_t array_floats(const Size& size, int ranks) {
  return static_cast<std::size_t>(slab_of(size, ranks, 0).planes + 2) * static_cast<std::size_t>(size.y) *
         static_cast<std::size_t>(padded_row(size));
}

std::vector<beeline::SymmetricArray<float>> allocate_arrays(beeline::World& world, const Size& size) {
  std::vector<beeline::SymmetricArray<float>> arrays;
  for (std::size_t i = 0; i < coefficient_arrays + pressure_buffers; ++i)
    arrays.emplace_back(world, array_floats(size, world.size()));
  return arrays;
}

Fields make_fields(const std::vector<beeline::SymmetricArray<float>>& arrays, const Size& size, const Slab& slab) {
  const auto at = [&](Array array) { return arrays[static_cast<std::size_t>(array)].data(); };
  Fields f{};
  f.a0 = at(Array::a0), f.a1 = at(Array::a1), f.a2 = at(Array::a2), f.a3 = at(Array::a3);
  f.b0 = at(Array::b0), f.b1 = at(Array::b1), f.b2 = at(Array::b2);
  f.c0 = at(Array::c0), f.c1 = at(Array::c1), f.c2 = at(Array::c2);
  f.bnd = at(Array::bnd), f.wrk1 = at(Array::wrk1);
  f.even = arrays[coefficient_arrays].data(), f.odd = arrays[coefficient_arrays + 1].data();
  f.x = size.x, f.y = size.y, f.row = padded_row(size), f.planes = slab.planes;
  return f;
}

Edges make_edges(const beeline::World& world, const Size& size, const Fields& f) {
  const auto peer_planes = [&](int peer) { return slab_of(size, world.size(), peer).planes; };
  const std::ptrdiff_t plane = f.plane();
  Edges edges{};
  edges.planes = f.planes;
  edges.plane = plane;
  edges.side[lower] = {beeline::no_peer, plane, 0, 0};
  edges.side[upper] = {beeline::no_peer, f.planes * plane, (f.planes + 1) * plane, 0};
  if (const int below = world.rank() - 1; below >= 0) {
    edges.side[lower].peer = static_cast<std::uint32_t>(below);
    edges.side[lower].theirs = (peer_planes(below) + 1) * plane;
  }
  if (const int above = world.rank() + 1; above < world.size())
    edges.side[upper].peer = static_cast<std::uint32_t>(above);
  return edges;
}

/// Threads of the largest launch on any rank.
std::size_t threads_at_most(beeline::World& world, const HostGrid& host) {
  constexpr std::size_t threads_per_multiprocessor = 2048;
  std::size_t most = 1;
  for (int rank = 0; rank < world.size(); ++rank) {
    const beeline::Device& device = world.device(rank);
    most =
        std::max(most, device.is_gpu() ? threads_per_multiprocessor * static_cast<std::size_t>(device.multiprocessors)
                                       : host.blocks * static_cast<std::size_t>(world.config().host_threads));
  }
  return most;
}

}  // namespace

Domain::Heaps Domain::heaps(const Size& size, int ranks) {
  constexpr std::size_t margin = std::size_t{16} << 20;  // sums, mailbox, signals, packets of small planes
  const std::size_t plane_bytes =
      static_cast<std::size_t>(padded_row(size)) * static_cast<std::size_t>(size.y) * sizeof(float);
  constexpr std::size_t staging_margin = std::size_t{64} << 10;
  return {(coefficient_arrays + pressure_buffers) * array_floats(size, ranks) * sizeof(float) + margin,
          static_cast<std::size_t>(ranks) * (plane_bytes + staging_margin) + margin};
}

Domain::Domain(beeline::World& world, const Size& size, const HostGrid& host)
    : world_(world), size_(size), host_(host), slab_(slab_of(size, world.size(), world.rank())),
      arrays_(allocate_arrays(world, size)), thread_sums_(world, threads_at_most(world, host)),
      block_sums_(world, 2 * max_blocks), arrived_(world, static_cast<std::size_t>(world.size())),
      mailbox_words_(world, mailbox_slots * static_cast<std::size_t>(world.size()) * 2),
      total_(world, 1, beeline::Heap::pinned) {
  fields_ = make_fields(arrays_, size_, slab_);
  edges_ = make_edges(world_, size_, fields_);
  sums_ = {thread_sums_.data(), block_sums_.data()};
  mailbox_ = {mailbox_words_.data(), arrived_.data(), total_.data()};
}

void Domain::fill(Array array, float* values, Data data) {
  const Shape launch_shape = shape<Fill, float*, Array, Data, Size, int, int, int>();
  beeline::launch(world_, {.blocks = launch_shape.blocks, .threads = launch_shape.threads}, Fill{}, values, array, data,
                  size_, fields_.row, slab_.first - 1, slab_.planes + 2);
}

void Domain::reset(Data data) {
  world_.barrier();  // no peer's halo is still in flight to this rank
  if (coefficients_ != data)
    for (std::uint32_t array = 0; array < coefficient_arrays; ++array)
      fill(static_cast<Array>(array), arrays_[array].data(), data);
  coefficients_ = data;
  fill(Array::p, fields_.even, data);
  fill(Array::p, fields_.odd, data);
  world_.stream().fill(sums_.blocks, 0, block_sums_.bytes());
  world_.synchronize();
  world_.barrier();
}

std::uint64_t Domain::take_tags(int iterations) {
  const std::uint64_t first = next_tag_;
  next_tag_ += static_cast<std::uint64_t>(iterations);
  beeline::require(next_tag_ >> 32 == 0, beeline::Status::no_resource, "more than 2^32 iterations in one program");
  return first;
}

std::vector<float> Domain::gather(int iteration) {
  world_.barrier();
  std::vector<float> whole;
  if (world_.rank() == 0) {
    whole.resize(size_.points());
    const std::size_t row = static_cast<std::size_t>(fields_.row), plane = static_cast<std::size_t>(fields_.plane());
    const std::size_t x = static_cast<std::size_t>(size_.x), y = static_cast<std::size_t>(size_.y);
    std::vector<float> part;
    for (int rank = 0; rank < world_.size(); ++rank) {
      // Each rank's interior planes; for the outermost ranks also the grid's boundary planes.
      const Slab slab = slab_of(size_, world_.size(), rank);
      const int before = rank == 0 ? 1 : 0, after = rank == world_.size() - 1 ? 1 : 0;
      const auto planes = static_cast<std::size_t>(slab.planes + before + after);
      part.resize(planes * plane);
      world_.copy(part.data(), world_.at(fields_.pressure(iteration), rank) + (1 - before) * fields_.plane(),
                  part.size() * sizeof(float));
      float* out = whole.data() + static_cast<std::size_t>(slab.first - before) * x * y;
      for (std::size_t line = 0; line < planes * y; ++line)
        std::memcpy(out + line * x, part.data() + line * row, x * sizeof(float));
    }
  }
  world_.barrier();
  return whole;
}

std::array<Planes, 2> Domain::halves() const {
  const Planes all = all_planes();
  const int middle = (all.first + all.last) / 2;
  const Planes top{middle, all.last}, bottom{all.first, middle};
  const bool top_first = world_.rank() % 2 == 0;
  return {top_first ? top : bottom, top_first ? bottom : top};
}

Shape Domain::clamped(unsigned blocks) { return {std::clamp(blocks, 1u, max_blocks), gpu_threads}; }

Tiling Domain::tiling(unsigned blocks, int planes) const {
  const unsigned vectors = static_cast<unsigned>(fields_.row / vector_cells) * static_cast<unsigned>(fields_.y - 2);
  // CPU threads walk through memory in order; GPU threads keep three planes in registers.
  const bool gpu = world_.device().is_gpu();
  if (!gpu && host_.tile_vectors == 0) return {vectors, 1, 1, 1};
  const unsigned tile_vectors = gpu ? gpu_threads : host_.tile_vectors;
  Tiling best{tile_vectors, (vectors + tile_vectors - 1) / tile_vectors, 1, std::max(planes, 1)};
  double best_score = 0;
  for (int chunks = 1; chunks <= planes; ++chunks) {
    const unsigned items = best.tiles * static_cast<unsigned>(chunks);
    const unsigned rounds = (items + blocks - 1) / blocks;
    // Score: the share of the blocks that have work, times the share of loads that are not for the two extra planes of
    // p that a chunk loads.
    constexpr double cost_of_start = 0.5;
    const double depth = static_cast<double>(planes) / chunks;
    const double score = items / (static_cast<double>(rounds) * blocks) * depth / (depth + cost_of_start);
    if (score > best_score) best_score = score, best.chunks = static_cast<unsigned>(chunks);
  }
  return best;
}

}  // namespace himeno
