// SPDX-License-Identifier: Apache-2.0
/// @file
/// host/copy_engine/signal: the CPU starts several copies, awaits the last one's end, and signals the peer's CPU.

#include "beeline/device/group.hpp"
#include "beeline/device/signal.hpp"
#include "cases/cases.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"
#include "peers/bare_copy.hpp"

namespace beeline::bench {

namespace {

class HostCopies {
 public:
  HostCopies(Session& session, std::shared_ptr<MessageBuffers> buffers)
      : session_(session), buffers_(std::move(buffers)), signals_(session.world(), 1, Heap::pinned),
        copied_(session.world().stream().make_event()) {}

  std::vector<double> time_library(Rounds rounds) {
    World& world = session_.world();
    return time_on_host(
        session_, rounds,
        [&] {
          if (session_.leads()) world.stream().copy(there(), buffers_->source(), buffers_->bytes());
        },
        [&] { finish_library(); });
  }

  std::vector<double> time_bare(Rounds rounds) {
    World& world = session_.world();
    return time_on_host(
        session_, rounds,
        [&] {
          if (session_.leads()) bare_copy(world.stream(), there(), buffers_->source(), buffers_->bytes());
        },
        [&] {
          if (session_.leads()) await_copies();
        });
  }

 private:
  [[nodiscard]] std::byte* there() const { return session_.world().at(buffers_->destination(), 1); }

  void await_copies() {
    session_.world().stream().record(*copied_);
    session_.world().synchronize(*copied_);
  }

  void finish_library() {
    ++sequence_;
    World& world = session_.world();
    std::uint64_t* arrived = &signals_.data()->value;
    if (session_.leads()) {
      await_copies();
      signal(Thread{}, world.host_context(), arrived, sequence_, 1);
    } else {
      session_.require_ok(wait(Thread{}, world.host_context(), arrived, Compare::greater_equal, sequence_, 0),
                          "waiting for the copies' end");
    }
  }

  Session& session_;
  std::shared_ptr<MessageBuffers> buffers_;
  SymmetricArray<PaddedWord> signals_;
  std::unique_ptr<Event> copied_;
  std::uint64_t sequence_ = 0;
};

std::vector<Measurement> prepare(Session& session, std::uint64_t bytes) {
  auto buffers = std::make_shared<MessageBuffers>(session, bytes);
  auto copies = std::make_shared<HostCopies>(session, buffers);
  const auto measurement_of = [&](std::string method, std::function<std::vector<double>(Rounds)> time) {
    Measurement measurement{.operation = "put", .method = std::move(method), .bytes = bytes};
    measurement.unit = Unit::gigabytes_per_second;
    measurement.most_iterations = 500;  // copies that a CUDA stream takes without blocking inside the driver
    measurement.verify = verify_messages(session, buffers, time, Receivers::second);
    measurement.time = std::move(time);
    return measurement;
  };
  std::vector<Measurement> all;
  all.push_back(measurement_of("bare/copy", [=](Rounds rounds) { return copies->time_bare(rounds); }));
  all.back().peer_of = "host/copy_engine/signal";
  all.push_back(measurement_of("host/copy_engine/signal", [=](Rounds rounds) { return copies->time_library(rounds); }));
  all.back().baseline = 0;
  return all;
}

}  // namespace

Case host_copy_bandwidth() { return {"put", "host/copy_engine/signal", true, prepare}; }

}  // namespace beeline::bench
