// SPDX-License-Identifier: Apache-2.0
/// @file
/// The overhead of a transfer for the kernel or the CPU thread that starts it: it posts the transfer, works for longer
/// than the transfer takes, and waits. What this takes beyond the work alone is overhead. Source: seed 000, 4.4.3 and
/// figure 4.10.

#include "beeline/control/post.hpp"
#include "beeline/host/command_queues.hpp"
#include "beeline/host/hybrid_transfers.hpp"
#include "beeline/host/stream_operations.hpp"
#include "cases/cases.hpp"
#include "environment/statistics.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_grid.hpp"
#include "harness/timed_host.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/bare_copy.hpp"

namespace beeline::bench::post_work_wait_cases {

namespace {

/// A transfer of one message from rank 0 to rank 1, with work between its post and the wait for it.
class Overlap {
 public:
  Overlap(Bench& bench, std::uint64_t bytes)
      : bench_(bench), buffers_(std::make_shared<MessageBuffers>(bench, bytes)) {}
  virtual ~Overlap() = default;
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  /// Collective. Measures the transfer without work, which determines the length of the work, and then the work alone.
  void calibrate() {
    const auto mean_ns = [&](bool transfers, std::uint64_t work_ns) {
      constexpr Rounds rounds{4, 5, 1};
      const std::vector<double> times = run(rounds, transfers, work_ns);
      return bench_.from_leader(static_cast<std::uint64_t>(times.empty() ? 0 : median(times) / rounds.iterations));
    };
    transfer_ns_ = mean_ns(true, 0);
    work_ns_ = transfer_ns_ + transfer_ns_ / 4;
    alone_ns_ = mean_ns(false, work_ns_);
  }

  /// Collective. The overhead of each batch's transfers.
  std::vector<double> time(Rounds rounds) {
    std::vector<double> times = run(rounds, true, work_ns_);
    for (double& ns : times) ns -= static_cast<double>(alone_ns_) * rounds.iterations;
    return times;
  }

  [[nodiscard]] const std::shared_ptr<MessageBuffers>& buffers() const { return buffers_; }
  [[nodiscard]] Settings settings() const { return {{"transfer_ns", transfer_ns_}, {"work_ns", work_ns_}}; }

 protected:
  /// Nanoseconds of batches of posts, work and waits; without transfers only of the work.
  virtual std::vector<double> run(Rounds rounds, bool transfers, std::uint64_t work_ns) = 0;
  [[nodiscard]] Bench& bench() const { return bench_; }
  [[nodiscard]] World& world() const { return bench_.world(); }
  [[nodiscard]] int peer() const { return static_cast<int>(bench_.peer()); }

 private:
  Bench& bench_;
  std::shared_ptr<MessageBuffers> buffers_;
  std::uint64_t transfer_ns_ = 0, work_ns_ = 0, alone_ns_ = 0;
};

struct Transfer {
  std::byte* destination;
  const std::byte* source;
  std::uint64_t bytes, work_ns;
  bool is_wanted;
};

/// One thread posts to an engine.
struct Posted {
  CommandQueue queue;
  template <class Block>
  [[nodiscard]] static BEELINE_HOST_DEVICE Thread group(const Block&) {
    return {};
  }
  BEELINE_HOST_DEVICE Status post(const Thread& one, const Context& ctx, const Transfer& t, std::uint32_t peer) const {
    return post_put(one, ctx, t.destination, t.source, t.bytes, peer, queue);
  }
  BEELINE_HOST_DEVICE Status await(const Thread& one, const Context& ctx) const { return quiet(one, ctx, queue); }
};
/// The block stores.
struct Stored {
  template <class Block>
  [[nodiscard]] static BEELINE_HOST_DEVICE const Block& group(const Block& block) {
    return block;
  }
  template <class Group>
  BEELINE_HOST_DEVICE Status post(const Group& group, const Context& ctx, const Transfer& t, std::uint32_t peer) const {
    return put(group, ctx, t.destination, t.source, t.bytes, peer);
  }
  template <class Group>
  BEELINE_HOST_DEVICE Status await(const Group& group, const Context& ctx) const {
    return quiet(group, ctx);
  }
};

template <class How>
struct PostWorkWait {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, How how, Transfer t) const {
    const auto& group = How::group(grid.block());
    if (group.size() == 1 && grid.block().thread_rank() != 0) return;
    time_rounds(group, loop, [&](std::uint64_t) {
      if (t.is_wanted && how.post(group, ctx, t, loop.peer) != Status::ok) return false;
      rest(ctx, t.work_ns);
      return !t.is_wanted || how.await(group, ctx) == Status::ok;
    });
  }
};

template <class How>
class ByKernel : public Overlap {
 public:
  ByKernel(Bench& bench, std::uint64_t bytes, std::optional<EngineKind> engine)
      : Overlap(bench, bytes),
        queues_(engine ? std::make_unique<CommandQueues>(bench.world(), 1, CommandQueueOptions{.engine = *engine})
                       : nullptr),
        timed_(bench) {}

