// SPDX-License-Identifier: Apache-2.0
#include "graph.hpp"

#include <algorithm>
#include <chrono>

#include "beeline/device/impl/atomic_word.hpp"
#include "common/program.hpp"
#include "memory.hpp"

namespace breadth_first {

namespace {

using beeline::machine::DeviceAtomic;
using Counter = DeviceAtomic<std::uint32_t>;

constexpr std::uint64_t run_edges = 32;  ///< edges that a thread generates, one after the other

struct Generate {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, const Kronecker* graph, Edge* edges,
                                      std::uint64_t first, std::uint64_t count) const {
    for (std::uint64_t begin = grid.thread_rank() * run_edges; begin < count; begin += grid.size() * run_edges) {
      Random state = graph->state_of(first + begin);
      const std::uint64_t end = begin + run_edges < count ? begin + run_edges : count;
      for (std::uint64_t i = begin; i < end; ++i) {
        edges[i] = graph->edge(state);
        state = graph->skip[0].from(state);
      }
    }
  }
};

struct CountDegrees {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, const Edge* edges, std::uint64_t count,
                                      std::uint32_t* degrees) const {
    for (std::uint64_t i = grid.thread_rank(); i < count; i += grid.size()) {
      const Edge edge = edges[i];
      if (edge.from == edge.to) continue;
      Counter(degrees[edge.from]).fetch_add(1, std::memory_order_relaxed);
      Counter(degrees[edge.to]).fetch_add(1, std::memory_order_relaxed);
    }
  }
};

/// Appends the ends of edges to the rows of this rank's vertices.
struct Fill {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, const Edge* edges, std::uint64_t count,
                                      const std::uint32_t* positions, Rows rows, std::uint32_t* neighbours,
                                      std::uint32_t* ends) const {
    const std::uint32_t first = rows.position_of(0);
    for (std::uint64_t i = grid.thread_rank(); i < count; i += grid.size()) {
      const Edge edge = edges[i];
      if (edge.from == edge.to) continue;
      const std::uint32_t from = positions[edge.from], to = positions[edge.to];
      if (from - first < rows.per_rank)
        neighbours[Counter(ends[from - first]).fetch_add(1, std::memory_order_relaxed)] = to;
      if (to - first < rows.per_rank)
        neighbours[Counter(ends[to - first]).fetch_add(1, std::memory_order_relaxed)] = from;
    }
  }
};

/// Moves the neighbours of the largest degrees to the front of each row: a search from below that looks at them first
/// seldom looks further. Very long rows stay as they are, since such vertices are found at once.
struct BringForward {
  static constexpr std::uint32_t leaders = 4, most = 4096;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, Rows rows, std::uint32_t* neighbours,
                                      std::uint32_t* first) const {
    for (std::uint32_t local = grid.thread_rank(); local < rows.per_rank; local += grid.size()) {
      const std::uint32_t begin = rows.begins[local], end = rows.begins[local + 1];
      first[local] = no_vertex;
      if (begin == end) continue;
      if (end - begin <= most)
        for (std::uint32_t to = begin; to < end && to < begin + leaders; ++to) bring(rows, neighbours, to, end);
      first[local] = neighbours[begin];
    }
  }
  BEELINE_HOST_DEVICE static void bring(const Rows& rows, std::uint32_t* neighbours, std::uint32_t to,
                                        std::uint32_t end) {
    std::uint32_t best = to;
    for (std::uint32_t i = to + 1; i < end; ++i)
      if (neighbours[i] % rows.per_rank < neighbours[best] % rows.per_rank) best = i;
    const std::uint32_t leader = neighbours[best];
    neighbours[best] = neighbours[to];
    neighbours[to] = leader;
  }
};

struct NameParents {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, Rows rows) const {
    for (std::uint32_t local = grid.thread_rank(); local < rows.per_rank; local += grid.size())
      if (const std::uint32_t parent = rows.parents[local]; parent != no_vertex)
        rows.parents[local] = rows.labels[parent];
  }
};

