// SPDX-License-Identifier: Apache-2.0
// Moving data from the host: World::copy, streams with signals, fills and events, operations by CPU threads.
#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <thread>

#include "tests/conformance/guarded_area.hpp"
#include "tests/conformance/rank_test.hpp"
#include "tests/support/errors.hpp"

namespace beeline_test::stream_cases {

namespace {

using namespace beeline;

std::uint64_t key_of(std::uint64_t key, int rank) { return key + static_cast<std::uint64_t>(rank); }

/// Copies to and from peers between both heaps, blocking or on a stream. The addresses determine the direction.
BEELINE_CASE(stream, copy_between_any_two, 1) {
  World& world = test.world();
  Random& random = test.random();
  for (int i = 0; i < (under_thread_sanitizer ? 6 : 60); ++i) {
    const std::size_t bytes = random.message_bytes(most_bytes), offset = random.offset(), from_offset = random.offset();
    const int distance = random.below(test.size()), writer = test.behind(distance), reader = test.ahead(distance);
    const SymmetricArray<std::byte> source(world, bytes + from_offset, test.any_heap());
    const SymmetricArray<std::byte> memory(world, GuardedArea::needed(offset, bytes), test.any_heap());
    const std::uint64_t key = random.next();
    const bool push = random.coin(), asynchronous = random.coin();
    test.write(source.data() + from_offset, pattern(key_of(key, test.rank()), bytes));
    GuardedArea area(test, memory.data(), offset, bytes);
    world.barrier();
    std::byte* to = push ? world.at(memory.data(), reader) + (area.data() - memory.data()) : area.data();
    const std::byte* from = (push ? source.data() : world.at(source.data(), writer)) + from_offset;
    if (asynchronous) {
      world.copy(to, from, bytes, world.stream());
      world.synchronize();
    } else {
      world.copy(to, from, bytes);
    }
    world.barrier();
    area.check(pattern(key_of(key, writer), bytes),
               fmt::format("{} {} bytes at offset {} from offset {}, distance {}", push ? "pushed" : "pulled", bytes,
                           offset, from_offset, distance));
  }
}

/// Copies, then signals: later work of the receiver's stream sees the data. A signal returns the credit.
BEELINE_CASE(stream, copy_and_signal_on_streams, 1) {
  World& world = test.world();
  constexpr std::size_t rounds = 12;
  const std::size_t bytes = 1 + test.random().below(std::size_t{60'000});
  const SymmetricArray<std::byte> source(world, rounds * bytes), destination(world, bytes),
      snapshots(world, rounds * bytes);
  for (const Heap heap : {Heap::symmetric, Heap::pinned}) {
    const SymmetricArray<std::uint64_t> words(world, 2, heap);  // arrivals; credits
    const std::uint64_t key = test.random().next();
    test.write(source.data(), pattern(key_of(key, test.rank()), rounds * bytes));
    const std::unique_ptr<Stream> sending = world.make_stream(), receiving = world.make_stream();
    world.barrier();
    for (std::size_t round = 0; round < rounds; ++round) {
      wait_on_stream(world, {.signal = words.data() + 1, .value = round, .stream = sending.get()});
      put_on_stream(world, destination.data(), source.data() + round * bytes, bytes, test.ahead(1), sending.get());
      signal_on_stream(world, test.ahead(1), {.signal = words.data(), .value = round + 1, .stream = sending.get()});
      wait_on_stream(world, {.signal = words.data(), .value = round + 1, .stream = receiving.get()});
      receiving->copy(snapshots.data() + round * bytes, destination.data(), bytes);
      signal_on_stream(world, test.behind(1),
                       {.signal = words.data() + 1, .value = round + 1, .stream = receiving.get()});
    }
    world.synchronize(*sending);
    world.synchronize(*receiving);
    check_bytes(pattern(key_of(key, test.behind(1)), rounds * bytes), test.read(snapshots.data(), rounds * bytes),
                "rounds on streams");
    world.barrier();
  }
}

/// One operation sets two signals, each in another kind of memory, after a copy.
BEELINE_CASE(stream, two_signals_at_once, 1) {
  World& world = test.world();
  constexpr std::uint64_t rounds = 12;
  const SymmetricArray<std::uint64_t> source(world, rounds), destination(world, 1), snapshots(world, rounds),
      first(world, 1), second(world, 1, Heap::pinned);
  std::vector<std::uint64_t> values(rounds);
  for (std::uint64_t& value : values) value = test.random().next();
  world.copy(source.data(), values.data(), source.bytes());
  for (std::uint64_t* const signal : {first.data(), second.data()}) {
    const std::unique_ptr<Stream> sending = world.make_stream(), receiving = world.make_stream();
    const SymmetricArray<std::uint64_t> seen(world, 1);
    std::vector<std::uint64_t> come(rounds);
    const std::uint64_t before = signal == first.data() ? 0 : rounds;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      sending->wait_signal(seen.data(), round);
      sending->copy(destination.data(), source.data() + round, sizeof(std::uint64_t));
      sending->write_signals({first.data(), before + round + 1}, {second.data(), before + round + 1});
      receiving->wait_signal(signal, before + round + 1);
      receiving->copy(snapshots.data() + round, destination.data(), sizeof(std::uint64_t));
      receiving->write_signal(seen.data(), round + 1);
    }
    world.synchronize(*sending);
    world.synchronize(*receiving);
    world.copy(come.data(), snapshots.data(), snapshots.bytes());
    BEELINE_CHECK(come == values);
    BEELINE_CHECK_EQ(before + rounds, test.read_value(first.data()));
    BEELINE_CHECK_EQ(before + rounds, test.read_value(second.data()));
  }
  world.barrier();
}

BEELINE_CASE(stream, fill_and_events_order_streams, 1) {
  World& world = test.world();
  const std::size_t bytes = 1 + test.random().below(std::size_t{100'000});
  const SymmetricArray<std::byte> first(world, bytes), second(world, bytes);
  const std::unique_ptr<Stream> filling = world.make_stream(), copying = world.make_stream();
  const std::unique_ptr<Event> filled = filling->make_event();
  BEELINE_CHECK(filled->done());
  for (unsigned char value = 1; value < 8; ++value) {
    filling->fill(first.data(), value, bytes);
    filling->record(*filled);
    copying->wait_event(*filled);
    copying->copy(second.data(), first.data(), bytes);
    world.synchronize(*copying);
    BEELINE_CHECK(filled->done());
    BEELINE_CHECK(copying->drained());
    check_bytes(std::vector<std::byte>(bytes, std::byte{value}), test.read(second.data(), bytes),
                "filled, then copied");
  }
  world.synchronize(*filled);
  world.synchronize(*filling);
}

/// Any thread may call any host function: several threads copy on the same streams at the same time.
BEELINE_CASE(stream, several_threads_copy, 1) {
  World& world = test.world();
  constexpr std::size_t threads = 4, pieces = 8, bytes = 5000;
  const SymmetricArray<std::byte> destination(world, threads * pieces * bytes);
  const std::uint64_t key = test.random().next();
  std::atomic<int> failures{0};
  std::vector<std::thread> workers;
  for (std::size_t thread = 0; thread < threads; ++thread)
    workers.emplace_back([&, thread] {
      try {
        for (std::size_t piece = thread * pieces; piece < (thread + 1) * pieces; ++piece) {
          const std::vector<std::byte> data = pattern(key + piece, bytes);
          std::byte* to = destination.at(test.ahead(1)) + piece * bytes;
          if (piece % 2 == 0) {
            world.copy(to, data.data(), bytes);
          } else {
            const std::unique_ptr<Event> copied = world.stream().make_event();
            world.copy(to, data.data(), bytes, world.stream());
            world.stream().record(*copied);
            world.synchronize(*copied);
          }
        }
      } catch (const std::exception&) {
        ++failures;
      }
    });
  for (std::thread& worker : workers) worker.join();
  BEELINE_CHECK_EQ(0, failures.load());
  world.synchronize();
  world.barrier();
  for (std::size_t piece = 0; piece < threads * pieces; ++piece)
    check_bytes(pattern(key + piece, bytes), test.read(destination.data() + piece * bytes, bytes),
                fmt::format("piece {}", piece));
  world.barrier();
}

/// A CPU thread calls device operations on memory that it may access.
BEELINE_CASE(stream, operations_by_cpu_threads, 1) {
  World& world = test.world();
  const Context& ctx = world.host_context();
  const auto to = static_cast<std::uint32_t>(test.ahead(1)), from = static_cast<std::uint32_t>(test.behind(1));
  const std::size_t bytes = 1 + test.random().below(std::size_t{20'000});
  const SymmetricArray<std::byte> source(world, bytes, Heap::pinned),
      memory(world, GuardedArea::needed(3, bytes), Heap::pinned);
  const SymmetricArray<std::byte> fetched(world, bytes, Heap::pinned);
  const Signals owned(world, 2, Heap::pinned);
  std::uint64_t* const signals = owned.data();
  const std::uint64_t key = test.random().next();
  test.write(source.data(), pattern(key_of(key, test.rank()), bytes));
  GuardedArea area(test, memory.data(), 3, bytes);
  world.barrier();
  put_signal(Thread{}, ctx, area.data(), source.data(), bytes, signals, 1, to);
  BEELINE_CHECK_EQ(static_cast<int>(Status::ok),
                   static_cast<int>(wait(Thread{}, ctx, signals, Compare::equal, 1, from)));
  area.check(pattern(key_of(key, test.behind(1)), bytes), "put by a CPU thread");
  signal_add(Thread{}, ctx, signals + 1, 5, from);
  BEELINE_CHECK_EQ(static_cast<int>(Status::ok),
                   static_cast<int>(wait(Thread{}, ctx, signals + 1, Compare::equal, 5, to)));
  BEELINE_CHECK(get(Thread{}, ctx, fetched.data(), area.data(), bytes, to) == Status::ok);
  check_bytes(pattern(key_of(key, test.rank()), bytes), test.read(fetched.data(), bytes), "got back by a CPU thread");
}

/// Without peer access a kernel neither adds to a signal of another GPU nor takes its value from a sequence. Ranks that
/// share a GPU reach each other's memory.
bool is_refused_without_peer_access(RankTest& test, const SignalCall& call) {
  World& world = test.world();
  if (world.config().peer_access || !test.on_gpu() || world.ranks_on_device() == test.size()) return false;
  const auto refused = [](const std::function<void()>& put) {
    check_error(Status::unreachable, {"no peer access"}, put);
  };
  refused([&] { signal_on_stream(world, test.ahead(1), call); });
  refused([&] { put_signal_on_stream(world, nullptr, nullptr, 0, test.ahead(1), call); });
  world.barrier();
  return true;
}

/// Each rank puts its piece to every rank. A receiver counts the pieces in one signal; they are short or long.
BEELINE_CASE(stream, puts_that_count_on_streams, 1) {
  World& world = test.world();
  test.skip_if(world.mixed(), "kernels of both kinds of rank share no atomics");
  const auto ranks = static_cast<std::size_t>(test.size());
  const std::unique_ptr<Stream> stream = world.make_stream();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, std::size_t{4099}, std::size_t{200'000}}) {
    const SymmetricArray<std::byte> source(world, bytes), memory(world, ranks * bytes);
    const SymmetricArray<std::uint64_t> signal(world, 1);
    if (is_refused_without_peer_access(test, {.signal = signal.data(), .adds = true, .stream = stream.get()})) return;
    const std::uint64_t key = test.random().next();
    test.write(source.data(), pattern(key_of(key, test.rank()), bytes));
    for (int distance = 0; distance < test.size(); ++distance)
      put_signal_on_stream(world, memory.data() + static_cast<std::size_t>(test.rank()) * bytes, source.data(), bytes,
                           test.ahead(distance), {.signal = signal.data(), .adds = true, .stream = stream.get()});
    wait_on_stream(world, {.signal = signal.data(), .value = ranks, .stream = stream.get()});
    world.synchronize(*stream);
    BEELINE_CHECK_EQ(ranks, test.read_value(signal.data()));
    for (int rank = 0; rank < test.size(); ++rank)
      check_bytes(pattern(key_of(key, rank), bytes),
                  test.read(memory.data() + static_cast<std::size_t>(rank) * bytes, bytes), "counted piece");
    world.barrier();  // all have seen the sum
    put_signal_on_stream(world, nullptr, nullptr, 0, test.ahead(1), {.signal = signal.data(), .value = 7});
    world.synchronize();
    world.barrier();
    BEELINE_CHECK_EQ(7u, test.read_value(signal.data()));
  }
}

/// Puts, signals and waits take their values from sequences in memory; each put waits for the previous credit.
BEELINE_CASE(stream, sequences_on_streams, 1) {
  World& world = test.world();
  test.skip_if(world.mixed(), "kernels of host ranks, which put and signal here, do not store into GPU memory");
  constexpr std::uint64_t rounds = 20;
  const auto from = static_cast<std::uint32_t>(test.behind(1));
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{37}, std::size_t{100'000}}) {
    const SymmetricArray<std::byte> source(world, rounds * bytes), destination(world, bytes),
        snapshots(world, rounds * bytes);
    const SymmetricArray<std::uint64_t> arrived(world, 2), sequences(world, 4);
    std::uint64_t* const sequence = sequences.data();
    const std::uint64_t key = test.random().next();
    test.write(source.data(), pattern(key_of(key, test.rank()), rounds * bytes));
    const std::unique_ptr<Stream> sending = world.make_stream(), receiving = world.make_stream();
    if (is_refused_without_peer_access(test, {.signal = arrived.data(), .stream = sending.get(), .sequence = sequence}))
      return;
    signal_on_stream(world, test.behind(1),
                     {.signal = arrived.data() + 1,
                      .value = 5,
                      .stream = receiving.get(),
                      .sequence = sequence + 3});  // the first credit
    world.synchronize(*receiving);
    world.barrier();
    for (std::uint64_t round = 0; round < rounds; ++round) {
      wait_on_stream(world, {.signal = arrived.data() + 1,
                             .value = 5,
                             .stream = sending.get(),
                             .sequence = sequence,
                             .peer = static_cast<std::uint32_t>(test.ahead(1))});
      put_signal_on_stream(world, destination.data(), source.data() + round * bytes, bytes, test.ahead(1),
                           {.signal = arrived.data(), .value = 3, .stream = sending.get(), .sequence = sequence + 1});
      wait_on_stream(
          world,
          {.signal = arrived.data(), .value = 3, .stream = receiving.get(), .sequence = sequence + 2, .peer = from});
      receiving->copy(snapshots.data() + round * bytes, destination.data(), bytes);
      signal_on_stream(world, test.behind(1),
                       {.signal = arrived.data() + 1, .value = 5, .stream = receiving.get(), .sequence = sequence + 3});
    }
    world.synchronize(*sending);
    world.synchronize(*receiving);
    BEELINE_CHECK_EQ(3 * rounds, test.read_value(arrived.data()));
    check_bytes(pattern(key_of(key, test.behind(1)), rounds * bytes), test.read(snapshots.data(), rounds * bytes),
                "rounds by sequences");
    world.barrier();
  }
}

/// The stream continues when the source has been read: its next work may change the source.
BEELINE_CASE(stream, sources_that_the_stream_changes, 1) {
  World& world = test.world();
  test.skip_if(world.mixed(), "kernels of host ranks, which put and signal here, do not store into GPU memory");
  constexpr std::uint64_t rounds = 4;
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{5000}, std::size_t{600'000}}) {
    const SymmetricArray<std::byte> source(world, bytes), destination(world, bytes), snapshots(world, rounds * bytes);
    const SymmetricArray<std::uint64_t> words(world, 4);  // arrivals, credits; the sequences of both
    std::uint64_t* const arrived = words.data();
    const std::unique_ptr<Stream> sending = world.make_stream(), receiving = world.make_stream();
    if (is_refused_without_peer_access(test,
                                       {.signal = arrived, .stream = sending.get(), .sequence = words.data() + 2}))
      return;
    world.barrier();
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const auto value = static_cast<unsigned char>(test.rank() * 16 + static_cast<int>(round) + 1);
      wait_on_stream(world, {.signal = arrived + 1, .value = round, .stream = sending.get()});
      sending->fill(source.data(), value, bytes);
      put_signal_on_stream(world, destination.data(), source.data(), bytes, test.ahead(1),
                           {.signal = arrived, .stream = sending.get(), .sequence = words.data() + 2});
      sending->fill(source.data(), 0, bytes);
      wait_on_stream(world, {.signal = arrived, .value = round + 1, .stream = receiving.get()});
      receiving->copy(snapshots.data() + round * bytes, destination.data(), bytes);
      signal_on_stream(world, test.behind(1), {.signal = arrived + 1, .value = round + 1, .stream = receiving.get()});
    }
    world.synchronize(*sending);
    world.synchronize(*receiving);
    for (std::uint64_t round = 0; round < rounds; ++round)
      check_bytes(std::vector<std::byte>(bytes, std::byte(test.behind(1) * 16 + static_cast<int>(round) + 1)),
                  test.read(snapshots.data() + round * bytes, bytes), fmt::format("round {}", round));
    world.barrier();
  }
}

/// Fills a peer's memory, copies between two peers, in both directions, and copies back: the filled bytes arrive, and
/// no others change.
///   blocking  whether the copies between two peers block
void fill_and_copy_between_peers(RankTest& test, Stream& stream, std::size_t bytes, bool blocking) {
  World& world = test.world();
  const std::size_t room = GuardedArea::needed(5, bytes);
  const SymmetricArray<std::byte> filled(world, room), copied(world, room), returned(world, room),
      fetched(world, bytes);
  GuardedArea first(test, filled.data(), 5, bytes), second(test, copied.data(), 5, bytes),
      third(test, returned.data(), 5, bytes);
  const auto at = [&](const SymmetricArray<std::byte>& array, const GuardedArea& area, int rank) {
    return world.at(array.data(), rank) + (area.data() - array.data());
  };
  const auto copy = [&](std::byte* to, const std::byte* from) {
    if (!blocking) return stream.copy(to, from, bytes);
    world.synchronize(stream);
    world.copy(to, from, bytes);
  };
  const auto filled_by = [bytes](int rank) {
    return std::vector<std::byte>(bytes, std::byte(static_cast<unsigned char>(rank + 17)));
  };
  const int ahead = test.ahead(1), further = test.ahead(2);
  world.barrier();
  stream.fill(at(filled, first, ahead), static_cast<unsigned char>(test.rank() + 17), bytes);
  if (further != ahead) copy(at(copied, second, further), at(filled, first, ahead));
  stream.copy(fetched.data(), at(filled, first, ahead), bytes);
  world.synchronize(stream);
  check_bytes(filled_by(test.rank()), test.read(fetched.data(), bytes), "filled, and copied back");
  world.barrier();
  first.check(filled_by(test.behind(1)), "filled by a peer's stream");
  if (further != ahead) second.check(filled_by(test.behind(2)), "copied between two peers");
  if (further != ahead) copy(at(returned, third, ahead), at(filled, first, further));
  world.synchronize(stream);
  world.barrier();
  if (further != ahead) third.check(filled_by(test.rank()), "copied back between two peers");
  world.barrier();
}

BEELINE_CASE(stream, fills_and_copies_between_peers, 1) {
  const std::unique_ptr<Stream> stream = test.world().make_stream();
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4099}, std::size_t{1'300'000}})
    for (const bool blocking : {false, true}) fill_and_copy_between_peers(test, *stream, bytes, blocking);
}

BEELINE_CASE(stream, operations_that_are_refused, 1) {
  World& world = test.world();
  const SymmetricArray<std::uint64_t> words(world, 2);
  std::uint64_t* const word = words.data();
  auto* const odd = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(word) + 1);
  std::uint64_t elsewhere = 0;
  const auto refused = [](std::initializer_list<std::string_view> parts, const std::function<void()>& call) {
    check_error(Status::invalid_argument, parts, call);
  };
  const auto no_rank = static_cast<std::uint32_t>(test.size());
  refused({"not aligned"}, [&] { signal_on_stream(world, 0, {.signal = odd}); });
  refused({"not aligned"}, [&] { put_signal_on_stream(world, word, word + 1, 8, 0, {.signal = odd}); });
  refused({"not aligned"}, [&] { wait_on_stream(world, {.signal = odd}); });
  refused({"not aligned"}, [&] { wait_on_stream(world, {.signal = word, .sequence = odd}); });
  refused({"not aligned"}, [&] { signal_on_stream(world, 0, {.signal = word, .sequence = odd}); });
  refused({"takes no sequence"},
          [&] { signal_on_stream(world, 0, {.signal = word, .adds = true, .sequence = word + 1}); });
  refused({"null address"}, [&] { wait_on_stream(world, {.signal = nullptr}); });
  refused({"of a team of"}, [&] { wait_on_stream(world, {.signal = word, .peer = no_rank}); });
  refused({}, [&] { signal_on_stream(world, test.size(), {.signal = word}); });
  refused({}, [&] { signal_on_stream(world, 0, {.signal = &elsewhere}); });
  refused({}, [&] { put_on_stream(world, &elsewhere, word, 8, 0); });
  world.synchronize();
  BEELINE_CHECK_EQ(0u, test.read_value(word));
  world.barrier();
}

/// Combines one value of each rank, in every type, over the world and over a team; all members get the same result.
BEELINE_CASE(stream, allreduce_of_values, 1) {
  const auto reduce = [](Team& team) {
    const int rank = team.rank(), ranks = team.size();
    for (int round = 0; round < 5; ++round) {
      BEELINE_CHECK_EQ(ranks * (ranks - 1) / 2 + round * ranks, team.allreduce(rank + round));
      BEELINE_CHECK_EQ(-1.5 * (ranks - 1), team.allreduce(-1.5 * rank, Reduction::minimum));
      BEELINE_CHECK_EQ(static_cast<float>(ranks - 1) / 2, team.allreduce(static_cast<float>(rank), Reduction::average));
    }
    const std::uint64_t top = std::uint64_t{1} << 63, mine = rank == 0 ? top : 1;
    BEELINE_CHECK_EQ(top, team.allreduce(mine, Reduction::maximum));
    BEELINE_CHECK_EQ(ranks == 1 ? top : 1, team.allreduce(mine, Reduction::minimum));
    BEELINE_CHECK_EQ(ranks == 1 ? top : top | 1, team.allreduce(mine, Reduction::bit_or));
    // An array for scratch memory of which each member needs a different size.
    const std::size_t needed = 1000 * static_cast<std::size_t>(rank + 1);
    const SymmetricArray<std::byte> scratch(team, team.allreduce(needed, Reduction::maximum));
    BEELINE_CHECK_EQ(1000 * static_cast<std::size_t>(ranks), scratch.bytes());
  };
  reduce(test.world());
  const std::unique_ptr<Team> team = test.world().make_team(test.alternate_ranks());
  reduce(*team);
  reduce(test.world());
}

BEELINE_CASE(stream, allreduce_of_values_that_differ, 2) {
  World& world = test.world();
  for (int round = 0; round < 3; ++round) {
    const bool others = test.rank() == 1;
    try {
      if (round == 0)
        static_cast<void>(others ? world.allreduce(1.0) : world.allreduce(1));
      else
        static_cast<void>(world.allreduce(1, others ? Reduction::maximum : Reduction::sum));
      BEELINE_CHECK(false);
    } catch (const Error& error) {
      BEELINE_CHECK_EQ(static_cast<int>(Status::invalid_argument), static_cast<int>(error.code()));
      BEELINE_CHECK(std::string_view(error.what()).find("allreduce(sum, int32, 1 value)") != std::string_view::npos);
    }
  }
  if (test.rank() != 1) return world.barrier();
  try {
    static_cast<void>(world.allreduce(1));
    BEELINE_CHECK(false);
  } catch (const Error& error) {
    BEELINE_CHECK(std::string_view(error.what()).find("rank 0 calls something else") != std::string_view::npos);
  }
}

BEELINE_CASE(stream, gather_bytes, 1) {
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t key = test.random().next();
    const std::size_t base = test.random().below(std::size_t{3000});
    const auto data_of = [&](int rank) {
      return pattern(key_of(key, rank), round == 0 ? 0 : base * static_cast<std::size_t>(rank));
    };
    const auto all = test.world().allgather(data_of(test.rank()));
    BEELINE_CHECK_EQ(static_cast<std::size_t>(test.size()), all.size());
    for (int rank = 0; rank < test.size(); ++rank)
      check_bytes(data_of(rank), all[static_cast<std::size_t>(rank)], "gathered");
  }
}

}  // namespace

}  // namespace beeline_test::stream_cases
