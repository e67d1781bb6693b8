// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include <algorithm>

#include "beeline/hpe/launch.hpp"
#include "problem.hpp"

namespace fft {

namespace {

constexpr unsigned threads_of_block = 256;

/// Two elements, which a thread loads and stores at once.
struct alignas(16) Pair {
  Complex first, second;
};

/// An element of a step between devices.
///   i  its number in the device's part
BEELINE_HOST_DEVICE inline Complex butterfly(Complex a, Complex b, const Share& share, std::size_t i) {
  return share.is_upper ? (a - b) * root_of_unity(share.first + i, share.log_length) : a + b;
}

struct Butterflies {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, Pair* out, const Pair* lower, const Pair* upper, Share share) const {
    for (std::size_t i = grid.thread_rank(); i < share.count / 2; i += grid.size())
      out[i] = {butterfly(lower[i].first, upper[i].first, share, 2 * i),
                butterfly(lower[i].second, upper[i].second, share, 2 * i + 1)};
  }
};

/// e^(-2 pi i * number / all), number below all / 2, all at most 32.
template <unsigned all>
BEELINE_HOST_DEVICE inline Complex constant_root(unsigned number) {
  constexpr float cosines[] = {1,           0.98078528f, 0.92387953f,
                               0.83146961f, 0.70710678f, 0.55557023f,
                               0.38268343f, 0.19509032f, 0};  // of multiples of 2 pi / 32
  const unsigned n = number * (32 / all);
  return n <= 8 ? Complex{cosines[n], -cosines[8 - n]} : Complex{-cosines[16 - n], -cosines[n - 8]};
}

/// log2(all) steps of a transform of 2^log_length elements on those of its elements that they combine.
///   elements  `index`, and those that follow it, 1 / all of the length apart
template <unsigned all>
BEELINE_HOST_DEVICE inline void split(Complex (&elements)[all], std::size_t index, unsigned log_length) {
  BEELINE_UNROLL
  for (unsigned half = all / 2; half > 0; half /= 2, --log_length) {
    const Complex root = root_of_unity(index, log_length);
    BEELINE_UNROLL
    for (unsigned at = 0; at < all / 2; ++at) {
      const unsigned step = at % half, low = at / half * 2 * half + step;
      Complex &a = elements[low], &b = elements[low + half];
      const Complex difference = a - b;
      a = a + b;
      b = difference * (root * constant_root<all>(step * (all / 2 / half)));
    }
  }
}

template <unsigned all>
struct SplitButterflies {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, Complex* out, const Complex* lower, const Complex* upper,
                                      Share share) const {
    const std::size_t count = share.count / all;  // of a sub-part
    for (std::size_t i = grid.thread_rank(); i < count; i += grid.size()) {
      Complex a[all], b[all];
      BEELINE_UNROLL
      for (unsigned s = 0; s < all; ++s) a[s] = lower[i + s * count], b[s] = upper[i + s * count];
      BEELINE_UNROLL
      for (unsigned s = 0; s < all; ++s) a[s] = butterfly(a[s], b[s], share, i + s * count);
      split<all>(a, i, share.log_length - 1);
      BEELINE_UNROLL
      for (unsigned s = 0; s < all; ++s) out[i + s * count] = a[s];
    }
  }
};

/// Elements that stay in a block's memory while they are split: `splits_inside` rows, whose elements are neighbours.
struct Tile {
  Complex elements[splits_inside * columns_inside];
  BEELINE_HOST_DEVICE Complex& at(unsigned row, unsigned column) { return elements[row * columns_inside + column]; }
};

/// Splits by 16, and then splits each of the 16 by 16 again.
struct SplitsInside {
  static constexpr unsigned log_all = 4, all = 1 << log_all;
  static_assert(all * all == splits_inside);

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, Complex* elements, std::size_t transforms,
                                      unsigned log_length) const {
#if BEELINE_ON_GPU
    __shared__ Tile tile;
#else
    Tile tile;
#endif
    const auto& block = grid.block();
    const std::size_t row = (std::size_t{1} << log_length) / splits_inside, tiles = row / columns_inside;
    for (std::size_t i = grid.block_rank(); i < tiles * transforms; i += grid.blocks()) {
      const std::size_t first = i % tiles * columns_inside;
      Complex* const from = elements + (i / tiles << log_length) + first;
      for (unsigned item = block.thread_rank(); item < all * columns_inside; item += block.size()) {
        const unsigned at = item / columns_inside, column = item % columns_inside;
        Complex a[all];
        BEELINE_UNROLL
        for (unsigned s = 0; s < all; ++s) a[s] = from[(at + all * s) * row + column];
        split<all>(a, at * row + first + column, log_length);
        BEELINE_UNROLL
        for (unsigned s = 0; s < all; ++s) tile.at(at + all * s, column) = a[s];
      }
      block.sync();
      for (unsigned item = block.thread_rank(); item < all * columns_inside; item += block.size()) {
        const unsigned at = item / columns_inside, column = item % columns_inside;
        Complex a[all];
        BEELINE_UNROLL
        for (unsigned s = 0; s < all; ++s) a[s] = tile.at(at * all + s, column);
        split<all>(a, first + column, log_length - log_all);
        BEELINE_UNROLL
        for (unsigned s = 0; s < all; ++s) from[(at * all + s) * row + column] = a[s];
      }
      block.sync();
    }
  }
};

