// SPDX-License-Identifier: Apache-2.0
// The calls of `Collectives` and `Messages` on arrays and spans, which know their lengths.
#include <memory>
#include <numeric>
#include <span>

#include "tests/conformance/collective_calls.hpp"
#include "tests/conformance/message_calls.hpp"
#include "tests/conformance/rank_test.hpp"

namespace beeline_test::typed_cases {

namespace {

using namespace beeline;

constexpr std::size_t count = 37;

/// Elements of a type that is none of the collectives' element types.
struct Particle {
  float place[3];
  std::uint16_t kind;

  bool operator==(const Particle&) const = default;
};
Particle particle(int from, int to, std::size_t i) {
  return {{static_cast<float>(from), static_cast<float>(to), static_cast<float>(i)}, static_cast<std::uint16_t>(i)};
}

/// Reads and writes vectors, in whatever memory they are.
class Vectors {
 public:
  explicit Vectors(World& world) : world_(world) {}

  template <class T>
  void write(const SymmetricArray<T>& array, const std::vector<T>& values) {
    BEELINE_CHECK(values.size() <= array.count());
    world_.copy(array.data(), values.data(), values.size() * sizeof(T));
  }
  template <class T>
  [[nodiscard]] std::vector<T> read(std::span<T> vector) {
    std::vector<T> values(vector.size());
    world_.copy(values.data(), vector.data(), vector.size_bytes());
    return values;
  }
  template <class T>
  [[nodiscard]] std::vector<T> read(const SymmetricArray<T>& array) {
    return read(std::span(array.data(), array.count()));
  }

 private:
  World& world_;
};

/// Integers as floats, whose sums are exact: rank + 1, rank + 2 and so on.
std::vector<float> numbers(int rank, std::size_t length) {
  std::vector<float> values(length);
  std::iota(values.begin(), values.end(), static_cast<float>(1 + rank));
  return values;
}
/// The sums of all ranks' numbers; elements [first, first + length).
std::vector<float> sums(int ranks, std::size_t first, std::size_t length) {
  std::vector<float> values(length);
  for (std::size_t i = 0; i < length; ++i)
    values[i] = static_cast<float>(ranks * (static_cast<int>(first + i) + 1) + ranks * (ranks - 1) / 2);
  return values;
}

/// Calls without a stream are complete when they return: results are read at once.
BEELINE_CASE(collectives, typed_reductions, 1) {
  Vectors vectors(test.world());
  Collectives collectives(test.world(), small_channel);
  // A stream cannot be created on a GPU while another rank's kernel waits there.
  const std::unique_ptr<Stream> stream = test.world().make_stream();
  test.world().barrier();
  const auto members = static_cast<std::size_t>(test.size());
  const SymmetricArray<float> mine(test.world(), count), sum(test.world(), count), all(test.world(), members * count);
  vectors.write(mine, numbers(test.rank(), count));
  collectives.allreduce(sum, mine);
  BEELINE_CHECK(vectors.read(sum) == sums(test.size(), 0, count));

  const std::span<float> some(sum.data() + 5, 9);
  collectives.allreduce(some, std::span<const float>(mine.data(), 9), Reduction::maximum, {.stream = stream.get()});
  test.world().synchronize(*stream);
  BEELINE_CHECK(vectors.read(some) == numbers(test.size() - 1, 9));

  const int root = test.size() - 1;
  // Other ranks may pass an empty destination, which only the root uses.
  const std::span<float> at_root = test.rank() == root ? std::span(sum.data(), count) : std::span<float>();
  collectives.reduce(at_root, mine, Reduction::sum, root);
  if (test.rank() == root) BEELINE_CHECK(vectors.read(sum) == sums(test.size(), 0, count));

  vectors.write(all, numbers(test.rank(), members * count));
  collectives.reduce_scatter(sum, all);
  BEELINE_CHECK(vectors.read(sum) == sums(test.size(), static_cast<std::size_t>(test.rank()) * count, count));

  collectives.allreduce(mine, Reduction::minimum);
  BEELINE_CHECK(vectors.read(mine) == numbers(0, count));
}

/// One rank's vectors of particles, and their expected contents.
struct Particles {
  explicit Particles(RankTest& test)
      : rank(test.rank()), ranks(test.size()), vectors(test.world()), one(test.world(), count),
        got(test.world(), count), many(test.world(), static_cast<std::size_t>(test.size()) * count),
        all(test.world(), static_cast<std::size_t>(test.size()) * count) {
    vectors.write(one, from(rank, rank));
    std::vector<Particle> parts;
    for (int peer = 0; peer < ranks; ++peer) append(parts, rank, peer);
    vectors.write(many, parts);
  }

  static void append(std::vector<Particle>& to, int from, int peer) {
    for (std::size_t i = 0; i < count; ++i) to.push_back(particle(from, peer, i));
  }
  [[nodiscard]] static std::vector<Particle> from(int from, int peer) {
    std::vector<Particle> part;
    append(part, from, peer);
    return part;
  }
  /// All members' `one`, or the particles that all members send to this rank.
  [[nodiscard]] std::vector<Particle> gathered(bool for_me) const {
    std::vector<Particle> parts;
    for (int peer = 0; peer < ranks; ++peer) append(parts, peer, for_me ? rank : peer);
    return parts;
  }

