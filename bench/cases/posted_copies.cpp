// SPDX-License-Identifier: Apache-2.0
/// @file
/// Copies that a kernel starts (proxy/copy_engine/signal). Their rate and bandwidth are compared with a bare loop of
/// the host that issues the same copies on as many streams; the time of one copy is compared with a graph that the
/// kernel launches and with the kernel's own stores. Source: seed 000, 6.5.

#include <algorithm>
#include <array>
#include <memory>

#include "beeline/control/post.hpp"
#include "beeline/host/command_queues.hpp"
#include "cases/cases.hpp"
#include "device_launched/graph_copy.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_grid.hpp"
#include "harness/timed_host.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/bare_copy.hpp"

namespace beeline::bench::posted_copies_cases {

namespace {

constexpr const char* method = "proxy/copy_engine/signal";
constexpr const char* launched = "device_launched/copy_engine";
constexpr std::uint32_t streams = 4;  ///< of an engine's thread; also the queues of the posting kernel
constexpr std::uint64_t kib = 1024, mib = kib * kib;

struct CopyArguments {
  std::byte* destination;  ///< at the peer, by its address on this rank's device
  const std::byte* source;
  std::uint64_t bytes;
  CommandQueuesView channel;
};

/// Posts copy after copy, each to the next queue; blocks share the copies. A batch ends when all have arrived.
struct PostCopies {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, BlockTimes* times, std::uint32_t copies,
                                      CopyArguments a) const {
    if (grid.block().thread_rank() != 0) return;
    const Thread one{};
    const std::uint32_t first = grid.block_rank(), step = grid.blocks();
    const std::uint64_t start = machine::clock_ns();
    for (std::uint32_t i = first; i < copies; i += step)
      if (post_copy(one, ctx, a.destination, a.source, a.bytes, a.channel.queue(i)) != Status::ok) return;
    for (std::uint32_t i = first; i < a.channel.queues; i += step)
      if (quiet(one, ctx, a.channel.queue(i)) != Status::ok) return;
    times[first] = {start, machine::clock_ns()};
  }
};

/// Stores the same bytes by the threads of a grid. A message is complete when every block's stores have arrived.
struct StoreBytes {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, BlockTimes* times, CopyArguments a,
                                      std::uint32_t peer) const {
    const auto& block = grid.block();
    const std::uint64_t start = machine::clock_ns();
    const Share share = share_of(a.bytes, grid.block_rank(), grid.blocks());
    if (share.bytes != 0 &&
        (put(block, ctx, a.destination + share.offset, a.source + share.offset, share.bytes, peer) != Status::ok ||
         quiet(block, ctx) != Status::ok))
      return;
    if (block.thread_rank() == 0) times[grid.block_rank()] = {start, machine::clock_ns()};
  }
};

class PostedCopies {
 public:
  PostedCopies(Bench& bench, std::uint64_t bytes)
      : bench_(bench), buffers_(std::make_shared<MessageBuffers>(bench, bytes)), times_(bench, streams),
        queues_(bench.world(), streams, {.engine_threads = 1}) {
    for (std::unique_ptr<Stream>& stream : bare_streams_) stream = bench.world().make_stream();
  }

  [[nodiscard]] const std::shared_ptr<MessageBuffers>& buffers() const { return buffers_; }

  ///   blocks  number of posting blocks, a divisor of `streams`
  std::vector<double> time_posted(Rounds rounds, unsigned blocks) {
    return time_batches(rounds, [&] {
      const CopyArguments arguments{there(), buffers_->source(), buffers_->bytes(), queues_.channel()};
      return times_.run({blocks, bench_.world().device().is_gpu() ? 32u : grid_threads(bench_)}, bench_.leads(),
                        PostCopies{}, times_.times(), rounds.iterations, arguments);
    });
  }
  std::vector<double> time_bare(Rounds rounds) {
    std::size_t next = 0;
    return time_on_host(
        bench_, rounds,
        [&] {
          if (bench_.leads())
            bare_copy(*bare_streams_[next++ % streams], there(), buffers_->source(), buffers_->bytes());
        },
        [&] {
          for (const std::unique_ptr<Stream>& stream : bare_streams_) bench_.world().synchronize(*stream);
        });
  }

 private:
  [[nodiscard]] std::byte* there() const {
    return bench_.world().at(buffers_->destination(), static_cast<int>(bench_.peer()));
  }

  Bench& bench_;
  std::shared_ptr<MessageBuffers> buffers_;
  TimedGrid times_;
  CommandQueues queues_;
  std::array<std::unique_ptr<Stream>, streams> bare_streams_;
};

/// Measures the rate of small copies, and the bandwidth of large ones.
std::vector<Measurement> prepare_beside_loop(Bench& bench, std::uint64_t) {
  bench.require_alike();
  std::vector<Measurement> all;
  for (const std::uint64_t bytes : {4 * kib, 64 * kib, mib, 16 * mib}) {
    const auto copies = std::make_shared<PostedCopies>(bench, bytes);
    const std::size_t bare = all.size();
    const auto add = [&](const char* by, std::uint64_t blocks, std::function<std::vector<double>(Rounds)> time) {
      all.push_back(message_measurement(bench, copies->buffers(), Receivers::second, by, std::move(time)));
      all.back().operation = bytes < mib ? "copy_rate" : "copy";
      if (bytes < mib) all.back().unit = Unit::million_messages_per_second;
      all.back().most_iterations = bytes < mib ? 1000 : 128;
      all.back().settings = {{"streams", std::uint64_t{streams}}, {"blocks", blocks}};
    };
    add("bare/issue_loop", 0, [=](Rounds rounds) { return copies->time_bare(rounds); });
    all.back().peer_of = method;
    all.back().stores_to_peer = true;
    // One thread posts about as fast as a CPU issues copies; four threads show what the engine adds.
    for (const unsigned blocks : {1u, streams}) {
      add(method, blocks, [=](Rounds rounds) { return copies->time_posted(rounds, blocks); });
      all.back().baseline = bare;
    }
  }
  return all;
}