struct Pass {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, Complex* out, const Complex* in, const Complex* roots,
                                      std::size_t count, std::size_t transforms, std::size_t stride) const {
    for (std::size_t at = grid.thread_rank(); at < transforms * count / 2; at += grid.size()) {
      const std::size_t i = at & (count / 2 - 1), first = 2 * (at - i);  // of its transform
      const std::size_t group = i & (0 - stride);                        // of butterflies with the same root
      const Complex a = in[first + i], b = in[first + i + count / 2];
      out[first + i + group] = a + b;
      out[first + i + group + stride] = (a - b) * roots[group];
    }
  }
};

struct FillRoots {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, Complex* roots, unsigned log_length) const {
    const std::size_t count = std::size_t{1} << log_length >> 1;
    for (std::size_t i = grid.thread_rank(); i < count; i += grid.size()) roots[i] = root_of_unity(i, log_length);
  }
};

struct FillWithInitialElements {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, Complex* out, std::size_t first, std::size_t count) const {
    for (std::size_t i = grid.thread_rank(); i < count; i += grid.size()) out[i] = initial_element(first + i);
  }
};

struct CopyPairs {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, Pair* out, const Pair* in, std::size_t count) const {
    for (std::size_t i = grid.thread_rank(); i < count / 2; i += grid.size()) out[i] = in[i];
  }
};

Pair* pairs(Complex* elements) { return reinterpret_cast<Pair*>(elements); }
const Pair* pairs(const Complex* elements) { return reinterpret_cast<const Pair*>(elements); }

beeline::LaunchOptions options_for(const beeline::hpe::Stream& stream, std::size_t items) {
  constexpr std::size_t most_blocks = 4096;
  return apps::launch_options(stream, std::min(items / threads_of_block, most_blocks), threads_of_block);
}

}  // namespace

void enqueue_butterflies(beeline::hpe::Stream& stream, Complex* out, const Complex* lower, const Complex* upper,
                         const Share& share) {
  beeline::hpe::launch(stream, options_for(stream, share.count / 2), Butterflies{}, pairs(out), pairs(lower),
                       pairs(upper), share);
}

void enqueue_split_butterflies(beeline::hpe::Stream& stream, Complex* out, const Complex* lower, const Complex* upper,
                               const Share& share) {
  const auto enqueue = [&]<unsigned all>(const SplitButterflies<all>& kernel) {
    beeline::hpe::launch(stream, options_for(stream, share.count / all), kernel, out, lower, upper, share);
  };
  if (stream.device().is_gpu())
    enqueue(SplitButterflies<splits_of_exchange(true)>{});
  else
    enqueue(SplitButterflies<splits_of_exchange(false)>{});
}

void enqueue_splits_inside(beeline::hpe::Stream& stream, Complex* elements, std::size_t transforms,
                           unsigned log_length) {
  beeline::hpe::launch(stream, options_for(stream, (transforms << log_length) / SplitsInside::all), SplitsInside{},
                       elements, transforms, log_length);
}

void enqueue_pass(beeline::hpe::Stream& stream, Complex* out, const Complex* in, const Complex* roots,
                  std::size_t count, std::size_t transforms, std::size_t stride) {
  beeline::hpe::launch(stream, options_for(stream, transforms * count / 2), Pass{}, out, in, roots, count, transforms,
                       stride);
}

void enqueue_roots(beeline::hpe::Stream& stream, Complex* roots, unsigned log_length) {
  beeline::hpe::launch(stream, options_for(stream, std::size_t{1} << log_length >> 1), FillRoots{}, roots, log_length);
}

void enqueue_initial_elements(beeline::hpe::Stream& stream, Complex* out, std::size_t first, std::size_t count) {
  beeline::hpe::launch(stream, options_for(stream, count), FillWithInitialElements{}, out, first, count);
}

void enqueue_copy(beeline::hpe::Stream& stream, Complex* out, const Complex* in, std::size_t count) {
  beeline::hpe::launch(stream, options_for(stream, count / 2), CopyPairs{}, pairs(out), pairs(in), count);
}

}  // namespace fft
