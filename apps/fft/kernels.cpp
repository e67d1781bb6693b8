// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include <algorithm>

#include "beeline/hpe/launch.hpp"
#include "problem.hpp"

namespace fft {

namespace {

/// Two elements, which a thread loads and stores at once.
struct alignas(16) Pair {
  Complex first, second;
};

/// Two neighbouring elements of a step between devices.
///   i  number of the pair in the device's part
BEELINE_HOST_DEVICE inline Pair butterfly(const Pair& a, const Pair& b, const Share& share, std::size_t i) {
  if (!share.is_upper) return {a.first + b.first, a.second + b.second};
  const std::size_t at = share.first + 2 * i;
  return {(a.first - b.first) * root_of_unity(at, share.log_length),
          (a.second - b.second) * root_of_unity(at + 1, share.log_length)};
}

struct Butterflies {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, Pair* out, const Pair* lower, const Pair* upper, Share share) const {
    for (std::size_t i = grid.thread_rank(); i < share.count / 2; i += grid.size())
      out[i] = butterfly(lower[i], upper[i], share, i);
  }
};

/// e^(-2 pi i * number / 8), number below 4.
BEELINE_HOST_DEVICE inline Complex eighth_root(unsigned number) {
  constexpr float diagonal = 0.70710678118654752f;
  return number == 0   ? Complex{1, 0}
         : number == 1 ? Complex{diagonal, -diagonal}
         : number == 2 ? Complex{0, -1}
                       : Complex{-diagonal, -diagonal};
}

/// Three steps of a transform of 2^log_length elements on those of its elements that they combine.
///   element  gives element `index`, and those that follow it an eighth of the length apart, by their number
template <class Element>
BEELINE_HOST_DEVICE inline void split(Element&& element, std::size_t index, unsigned log_length) {
  constexpr unsigned all = splits_of_a_step;
  BEELINE_UNROLL
  for (unsigned half = all / 2; half > 0; half /= 2, --log_length) {
    const Complex root = root_of_unity(index, log_length);
    BEELINE_UNROLL
    for (unsigned at = 0; at < all / 2; ++at) {
      const unsigned step = at % half, low = at / half * 2 * half + step;
      Complex &a = element(low), &b = element(low + half);
      const Complex difference = a - b;
      a = a + b;
      b = difference * (root * eighth_root(step * (all / 2 / half)));
    }
  }
}

struct SplitButterflies {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, Pair* out, const Pair* lower, const Pair* upper, Share share) const {
    constexpr unsigned all = splits_of_a_step;
    const std::size_t pairs = share.count / 2 / all;  // of a sub-part
    for (std::size_t i = grid.thread_rank(); i < pairs; i += grid.size()) {
      Pair a[all], b[all];
      BEELINE_UNROLL
      for (unsigned s = 0; s < all; ++s) a[s] = lower[i + s * pairs], b[s] = upper[i + s * pairs];
      BEELINE_UNROLL
      for (unsigned s = 0; s < all; ++s) a[s] = butterfly(a[s], b[s], share, i + s * pairs);
      split([&](unsigned s) -> Complex& { return a[s].first; }, 2 * i, share.log_length - 1);
      split([&](unsigned s) -> Complex& { return a[s].second; }, 2 * i + 1, share.log_length - 1);
      BEELINE_UNROLL
      for (unsigned s = 0; s < all; ++s) out[i + s * pairs] = a[s];
    }
  }
};

struct Pass {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, Complex* out, const Complex* in, const Complex* roots,
                                      std::size_t count, std::size_t stride) const {
    for (std::size_t i = grid.thread_rank(); i < count / 2; i += grid.size()) {
      const std::size_t group = i / stride * stride;  // of butterflies with the same root
      const Complex a = in[i], b = in[i + count / 2];
      out[i + group] = a + b;
      out[i + group + stride] = (a - b) * roots[group];
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
  constexpr std::size_t threads = 256, most_blocks = 4096;
  return apps::launch_options(stream, std::min(items / threads, most_blocks), threads);
}

}  // namespace

void enqueue_butterflies(beeline::hpe::Stream& stream, Complex* out, const Complex* lower, const Complex* upper,
                         const Share& share) {
  beeline::hpe::launch(stream, options_for(stream, share.count / 2), Butterflies{}, pairs(out), pairs(lower),
                       pairs(upper), share);
}

void enqueue_split_butterflies(beeline::hpe::Stream& stream, Complex* out, const Complex* lower, const Complex* upper,
                               const Share& share) {
  beeline::hpe::launch(stream, options_for(stream, share.count / 2 / splits_of_a_step), SplitButterflies{}, pairs(out),
                       pairs(lower), pairs(upper), share);
}

void enqueue_pass(beeline::hpe::Stream& stream, Complex* out, const Complex* in, const Complex* roots,
                  std::size_t count, std::size_t stride) {
  beeline::hpe::launch(stream, options_for(stream, count / 2), Pass{}, out, in, roots, count, stride);
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