/// Sizes of copies that a kernel starts.
constexpr std::uint64_t started_sizes[] = {4 * kib, 64 * kib, 256 * kib, mib, 4 * mib, 16 * mib, 64 * mib};

Measurement started_copy(Bench& bench, const std::shared_ptr<MessageBuffers>& buffers, const char* by, unsigned blocks,
                         std::function<std::vector<double>(Rounds)> time) {
  Measurement measurement = message_measurement(bench, buffers, Receivers::second, by, std::move(time));
  measurement.operation = "started_copy";
  measurement.unit = Unit::microseconds;
  measurement.most_iterations = 1;
  measurement.settings = {{"blocks", std::uint64_t{blocks}}};
  return measurement;
}

/// One copy by the engine, and by the stores of grids, until it has arrived: shows at which size the faster method
/// changes.
std::vector<Measurement> prepare_crossing(Bench& bench, std::uint64_t) {
  bench.require_alike();
  const unsigned most =
      resident_everywhere<StoreBytes, BlockTimes*, CopyArguments, std::uint32_t>(bench, grid_threads(bench));
  std::vector<Measurement> all;
  for (const std::uint64_t bytes : started_sizes) {
    if (bytes > 4 * mib && !bench.world().device().is_gpu()) continue;  // either way limited by the memory's bandwidth
    const auto copies = std::make_shared<PostedCopies>(bench, bytes);
    const auto add = [&](const char* by, unsigned blocks, std::function<std::vector<double>(Rounds)> time) {
      all.push_back(started_copy(bench, copies->buffers(), by, blocks, std::move(time)));
    };
    add(method, 1, [=](Rounds rounds) { return copies->time_posted(rounds, 1); });
    for (const unsigned blocks : {1u, 16u, most}) {
      if (blocks > most || (blocks != 1 && blocks == most && most <= 16)) continue;
      const auto grid = std::make_shared<TimedGrid>(bench, blocks);
      add("device/peer/signal", blocks, [=, &bench](Rounds rounds) {
        const CopyArguments arguments{copies->buffers()->destination(), copies->buffers()->source(), bytes, {}};
        return time_batches(rounds, [&] {
          return grid->run({blocks, grid_threads(bench)}, bench.leads(), StoreBytes{}, grid->times(), arguments,
                           bench.peer());
        });
      });
    }
  }
  return all;
}

/// Copies by graphs that the kernel of rank 0 launches.
class LaunchedCopy {
 public:
  /// If rank 0 cannot make the graph, throws unavailable on both ranks.
  LaunchedCopy(Bench& bench, const std::shared_ptr<MessageBuffers>& buffers) : bench_(bench), words_(bench.world(), 4) {
    std::string reason = "rank 0 makes no graphs that kernels launch";
    if (bench.leads()) try {
        copy_ = make_graph_copy(bench.world().at(buffers->destination(), static_cast<int>(bench.peer())),
                                buffers->source(), buffers->bytes(), words_.data(),
                                static_cast<std::uint64_t>(bench.world().config().deadline_ns));
      } catch (const Error& error) {
        reason = error.what();
      }
    require(bench.from_leader(std::uint64_t{copy_ != nullptr}) != 0, Status::unavailable, reason);
  }

  std::vector<double> time(Rounds rounds) {
    return time_batches(rounds, [&] {
      bench_.world().barrier();
      const double ns = copy_ != nullptr ? copy_->run() : 0;
      bench_.world().barrier();
      return ns;
    });
  }

 private:
  Bench& bench_;
  SymmetricArray<std::uint64_t> words_;
  std::unique_ptr<GraphCopy> copy_;
};

std::vector<Measurement> prepare_launched(Bench& bench, std::uint64_t) {
  bench.require_alike();
  require(bench.world().device().is_gpu(), Status::unavailable, "kernels of GPUs alone launch graphs");
  std::vector<Measurement> all;
  for (const std::uint64_t bytes : started_sizes) {
    const auto buffers = std::make_shared<MessageBuffers>(bench, bytes);
    const auto copy = std::make_shared<LaunchedCopy>(bench, buffers);
    all.push_back(started_copy(bench, buffers, launched, 1, [=](Rounds rounds) { return copy->time(rounds); }));
  }
  return all;
}

const ListedCases cases(Command::methods, {{"copy_rate", method, false, prepare_beside_loop},
                                           {"started_copy", method, false, prepare_crossing},
                                           {"started_copy", launched, false, prepare_launched}});
const ListedCases address_space_cases(Command::address_space, {{"started_copy", method, false, prepare_crossing},
                                                               {"started_copy", launched, false, prepare_launched}});

}  // namespace

}  // namespace beeline::bench::posted_copies_cases