struct SumDegrees {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context&, Rows rows, std::uint64_t* sum) const {
    std::uint64_t mine = 0;
    for (std::uint32_t local = grid.thread_rank(); local < rows.per_rank; local += grid.size())
      if (rows.parents[local] != no_vertex) mine += rows.begins[local + 1] - rows.begins[local];
    if (mine != 0) DeviceAtomic<std::uint64_t>(*sum).fetch_add(mine, std::memory_order_relaxed);
  }
};

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Graph::Graph(beeline::World& world, int scale, const RowLimits& limits)
    : world_(world), limits_(limits), kronecker_(make_kronecker(scale)),
      collectives_(std::make_unique<beeline::Collectives>(world, beeline::CollectiveOptions{.engine_bytes = 0})),
      sum_(array<std::uint64_t>(1)) {
  world_.barrier();
  const Stopwatch generation;
  generate();
  generation_seconds_ = world_.allreduce(generation.seconds(), beeline::Reduction::maximum);
  const Stopwatch construction;
  count_degrees();
  upload_order();
  make_rows();
  construction_seconds_ = world_.allreduce(construction.seconds(), beeline::Reduction::maximum);
}

void Graph::generate() {
  const std::uint64_t edges = kronecker_.edges(),
                      share = edges_of_rank(edges, static_cast<std::uint64_t>(world_.size()));
  const std::uint64_t first = std::min(edges, share * static_cast<std::uint64_t>(world_.rank()));
  edge_count_ = std::min(share, edges - first);
  edges_ = array<Edge>(share);
  const auto generator = array<Kronecker>(1);
  world_.copy(generator->data(), &kronecker_, sizeof kronecker_);
  apps::Progress progress(world_, "generation", pieces());
  in_pieces([&](std::uint64_t begin, std::uint64_t count) {
    launch_over(world_, count / run_edges + 1, Generate{}, generator->data(), edges_->data() + begin, first + begin,
                count);
    world_.synchronize();
    progress.advance();
  });
}

int Graph::pieces() const { return static_cast<int>((edges_->count() + piece_edges - 1) / piece_edges); }

void Graph::in_pieces(const std::function<void(std::uint64_t first, std::uint64_t count)>& work) {
  for (std::uint64_t first = 0; first < edges_->count(); first += piece_edges) {
    work(first, first < edge_count_ ? std::min(piece_edges, edge_count_ - first) : 0);
    world_.barrier();
  }
}

void Graph::count_degrees() {
  const auto degrees = array<std::uint32_t>(kronecker_.vertices());
  in_pieces([&](std::uint64_t begin, std::uint64_t count) {
    launch_over(world_, count, CountDegrees{}, edges_->data() + begin, count, degrees->data());
    world_.synchronize();
  });
  collectives_->allreduce(*degrees);
  std::vector<std::uint32_t> copy(degrees->count());
  world_.copy(copy.data(), degrees->data(), degrees->bytes());
  order_vertices(copy);
}

void Graph::order_vertices(const std::vector<std::uint32_t>& degrees) {
  order_ = order_of(degrees, static_cast<std::uint32_t>(world_.size()));
  // Rows of this rank, and the degree of the first vertex of each word.
  std::vector<std::uint32_t> begins(std::size_t{order_.per_rank} + 1), word_degrees(order_.labels.size() / 32);
  const auto degree_at = [&](std::size_t position) {
    const std::uint32_t label = order_.labels[position];
    return label == no_vertex ? 0 : degrees[label];
  };
  const std::size_t own = std::size_t{order_.per_rank} * static_cast<std::size_t>(world_.rank());
  std::uint64_t end = 0;
  rows_.of_grid = rows_.of_block = 0;
  for (std::uint32_t local = 0; local < order_.per_rank; ++local) {
    const std::uint32_t degree = degree_at(own + local);
    begins[local + 1] = static_cast<std::uint32_t>(end += degree);
    if (degree > limits_.of_grid) rows_.of_grid = local / 32 * 32 + 32;
    if (degree > limits_.of_block) rows_.of_block = local / 32 * 32 + 32;
  }
  for (std::size_t word = 0; word < word_degrees.size(); ++word) word_degrees[word] = degree_at(32 * word);
  const std::uint64_t most = world_.allreduce(end, beeline::Reduction::maximum);
  require_room(kronecker_.scale, world_.size(), most);
  begins_ = array<std::uint32_t>(begins.size());
  world_.copy(begins_->data(), begins.data(), begins_->bytes());
  word_degrees_ = array<std::uint32_t>(word_degrees.size());
  world_.copy(word_degrees_->data(), word_degrees.data(), word_degrees_->bytes());
  neighbours_ = array<std::uint32_t>(most);
}

