// SPDX-License-Identifier: Apache-2.0
// Reductions of NaNs, infinities, signed zeros, and numbers whose sum overflows: results follow IEEE 754 and are the
// same on all ranks, for every float type and by every algorithm.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/conformance/collective_calls.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/conformance/vectors.hpp"

namespace beeline_test::special_value_cases {

namespace {

using namespace beeline;

struct FloatType {
  ElementType type;
  unsigned mantissa_bits;
  double largest;
};
constexpr FloatType float_types[] = {
    {ElementType::float16, 10, 65504.0},
    {ElementType::bfloat16, 7, 0x1.fep127},
    {ElementType::float32, 23, std::numeric_limits<float>::max()},
    {ElementType::float64, 52, std::numeric_limits<double>::max()},
};
constexpr Reduction float_reductions[] = {Reduction::sum, Reduction::product, Reduction::minimum, Reduction::maximum,
                                          Reduction::average};

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::array specials = {1.0, -2.0, 0.0, -0.0, infinity, -infinity, nan, -nan};
/// All combinations of three ranks' values, and the largest number.
constexpr std::size_t combinations = specials.size() * specials.size() * specials.size(), count = combinations + 1;

/// The reduction of a call, in which `ranks` ranks take part.
struct SpecialCall {
  FloatType element;
  Reduction reduction;
  int ranks;
};

double element_of(const SpecialCall& call, int rank, std::size_t index) {
  if (index == combinations) return call.element.largest;
  for (int digit = 0; digit < rank % 3; ++digit) index /= specials.size();
  const double value = specials[index % specials.size()];
  return call.reduction == Reduction::average ? value * call.ranks : value;  // the average is exact, too
}

template <class Wide>
Wide combine(Reduction reduction, Wide a, Wide b) {
  if (reduction == Reduction::product) return a * b;
  if (reduction == Reduction::sum || reduction == Reduction::average) return a + b;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<Wide>::quiet_NaN();
  return (reduction == Reduction::minimum ? b < a : b > a) ? b : a;
}

template <class Wide>
double combined(const SpecialCall& call, std::size_t index) {
  auto whole = static_cast<Wide>(element_of(call, 0, index));
  for (int rank = 1; rank < call.ranks; ++rank)
    whole = combine(call.reduction, whole, static_cast<Wide>(element_of(call, rank, index)));
  if (call.reduction == Reduction::average) whole /= static_cast<Wide>(call.ranks);
  const bool rounds_up = std::abs(whole) > static_cast<Wide>(call.element.largest);
  return rounds_up ? std::copysign(infinity, static_cast<double>(whole)) : static_cast<double>(whole);
}

std::vector<std::byte> expected_of(const SpecialCall& call) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < count; ++i)
    append_float(bytes, call.element.type,
                 call.element.type == ElementType::float64 ? combined<double>(call, i) : combined<float>(call, i));
  return bytes;
}

std::uint64_t bits_at(const std::vector<std::byte>& bytes, std::size_t index, std::size_t size) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * size, size);
  return bits;
}

bool is_nan(const FloatType& element, std::uint64_t bits) {
  const auto exponent_bits = static_cast<unsigned>(8 * bytes_of(element.type)) - 1 - element.mantissa_bits;
  const std::uint64_t infinite = ((std::uint64_t{1} << exponent_bits) - 1) << element.mantissa_bits;
  return (bits & ((std::uint64_t{1} << (element.mantissa_bits + exponent_bits)) - 1)) > infinite;
}

/// Checks that NaNs are where they are expected, with any bits, and that all other elements have the expected bits.
void check_elements(const SpecialCall& call, const std::vector<std::byte>& observed, const std::string& what) {
  const std::vector<std::byte> expected = expected_of(call);
  const std::size_t size = bytes_of(call.element.type);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t wanted = bits_at(expected, i, size), seen = bits_at(observed, i, size);
    if (is_nan(call.element, wanted) ? !is_nan(call.element, seen) : wanted != seen)
      throw CheckFailure(join(what, ": element ", i, " has the bits ", seen, " instead of ", wanted));
  }
}

enum class Kind { allreduce, reduce, reduce_scatter };
constexpr Kind kinds[] = {Kind::allreduce, Kind::reduce, Kind::reduce_scatter};
constexpr const char* kind_names[] = {"all-reduce", "reduce", "reduce-scatter"};

class SpecialVectors {
 public:
  explicit SpecialVectors(RankTest& test)
      : test_(test), collectives_(test.world(), small_channel),
        source_(test.world(), 8 * count * static_cast<std::size_t>(test.size())),
        destination_(test.world(), 8 * count) {}

  /// Checks a call; returns whether the operation has the algorithm.
  bool check(Kind kind, const SpecialCall& call, Algorithm algorithm) {
    std::vector<std::byte> mine;
    for (int part = 0; part < (kind == Kind::reduce_scatter ? call.ranks : 1); ++part)
      for (std::size_t i = 0; i < count; ++i) append_float(mine, call.element.type, element_of(call, test_.rank(), i));
    test_.write(source_.data(), mine);
    if (!start(kind, call, {.algorithm = algorithm, .blocks = 2})) return false;
    test_.world().synchronize();
    if (kind != Kind::reduce || test_.rank() == 0)
      check_elements(call, test_.read(destination_.data(), count * bytes_of(call.element.type)),
                     join(kind_names[static_cast<int>(kind)], ", ", name(call.reduction), " of ",
                          name(call.element.type), " by ", name(algorithm)));
    test_.world().barrier();  // no rank overwrites data that another still reads
    return true;
  }

 private:
  bool start(Kind kind, const SpecialCall& call, const CollectiveCall& how) {
    const ElementType type = call.element.type;
    try {
      if (kind == Kind::allreduce)
        collectives_.allreduce_on_stream(destination_.data(), source_.data(), count, type, call.reduction, how);
      else if (kind == Kind::reduce)
        collectives_.reduce_on_stream(destination_.data(), source_.data(), count, type, call.reduction, 0, how);
      else
        collectives_.reduce_scatter_on_stream(destination_.data(), source_.data(), count, type, call.reduction, how);
      return true;
    } catch (const Error& error) {
      if (error.code() == Status::invalid_argument || error.code() == Status::unavailable) return false;
      throw;
    }
  }

  RankTest& test_;
  Collectives collectives_;
  SymmetricArray<std::byte> source_, destination_;
};

BEELINE_CASE(collectives, special_values, 1) {
  test.skip_if(under_thread_sanitizer, "threads do the same for all values");
  SpecialVectors vectors(test);
  for (const Kind kind : kinds) {
    unsigned tried = 0;
    for (std::uint32_t algorithm = 0; algorithm < algorithms; ++algorithm) {
      bool has = true;
      for (const FloatType& element : float_types)
        for (const Reduction reduction : float_reductions)
          has = has && vectors.check(kind, {element, reduction, test.size()}, static_cast<Algorithm>(algorithm));
      tried += has ? 1 : 0;
    }
    BEELINE_CHECK(tried >= 2);
  }
}

}  // namespace

}  // namespace beeline_test::special_value_cases
