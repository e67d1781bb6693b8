// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The methods that exchange numbers in rounds: a block makes up to 1,024 numbers, gives each to its owner, signals all
/// owners, and applies what the same block of every other rank gave to it some rounds before. There is one box for each
/// sender, so that no two ranks write to the same memory, and owners need no remote atomics. The methods differ in how
/// numbers get into the boxes.

#include <algorithm>

#include "beeline/device/put_get.hpp"
#include "making.hpp"
#include "method.hpp"

namespace random_access {

/// Rounds that a block fills before it empties the boxes of the first of them, so that ranks need not run in step. At
/// least 2: the only thread of a host rank awaits round n - lag + 1 before it sends round n.
inline constexpr std::uint32_t lag_on_gpus = 2, lag_on_hosts = 8;
static_assert(lag_on_gpus >= 2 && lag_on_hosts >= 2);

/// The boxes of a rank, and what a block counts. Rounds take turns with 2 `lag` boxes of a sender: before a block sends
/// round n it has emptied the boxes of round n - lag, so its signal of round n also acknowledges those boxes. It fills
/// the boxes of round n again in round n + 2 lag, when it has received the signals of round n + lag.
struct Boxes {
  std::uint64_t* numbers;  ///< [ranks, blocks, 2 lag, box_words] symmetric, by sender, block and round
  std::uint64_t* signals;  ///< [ranks, blocks, 2 lag] symmetric: see `signal_value`
  std::uint32_t* counts;   ///< [blocks, ranks] numbers of a block for each owner, on host ranks; GPUs: shared memory
  std::uint32_t ranks, blocks, lag;