void Graph::upload_order() {
  labels_ = array<std::uint32_t>(order_.labels.size());
  world_.copy(labels_->data(), order_.labels.data(), labels_->bytes());
  first_ = array<std::uint32_t>(order_.per_rank);
  parents_ = array<std::uint32_t>(order_.per_rank);
  rows_.ranks = order_.ranks, rows_.rank = static_cast<std::uint32_t>(world_.rank());
  rows_.per_rank = order_.per_rank, rows_.words = order_.per_rank / 32;
  rows_.begins = begins_->data(), rows_.neighbours = neighbours_->data(), rows_.first = first_->data();
  rows_.labels = labels_->data(), rows_.word_degrees = word_degrees_->data(), rows_.parents = parents_->data();
  rows_.inverse = (std::uint64_t{1} << 53) / order_.per_rank + 1;
  rows_.entries = order_.entries;
}

void Graph::make_rows() {
  const auto ends = array<std::uint32_t>(begins_->count());
  world_.copy(ends->data(), begins_->data(), ends->bytes());
  fill_rows(ends->data());
  launch_over(world_, order_.per_rank, BringForward{}, rows_, neighbours_->data(), first_->data());
  world_.synchronize();
  world_.barrier();
}

void Graph::fill_rows(std::uint32_t* ends) {
  const auto positions = array<std::uint32_t>(order_.positions.size());
  world_.copy(positions->data(), order_.positions.data(), positions->bytes());
  const auto fill = [&](const Edge* edges, std::uint64_t count) {
    launch_over(world_, count, Fill{}, edges, count, positions->data(), rows_, neighbours_->data(), ends);
    world_.synchronize();
  };
  const std::uint64_t share = edges_->count(), edges = kronecker_.edges();
  const auto staged = array<Edge>(std::min(share, piece_edges));
  apps::Progress progress(world_, "rows", pieces());
  in_pieces([&](std::uint64_t begin, std::uint64_t count) {
    fill(edges_->data() + begin, count);
    for (int step = 1; step < world_.size(); ++step) {
      const int peer = (world_.rank() + step) % world_.size();
      const std::uint64_t first = std::min(edges, share * static_cast<std::uint64_t>(peer));
      const std::uint64_t theirs = std::min(share, edges - first), rest = theirs - std::min(begin, theirs);
      const std::uint64_t some = std::min(piece_edges, rest);
      if (some == 0) continue;
      world_.copy(staged->data(), edges_->at(peer) + begin, some * sizeof(Edge));
      fill(staged->data(), some);
    }
    progress.advance();
  });
}

void Graph::name_parents() {
  launch_over(world_, rows_.per_rank, NameParents{}, rows_);
  world_.synchronize();
}

std::uint64_t Graph::edges_of_tree() {
  std::uint64_t sum = 0;
  world_.copy(sum_->data(), &sum, sizeof sum);
  launch_over(world_, rows_.per_rank, SumDegrees{}, rows_, sum_->data());
  world_.synchronize();
  world_.copy(&sum, sum_->data(), sizeof sum);
  return world_.allreduce(sum) / 2;
}

}  // namespace breadth_first
