// SPDX-License-Identifier: Apache-2.0
#include "collectives/vectors.hpp"

#include <cstring>

#include "beeline/device/atomic.hpp"
#include "beeline/device/grid.hpp"
#include "beeline/host/launch.hpp"
#include "harness/random.hpp"

namespace beeline::bench {

namespace {

[[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t small_random(std::uint64_t seed, std::uint64_t index,
                                                             std::uint32_t rank) {
  return static_cast<std::uint32_t>(random_word(seed, index * max_ranks + rank) >> 62);
}

template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE T element_of(std::uint32_t value) {
  using Traits = beeline::detail::ElementTraits<T>;
  return Traits::narrow(static_cast<typename Traits::Accumulator>(value));
}

/// The element's bits, which are compared as a whole.
template <class T>
[[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t bits_of(T element) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &element, sizeof element);
  return bits;
}

template <class T>
struct FillVector {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, T* vector, std::uint64_t count,
                                      std::uint64_t seed) const {
    for (std::uint64_t i = grid.thread_rank(); i < count; i += grid.size())
      vector[i] = element_of<T>(small_random(seed, i, ctx.rank));
  }
};

template <class T>
struct CheckVector {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, const T* vector, std::uint64_t count,
                                      std::uint32_t pieces, std::uint64_t seed, Expectation expected,
                                      std::uint64_t* wrong) const {
    std::uint64_t mismatches = 0;
    for (std::uint32_t piece = 0; piece < pieces; ++piece) {
      const std::uint32_t first = expected.first + piece * expected.next_rank;
      for (std::uint64_t i = grid.thread_rank(); i < count; i += grid.size()) {
        const std::uint64_t from = expected.source_piece * count + i;
        std::uint32_t sum = 0;
        for (std::uint32_t k = 0; k < expected.ranks; ++k) sum += small_random(seed, from, first + k);
        if (bits_of(vector[piece * count + i]) != bits_of(element_of<T>(sum))) ++mismatches;
      }
    }
    add_to(wrong, mismatches);
  }
};

LaunchOptions shape(const World& world) {
  return world.device().is_gpu() ? LaunchOptions{.blocks = 512, .threads = 512} : LaunchOptions{};
}

/// Calls `use` with a null pointer to elements of the type.
template <class Use>
void with_type(ElementType type, Use use) {
  switch (type) {
    case ElementType::float32:
      return use(static_cast<float*>(nullptr));
    case ElementType::bfloat16:
      return use(static_cast<BFloat16*>(nullptr));
    default:
      throw Error(Status::invalid_argument, std::string("collectives of ") + name(type) + " are not measured");
  }
}

}  // namespace

void VectorCheck::fill(void* vector, std::size_t count, ElementType type, std::uint64_t seed) {
  World& world = bench_.world();
  with_type(type, [&]<class T>(T*) {
    launch(world, shape(world), FillVector<T>{}, static_cast<T*>(vector), std::uint64_t{count}, seed);
  });
  world.synchronize();
}

void VectorCheck::spoil(void* vector, std::size_t bytes) {
  World& world = bench_.world();
  world.stream().fill(vector, 0xff, bytes);
  world.synchronize();
}

bool VectorCheck::holds(const VectorPair& vectors, std::uint32_t pieces, std::uint64_t seed,
                        const Expectation& expectation) {
  World& world = bench_.world();
  return wrong_.after([&](std::uint64_t* wrong) {
    with_type(vectors.type, [&]<class T>(T*) {
      launch(world, shape(world), CheckVector<T>{}, static_cast<const T*>(vectors.destination),
             std::uint64_t{vectors.count}, pieces, seed, expectation, wrong);
    });
  }) == 0;
}

}  // namespace beeline::bench