  /// Position of a box and of its signal. On host ranks signals of different ranks are in different cache lines.
  [[nodiscard]] BEELINE_HOST_DEVICE std::size_t place(std::uint64_t round, std::uint32_t rank,
                                                      std::uint32_t block) const {
    return (std::size_t{rank} * blocks + block) * 2 * lag + round % (2 * lag);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* box(std::uint64_t round, std::uint32_t sender,
                                                       std::uint32_t block) const {
    return numbers + place(round, sender, block) * box_words;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* signal(std::uint64_t round, std::uint32_t sender,
                                                          std::uint32_t block) const {
    return signals + place(round, sender, block);
  }
};

/// The value of a signal: the round whose box is full, and how many numbers the box holds.
inline constexpr std::uint64_t counts_of_signal = 2 * look_ahead;
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t signal_value(std::uint64_t round, std::uint64_t count) {
  return round * counts_of_signal + count;
}

/// What a rank does in one run.
struct Work {
  Piece numbers;
  std::uint64_t first_round, rounds;  ///< rounds are numbered from 1 on, over all runs; the same on all ranks
};

/// The part of a block. `Sender` has
///   std::uint64_t* box(ctx, boxes, round, owner, block)   where the numbers for `owner` are stored
///   Status send(block, ctx, boxes, round, block_rank, counts)
///     Signals every other rank, after the numbers, of which owner r has `counts[r]`. Every thread of the block calls
///     it
template <class Grid, class Sender>
class Exchange {
 public:
  BEELINE_HOST_DEVICE Exchange(const Grid& grid, const beeline::Context& ctx, const Target& target, const Boxes& boxes,
                               const Sender& sender)
      : grid_(grid), block_(grid.block()), ctx_(ctx), target_(target), boxes_(boxes), sender_(sender),
        is_alone_(grid.size() == 1) {}

  BEELINE_HOST_DEVICE void run(const Work& work, std::uint32_t* counts) {
    const Piece mine = part_of(work.numbers.count, grid_.thread_rank(), grid_.size());
    number_ = starts(work.numbers.first + mine.first), left_ = mine.count;
    const std::uint64_t end = work.first_round + work.rounds;
    for (std::uint64_t round = work.first_round; round < end + boxes_.lag - 1; ++round) {
      const bool fills = round < end, empties = round >= work.first_round + boxes_.lag - 1;
      const std::uint64_t earlier = round - (boxes_.lag - 1);
      if (is_lone_cpu()) {
        if (!exchange_alone(round, fills, empties ? earlier : 0, counts)) return;
        continue;
      }
      bool failed = fills && !fill_boxes(round, counts);
      failed = failed || (empties && !await_boxes(earlier));
      if (block_.any(failed)) return;
      if (empties) empty_boxes(earlier);
    }
  }

 private:
  /// Whether this is the only thread of a host rank.
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_lone_cpu() const {
    return beeline::detail::executor == beeline::DeviceKind::host && is_alone_;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE bool fill_boxes(std::uint64_t round, std::uint32_t* counts) {
    for (std::uint32_t rank = block_.thread_rank(); rank < ctx_.size; rank += block_.size()) counts[rank] = 0;
    block_.sync();
    make_numbers(round, counts);
    block_.sync();
    return sender_.send(block_, ctx_, boxes_, round, grid_.block_rank(), counts) == beeline::Status::ok;
  }

  BEELINE_HOST_DEVICE void make_numbers(std::uint64_t round, std::uint32_t* counts) {
    const std::uint64_t most = look_ahead / block_.size(), now = left_ < most ? left_ : most;
    left_ -= now;
    const Target target = target_;  // copies: the compiler assumes that updates may change members
    const Boxes boxes = boxes_;
    const Sender sender = sender_;
    std::uint64_t number = number_;
    for (std::uint64_t i = 0; i < now; ++i) {
      number = next_number(number);
      const std::uint64_t index = target.layout.index_of(number);
      const std::uint32_t owner = target.layout.owner(index);
      if (owner == ctx_.rank)
        apply(target.own(index), number, is_alone_);
      else
        sender.box(ctx_, boxes, round, owner, grid_.block_rank())[count_one(counts[owner])] = number;
    }
    number_ = number;
  }

  /// A round of the only thread of a host rank, which applies the numbers that have arrived while it makes the next
  /// ones. The rank's own numbers go through a box of the rank, too: a processor mispredicts a branch that asks whether
  /// a number is one of them.
  ///   earlier  the round whose boxes it empties; 0: none
  /// Returns false if a wait or a signal has failed.
  [[nodiscard]] BEELINE_HOST_DEVICE bool exchange_alone([[maybe_unused]] std::uint64_t round,
                                                        [[maybe_unused]] bool fills,
                                                        [[maybe_unused]] std::uint64_t earlier,
                                                        [[maybe_unused]] std::uint32_t* counts) {
#if BEELINE_ON_GPU
    return false;
#else
    if (earlier != 0 && !await_boxes(earlier)) return false;
    const std::uint32_t block = grid_.block_rank();
    std::uint64_t *begins[most_exchanging_ranks], *ends[most_exchanging_ranks];
    for (std::uint32_t rank = 0; rank < ctx_.size; ++rank)
      ends[rank] = begins[rank] =
          rank == ctx_.rank ? boxes_.box(round, rank, block) : sender_.box(ctx_, boxes_, round, rank, block);
    std::uint64_t now = fills ? std::min(left_, look_ahead) : 0;
    left_ -= now;
    for (std::uint32_t step = 0; earlier != 0 && step < ctx_.size; ++step) {  // the rank's own box first: it is near
      const Numbers arrived = arrived_from((ctx_.rank + step) % ctx_.size, earlier);
      if (step + 1 < ctx_.size) prefetch_numbers(arrived_from((ctx_.rank + step + 1) % ctx_.size, earlier));
      const std::uint64_t some = std::min(arrived.count, now);
      number_ = make_and_apply(ends, target_, number_, some, arrived);
      now -= some;
    }
    number_ = make_and_apply(ends, target_, number_, now, {nullptr, 0});
    if (!fills) return true;
    for (std::uint32_t rank = 0; rank < ctx_.size; ++rank)
      counts[rank] = static_cast<std::uint32_t>(ends[rank] - begins[rank]);
    *boxes_.signal(round, ctx_.rank, block) = signal_value(round, counts[ctx_.rank]);
    return sender_.send(block_, ctx_, boxes_, round, block, counts) == beeline::Status::ok;
#endif
  }

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t count_one(std::uint32_t& count) const {
    return is_alone_ ? count++
                     : beeline::detail::DeviceAtomic<std::uint32_t>(count).fetch_add(1, std::memory_order_relaxed);
  }

  /// Returns whether the boxes of all senders are full. Each thread waits for some of the senders.
  [[nodiscard]] BEELINE_HOST_DEVICE bool await_boxes(std::uint64_t round) const {
    for (std::uint32_t rank = block_.thread_rank(); rank < ctx_.size; rank += block_.size()) {
      if (rank == ctx_.rank) continue;
      const std::uint64_t* const signal = boxes_.signal(round, rank, grid_.block_rank());
      if (beeline::wait(beeline::Thread{}, ctx_, signal, beeline::Compare::greater_equal, signal_value(round, 0),
                        rank) != beeline::Status::ok)
        return false;
    }
    return true;
  }

  /// The numbers in a sender's box of this rank.
  [[nodiscard]] BEELINE_HOST_DEVICE Numbers arrived_from(std::uint32_t sender, std::uint64_t round) const {
    const std::uint32_t block = grid_.block_rank();
    return {boxes_.box(round, sender, block),
            beeline::load_value(boxes_.signal(round, sender, block)) % counts_of_signal};
  }

  BEELINE_HOST_DEVICE void empty_boxes(std::uint64_t round) const {
    for (std::uint32_t rank = 0; rank < ctx_.size; ++rank)
      if (rank != ctx_.rank) apply_numbers(block_, target_, arrived_from(rank, round), is_alone_);
  }

  const Grid& grid_;
  const decltype(grid_.block())& block_;
  const beeline::Context& ctx_;
  const Target& target_;
  const Boxes& boxes_;
  const Sender& sender_;
  const bool is_alone_;
  std::uint64_t number_ = 0, left_ = 0;
};

/// The kernel.
template <class Sender>
struct ExchangeInRounds {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(const Grid& grid, const beeline::Context& ctx, Target target, Boxes boxes,
                                      Sender sender, Work work) const {
#if BEELINE_ON_GPU
    __shared__ std::uint32_t counts[most_exchanging_ranks];
#else
    std::uint32_t* const counts = boxes.counts + std::size_t{grid.block_rank()} * boxes.ranks;
#endif
    Exchange<Grid, Sender>(grid, ctx, target, boxes, sender).run(work, counts);
  }
};

/// The host side of these methods. Constructor and destructor are collective.
template <class Sender>
class InRounds : public Method {
 public:
  explicit InRounds(Table& table)
      : Method(table), lag_(world().device().is_gpu() ? lag_on_gpus : lag_on_hosts),
        blocks_(table.blocks<ExchangeInRounds<Sender>, Target, Boxes, Sender, Work>()),
        numbers_(world(), places() * box_words), signals_(world(), places()), counts_(world(), places()) {}

  void run(const Run& run) override {
    const std::uint32_t ranks = table().layout().ranks;
    const Work work{run.of(static_cast<std::uint32_t>(world().rank()), ranks), next_round_, rounds_of(run)};
    next_round_ += work.rounds;
    beeline::launch(world(), {.blocks = blocks_, .threads = block_threads, .waits = true}, ExchangeInRounds<Sender>{},
                    table().target(), Boxes{numbers_.data(), signals_.data(), counts_.data(), ranks, blocks_, lag_},
                    sender(), work);
    world().synchronize();
  }

 protected:
  /// Boxes of a rank.
  [[nodiscard]] std::size_t places() const { return std::size_t{2} * lag_ * table().layout().ranks * blocks_; }

 private:
  [[nodiscard]] virtual Sender sender() const = 0;

  /// Rounds until the threads with most numbers have sent all; rank 0 has such threads.
  [[nodiscard]] std::uint64_t rounds_of(const Run& run) const {
    const std::uint64_t of_block =
        world().device().is_gpu() ? block_threads : static_cast<std::uint64_t>(world().config().host_threads);
    const std::uint64_t of_thread = part_of(run.of(0, table().layout().ranks).count, 0, of_block * blocks_).count;
    const std::uint64_t at_once = look_ahead / of_block;
    return (of_thread + at_once - 1) / at_once;
  }

  const std::uint32_t lag_;
  const unsigned blocks_;
  beeline::SymmetricArray<std::uint64_t> numbers_;
  beeline::Signals signals_;
  beeline::SymmetricArray<std::uint32_t> counts_;
  std::uint64_t next_round_ = 1;
};

}  // namespace random_access