 private:
  std::vector<double> run(Rounds rounds, bool transfers, std::uint64_t work_ns) override {
    How how{};
    if constexpr (std::is_same_v<How, Posted>) how.queue = queues_->channel().queue(0);
    return timed_.run(grid_threads(bench()), bench().leads(), rounds, PostWorkWait<How>{}, how,
                      Transfer{buffers()->destination(), buffers()->source(), buffers()->bytes(), work_ns, transfers});
  }

  std::unique_ptr<CommandQueues> queues_;
  TimedKernel timed_;
};

/// A CPU thread posts to a stream.
class ByHost : public Overlap {
 public:
  using Post = std::function<void(MessageBuffers&)>;
  ByHost(Bench& bench, std::uint64_t bytes, Post post) : Overlap(bench, bytes), post_(std::move(post)) {}

 private:
  std::vector<double> run(Rounds rounds, bool transfers, std::uint64_t work_ns) override {
    return time_on_host(bench(), rounds, [&] {
      if (!bench().leads()) return;
      if (transfers) post_(*buffers());
      for (const std::uint64_t start = machine::clock_ns(); machine::clock_ns() - start < work_ns;) continue;
      if (transfers) world().synchronize();
    });
  }

  const Post post_;
};

constexpr const char* operation = "post_work_wait";

Measurement measurement_of(Bench& bench, const std::shared_ptr<Overlap>& overlap, const char* method) {
  overlap->calibrate();
  Measurement measurement = message_measurement(bench, overlap->buffers(), Receivers::second, method,
                                                [=](Rounds rounds) { return overlap->time(rounds); });
  measurement.operation = operation;
  measurement.unit = Unit::microseconds;
  measurement.most_iterations = 100;
  measurement.settings = overlap->settings();
  return measurement;
}

template <class How>
Case by_kernel(const char* method, std::optional<EngineKind> engine) {
  return {operation, method, true, [=](Bench& bench, std::uint64_t bytes) -> std::vector<Measurement> {
            return {measurement_of(bench, std::make_shared<ByKernel<How>>(bench, bytes, engine), method)};
          }};
}
using MakePost = ByHost::Post (*)(Bench&);
/// Compared with `bare`, unless that is nullptr or the peer is on another node.
Case by_host(const char* method, MakePost make, MakePost bare) {
  return {operation, method, true, [=](Bench& bench, std::uint64_t bytes) {
            std::vector<Measurement> all;
            const bool is_direct = bench.world().host_context().access_to(bench.peer()).access == PeerAccess::direct;
            const bool is_compared = bare != nullptr && bench.from_leader(is_direct ? 1 : 0) != 0;
            if (is_compared) {
              all.push_back(measurement_of(bench, std::make_shared<ByHost>(bench, bytes, bare(bench)), "bare/copy"));
              all.back().peer_of = method;
              all.back().stores_to_peer = true;
            }
            all.push_back(measurement_of(bench, std::make_shared<ByHost>(bench, bytes, make(bench)), method));
            if (is_compared) all.back().baseline = 0;
            return all;
          }};
}

ByHost::Post copies(Bench& bench) {
  return [&bench](MessageBuffers& buffers) {
    put_on_stream(bench.world(), buffers.destination(), buffers.source(), buffers.bytes(),
                  static_cast<int>(bench.peer()));
  };
}
/// Posts copies that the sender stages.
ByHost::Post staged(Bench& bench) {
  const auto transfers = std::make_shared<HybridTransfers>(bench.world(), HybridOptions{.threshold_bytes = 1});
  return [=, &bench](MessageBuffers& buffers) {
    transfers->put_on_stream(buffers.destination(), buffers.source(), buffers.bytes(), static_cast<int>(bench.peer()));
  };
}
ByHost::Post bare_copies(Bench& bench) {
  return [&bench](MessageBuffers& buffers) {
    bare_copy(bench.world().stream(), bench.world().at(buffers.destination(), static_cast<int>(bench.peer())),
              buffers.source(), buffers.bytes());
  };
}

const ListedCases cases(Command::methods, {by_kernel<Posted>("proxy/copy_engine/signal", EngineKind::host),
                                           by_kernel<Posted>("proxy/peer/signal", EngineKind::device),
                                           by_kernel<Stored>("device/peer/signal", std::nullopt),
                                           by_host("stream/copy_engine/signal", copies, bare_copies),
                                           by_host("host/hybrid/pipelined", staged, nullptr)});

}  // namespace

}  // namespace beeline::bench::post_work_wait_cases
