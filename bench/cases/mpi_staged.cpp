// SPDX-License-Identifier: Apache-2.0
/// @file
/// mpi/staged: the baseline of seed 002. One CPU copies the message out of its device and sends it by MPI; the other
/// CPU receives it and copies it into its device, all one after the other. An empty kernel runs before each MPI
/// barrier, because the CPU has the results of kernels only between kernels.
/// Source: seed 002 (MPI + CUDA).

#include "beeline/host/launch.hpp"
#include "cases/cases.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"
#include "peers/mpi/mpi.hpp"

namespace beeline::bench::mpi_staged_cases {

namespace {

constexpr const char* method = "mpi/staged";

struct EmptyKernel {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid&, const Context&) const {}
};

/// Messages that go through a buffer in pinned host memory.
class MpiMessages {
 public:
  /// Collective.
  MpiMessages(Bench& bench, std::uint64_t bytes)
      : bench_(bench), communicator_(mpi::communicator(bench)),
        buffers_(std::make_shared<MessageBuffers>(bench, bytes)), staging_(bench.world(), bytes, Heap::pinned) {}

  [[nodiscard]] const std::shared_ptr<MessageBuffers>& buffers() const { return buffers_; }

  std::vector<double> ping_pong(Rounds rounds) {
    return time_on_host(bench_, rounds, [this] {
      if (bench_.leads()) send();
      receive();
      if (!bench_.leads()) send();
    });
  }
  std::vector<double> flood(Rounds rounds) {
    std::byte answer{};
    return time_on_host(
        bench_, rounds, [this] { bench_.leads() ? send() : receive(); },
        [&] { bench_.leads() ? communicator_->receive(&answer, 1, peer()) : communicator_->send(&answer, 1, peer()); });
  }

 private:
  [[nodiscard]] int peer() const { return static_cast<int>(bench_.peer()); }
  void send() {
    bench_.world().copy(staging_.data(), buffers_->source(), buffers_->bytes());
    communicator_->send(staging_.data(), buffers_->bytes(), peer());
  }
  void receive() {
    communicator_->receive(staging_.data(), buffers_->bytes(), peer());
    bench_.world().copy(buffers_->destination(), staging_.data(), buffers_->bytes());
  }

  Bench& bench_;
  std::shared_ptr<mpi::Communicator> communicator_;
  std::shared_ptr<MessageBuffers> buffers_;
  SymmetricArray<std::byte> staging_;
};

template <Receivers receivers>
std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  const auto messages = std::make_shared<MpiMessages>(bench, bytes);
  return {message_measurement(bench, messages->buffers(), receivers, method, [=](Rounds rounds) {
    return receivers == Receivers::both ? messages->ping_pong(rounds) : messages->flood(rounds);
  })};
}

std::vector<Measurement> prepare_barrier(Bench& bench, std::uint64_t) {
  Measurement measurement{.operation = "barrier", .method = method};
  require(bench.world().size() == 2, Status::unavailable, "seed 002 has two ranks");
  measurement.time = [&bench, communicator = mpi::communicator(bench)](Rounds rounds) {
    return time_on_host(bench, rounds, [&] {
      launch(bench.world(), {}, EmptyKernel{});
      bench.world().synchronize();
      communicator->barrier();
    });
  };
  return {measurement};
}

const ListedCases latency_cases(Command::latency, {{"message", method, true, prepare<Receivers::both>},
                                                   {"barrier", method, false, prepare_barrier}});
const ListedCases bandwidth_cases(Command::bandwidth, {{"put", method, true, prepare<Receivers::second>}});
const ListedCases network_cases(Command::network, {{"message", method, true, prepare<Receivers::both>},
                                                   {"put", method, true, prepare<Receivers::second>, {64 << 10}}});

}  // namespace

}  // namespace beeline::bench::mpi_staged_cases
