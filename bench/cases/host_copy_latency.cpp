// SPDX-License-Identifier: Apache-2.0
/// @file
/// host/copy_engine/signal: the CPU starts the copy, awaits its end, and signals the peer's CPU; ping-pong.

#include "beeline/device/group.hpp"
#include "beeline/device/signal.hpp"
#include "cases/cases.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"

namespace beeline::bench {

namespace {

class HostPingPong {
 public:
  HostPingPong(Bench& bench, std::shared_ptr<MessageBuffers> buffers)
      : bench_(bench), buffers_(std::move(buffers)), signals_(bench.world(), 1, Heap::pinned),
        copied_(bench.world().stream().make_event()) {}

  std::vector<double> time(Rounds rounds) {
    return time_on_host(bench_, rounds, [this] { round(); });
  }

 private:
  void round() {
    ++sequence_;
    if (bench_.leads()) send();
    bench_.require_ok(
        wait(Thread{}, bench_.world().host_context(), signal(), Compare::greater_equal, sequence_, bench_.peer()),
        "waiting for the peer's message");
    if (!bench_.leads()) send();
  }

  void send() {
    World& world = bench_.world();
    const std::uint32_t peer = bench_.peer();
    world.stream().copy(world.at(buffers_->destination(), static_cast<int>(peer)), buffers_->source(),
                        buffers_->bytes());
    world.stream().record(*copied_);
    world.synchronize(*copied_);
    beeline::signal(Thread{}, world.host_context(), signal(), sequence_, peer);
  }

  [[nodiscard]] std::uint64_t* signal() const { return &signals_.data()->value; }

  Bench& bench_;
  std::shared_ptr<MessageBuffers> buffers_;
  SymmetricArray<PaddedWord> signals_;
  std::unique_ptr<Event> copied_;
  std::uint64_t sequence_ = 0;
};

std::vector<Measurement> prepare(Bench& bench, std::uint64_t bytes) {
  auto buffers = std::make_shared<MessageBuffers>(bench, bytes);
  auto ping_pong = std::make_shared<HostPingPong>(bench, buffers);
  const auto time = [=](Rounds rounds) { return ping_pong->time(rounds); };
  Measurement measurement{.operation = "message", .method = "host/copy_engine/signal", .bytes = bytes};
  measurement.operations_per_iteration = 2;
  measurement.time = time;
  measurement.verify = verify_messages(bench, buffers, time, Receivers::both);
  return {measurement};
}

}  // namespace

Case host_copy_latency() { return {"message", "host/copy_engine/signal", true, prepare}; }

}  // namespace beeline::bench
