// SPDX-License-Identifier: Apache-2.0
#include "making.hpp"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace random_access {

namespace {

/// How far ahead words are prefetched, and the numbers that have arrived, which are still in the cache of the core that
/// has sent them. Measured on Intel Xeon.
constexpr std::uint64_t words_ahead = 16, numbers_ahead = 128;
/// How far ahead boxes are prefetched, which the owner's core has read: its cache gives them up before they are
/// written.
constexpr std::uint64_t stores_ahead = 32;
constexpr int to_write = 1;

/// The words of a rank whose position is the low bits of a number: of a power of two of ranks.
class PlainWords {
 public:
  explicit PlainWords(const Target& target)
      : words_(target.words), mask_((target.layout.words() >> target.layout.rank_shift) - 1) {}
  [[nodiscard]] std::uint64_t* operator()(std::uint64_t number) const { return words_ + (number & mask_); }

 private:
  std::uint64_t* words_;
  std::uint64_t mask_;
};
/// The words of a rank among any number of ranks.
class AnyWords {
 public:
  explicit AnyWords(const Target& target) : target_(target) {}
  [[nodiscard]] std::uint64_t* operator()(std::uint64_t number) const {
    return target_.own(target_.layout.index_of(number));
  }

 private:
  Target target_;
};

[[nodiscard]] bool has_plain_words(const Layout& layout) { return layout.rank_shift >= 0; }

/// Prefetches a word that is changed soon.
template <class Words>
void prefetch(const Words& word, std::uint64_t number) {
  __builtin_prefetch(word(number), to_write);
}

/// Prefetches the first numbers, and their words.
template <class Words>
void prefetch_first(const Words& word, Numbers arrived) {
  prefetch_numbers(arrived);
  for (std::uint64_t i = 0; i < std::min(words_ahead, arrived.count); ++i) prefetch(word, arrived.first[i]);
}

template <class Words>
void apply_to(const Words& word, Numbers arrived) {
  const std::uint64_t* const numbers = arrived.first;
  prefetch_first(word, arrived);
  for (std::uint64_t i = 0; i < arrived.count; ++i) {
    if (i % 8 == 0) __builtin_prefetch(numbers + i + numbers_ahead);
    if (i + words_ahead < arrived.count) prefetch(word, numbers[i + words_ahead]);
    *word(numbers[i]) ^= numbers[i];
  }
}

#if defined(__x86_64__)

/// Most ranks whose numbers are sorted by vectors, which takes a few instructions for each rank.
constexpr std::uint32_t most_ranks_of_vectors = 8;

[[nodiscard]] bool sorts_by_vectors(const Layout& layout) {
  static const bool has_vectors = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  return has_vectors && has_plain_words(layout) && layout.ranks <= most_ranks_of_vectors;
}

[[nodiscard]] long long from(std::uint64_t number) { return static_cast<long long>(number); }

/// As `make_and_apply`, in steps of eight numbers. Applies a number `words_ahead` numbers after it has prefetched its
/// word, so that the first words arrive while numbers are made. Keeps the numbers in registers: a load of what was
/// just stored would wait for earlier stores, which go to other cores.
///   count    a multiple of 8, at most `arrived.count` unless that is 0
[[gnu::target("avx512f,avx512dq,popcnt,prfchw")]] std::uint64_t make_eights(std::uint64_t** ends, const Target& target,
                                                                            std::uint64_t number, std::uint64_t count,
                                                                            Numbers arrived) {
  const Layout layout = target.layout;
  const PlainWords word(target);
  const std::uint64_t* const numbers_of = arrived.first;
  const bool applies = arrived.count != 0;
  std::uint64_t one[9] = {number};
  for (int i = 0; i < 8; ++i) one[i + 1] = next_number(one[i]);
  __m512i numbers = _mm512_set_epi64(from(one[8]), from(one[7]), from(one[6]), from(one[5]), from(one[4]), from(one[3]),
                                     from(one[2]), from(one[1]));
  __m512i last = numbers;
  const unsigned shift = layout.bits - static_cast<unsigned>(layout.rank_shift);
  const __m512i last_rank = _mm512_set1_epi64(layout.ranks - 1);
  if (applies) prefetch_numbers(arrived);
  for (std::uint64_t i = 0; i < count; i += 8) {
    if (applies) {
      __builtin_prefetch(numbers_of + i + numbers_ahead);
      for (std::uint64_t j = i; j < i + 8; ++j) prefetch(word, numbers_of[j]);
    }
    const __m512i owners = _mm512_and_si512(_mm512_srli_epi64(numbers, shift), last_rank);
    for (std::uint32_t rank = 0; rank < layout.ranks; ++rank) {
      const __mmask8 chosen = _mm512_cmpeq_epi64_mask(owners, _mm512_set1_epi64(rank));
      _mm512_storeu_si512(ends[rank], _mm512_maskz_compress_epi64(chosen, numbers));
      __builtin_prefetch(ends[rank] + stores_ahead, to_write);
      ends[rank] += __builtin_popcount(chosen);
    }
    if (applies && i >= words_ahead)
      for (std::uint64_t j = i - words_ahead; j < i - words_ahead + 8; ++j) *word(numbers_of[j]) ^= numbers_of[j];
    last = numbers;
    // Each is multiplied by x^8: the 8 bits that leave the word are multiplied by the polynomial, x^2 + x + 1.
    const __m512i high = _mm512_srli_epi64(numbers, 56);
    numbers = _mm512_xor_si512(_mm512_slli_epi64(numbers, 8), high);
    numbers = _mm512_xor_si512(numbers, _mm512_xor_si512(_mm512_slli_epi64(high, 1), _mm512_slli_epi64(high, 2)));
  }
  if (applies) {
    const Numbers rest{numbers_of + count, arrived.count - count};
    prefetch_first(word, rest);
    for (std::uint64_t j = count > words_ahead ? count - words_ahead : 0; j < count; ++j)
      *word(numbers_of[j]) ^= numbers_of[j];
    apply_to(word, rest);
  }
  return static_cast<std::uint64_t>(_mm_extract_epi64(_mm512_extracti64x2_epi64(last, 3), 1));
}

#endif

}  // namespace

std::uint64_t make_and_apply(std::uint64_t** ends, const Target& target, std::uint64_t number, std::uint64_t count,
                             Numbers arrived) {
  const Target own = target;  // a copy: the compiler assumes that stores of numbers may change the original
  const Layout layout = own.layout;
  std::uint64_t made = 0;
  Numbers rest = arrived;
#if defined(__x86_64__)
  const auto by_vectors = [&](std::uint64_t some, Numbers of_arrived) {
    if (some == 0) return;
    number = make_eights(ends, own, number, some, of_arrived);
    made += some;
  };
  if (sorts_by_vectors(layout)) {
    by_vectors(std::min(count, arrived.count) / 8 * 8, arrived);
    if (made != 0) rest.count = 0;
    by_vectors((count - made) / 8 * 8, {nullptr, 0});
  }
#endif
  for (; made < count; ++made) {
    number = next_number(number);
    *ends[layout.owner(layout.index_of(number))]++ = number;
  }
  apply_alone(own, rest);
  return number;
}

void prefetch_numbers(Numbers arrived) {
  for (std::uint64_t i = 0; i < std::min(numbers_ahead, arrived.count); i += 8) __builtin_prefetch(arrived.first + i);
}

void apply_alone(const Target& target, Numbers arrived) {
  if (has_plain_words(target.layout))
    apply_to(PlainWords(target), arrived);
  else
    apply_to(AnyWords(target), arrived);
}

}  // namespace random_access