  int rank, ranks;
  Vectors vectors;
  SymmetricArray<Particle> one, got, many, all;
};

BEELINE_CASE(collectives, typed_movement, 1) {
  Particles p(test);
  Collectives collectives(test.world(), small_channel);
  const int root = test.size() - 1;
  collectives.broadcast(p.got, p.one, root);
  BEELINE_CHECK(p.vectors.read(p.got) == Particles::from(root, root));
  collectives.scatter(p.got, p.many, root);
  BEELINE_CHECK(p.vectors.read(p.got) == Particles::from(root, p.rank));
  collectives.broadcast(p.got, 0);
  BEELINE_CHECK(p.vectors.read(p.got) == Particles::from(root, 0));
  collectives.allgather(p.all, p.one);
  BEELINE_CHECK(p.vectors.read(p.all) == p.gathered(false));
  collectives.alltoall(p.all, p.many);
  BEELINE_CHECK(p.vectors.read(p.all) == p.gathered(true));
  collectives.gather(p.all, p.one, root);
  BEELINE_CHECK(p.vectors.read(p.all) == p.gathered(p.rank != root));
}

/// Rank i sends i + 1 elements to each rank, from consecutive memory.
template <class T>
void varied(RankTest& test, T (*value)(int from, int to, std::size_t i)) {
  Vectors vectors(test.world());
  Collectives collectives(test.world(), small_channel);
  const auto members = static_cast<std::size_t>(test.size()), each = static_cast<std::size_t>(test.rank()) + 1;
  std::vector<std::size_t> send_counts(members, each), send_offsets, receive_counts, receive_offsets;
  std::vector<T> sent, expected;
  for (int peer = 0; peer < test.size(); ++peer) {
    send_offsets.push_back(sent.size()), receive_offsets.push_back(expected.size());
    receive_counts.push_back(static_cast<std::size_t>(peer) + 1);
    for (std::size_t i = 0; i < each; ++i) sent.push_back(value(test.rank(), peer, i));
    for (std::size_t i = 0; i < receive_counts.back(); ++i) expected.push_back(value(peer, test.rank(), i));
  }
  const SymmetricArray<T> source(test.world(), members * members), destination(test.world(), expected.size());
  vectors.write(source, sent);
  const PieceSpans pieces{send_counts, send_offsets, receive_counts, receive_offsets};
  collectives.alltoallv(destination, source, pieces);
  BEELINE_CHECK(vectors.read(destination) == expected);

  const std::span<T> less(destination.data(), expected.size() - 1);
  expect_refused(join("alltoallv: the destination has ", less.size(), " elements, and needs ", members, " from ",
                      receive_offsets.back(), " on for rank ", members - 1)
                     .c_str(),
                 [&] { collectives.alltoallv(less, source, pieces); });
  collectives.alltoallv(destination, source, pieces);
}

BEELINE_CASE(collectives, typed_pieces, 1) {
  varied<Particle>(test, particle);
  varied<double>(test,
                 [](int from, int to, std::size_t i) { return 1000.0 * from + to + 0.25 * static_cast<double>(i); });
}

/// A refused call starts nothing: the next call of all ranks is right.
BEELINE_CASE(collectives, typed_lengths_refused, 2) {
  Vectors vectors(test.world());
  Collectives collectives(test.world(), small_channel);
  const auto members = static_cast<std::size_t>(test.size());
  const SymmetricArray<float> many(test.world(), members * 4), one(test.world(), 4), other(test.world(), 4);
  vectors.write(one, numbers(test.rank(), 4));
  const std::span<float> three(other.data(), 3), few(many.data(), members * 4 - 1);
  expect_refused("allreduce: the destination has 3 elements, and needs 4", [&] { collectives.allreduce(three, one); });
  expect_refused("broadcast: the destination has 4 elements, and needs 3",
                 [&] { collectives.broadcast(one, three, test.rank()); });
  expect_refused("reduce: the destination has 3 elements, and needs 4",
                 [&] { collectives.reduce(three, one, Reduction::sum, test.rank()); });
  const std::string is_few = join(" has ", few.size(), " elements, and needs ", members * 4, ": ", members, " times 4");
  const auto refused = [&](const char* what, const auto& call) { expect_refused(join(what, is_few).c_str(), call); };
  refused("reduce_scatter: the source", [&] { collectives.reduce_scatter(other, few); });
  refused("scatter: the source", [&] { collectives.scatter(other, few, test.rank()); });
  refused("gather: the destination", [&] { collectives.gather(few, one, test.rank()); });
  refused("allgather: the destination", [&] { collectives.allgather(few, one); });
  refused("alltoall: the destination", [&] { collectives.alltoall(few, many); });
  refused("alltoall: the source", [&] { collectives.alltoall(many, few); });
  expect_refused(join("root ", test.size(), " of a team").c_str(),
                 [&] { collectives.broadcast(other, one, test.size()); });
  collectives.allreduce(other, one);
  BEELINE_CHECK(vectors.read(other) == sums(test.size(), 0, 4));
}

BEELINE_CASE(messages, typed_messages, 2) {
  Particles p(test);
  Messages messages(test.world(), small_messages);
  const int after = test.ahead(1), before = test.behind(1);
  messages.send_receive(p.one, after, p.got, before);
  BEELINE_CHECK(p.vectors.read(p.got) == Particles::from(before, before));
  const std::span<Particle> some(p.got.data(), 3);
  const auto send = [&] { messages.send(std::span<const Particle>(p.many.data(), 3), after); };
  const auto receive = [&] { messages.receive(some, before); };
  test.rank() % 2 == 0 ? send() : receive();
  test.rank() % 2 == 0 ? receive() : send();
  std::vector<Particle> expected = Particles::from(before, 0);
  expected.resize(3);
  BEELINE_CHECK(p.vectors.read(some) == expected);
}

}  // namespace

}  // namespace beeline_test::typed_cases
