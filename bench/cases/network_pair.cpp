// SPDX-License-Identifier: Apache-2.0
#include "cases/network_pair.hpp"

#include "beeline/core/error.hpp"

namespace beeline::bench {

namespace {

constexpr std::uint64_t line = 64;

constexpr std::uint64_t whole(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

void require_two_nodes(const Bench& bench) {
  const bool is_far = !bench.paired() || bench.world().host_context().way_to(bench.peer()).way == Way::engine;
  require(bench.everywhere(is_far), Status::unavailable,
          "ranks 0 and 1 share memory: start them on two hosts, or with --split-nodes 2 on one");
}

NetworkPair::NetworkPair(Bench& bench, std::uint64_t bytes, std::uint64_t slots)
    : bench_(bench), bytes_(bytes), slots_(slots), word_place_(whole(bytes * slots, sizeof(std::uint64_t))),
      signals_((require_two_nodes(bench), bench.world()), 1) {
  const std::uint64_t all = whole(word_place_ + sizeof(std::uint64_t), line);
  memory_ = std::make_shared<SymmetricArray<std::byte>>(bench.world(), 2 * all);
  buffers_ =
      std::make_shared<MessageBuffers>(bench, bytes * slots, std::shared_ptr<std::byte>(memory_, memory_->data()),
                                       std::shared_ptr<std::byte>(memory_, memory_->data() + all));
  bare_ = ucx::make_pair(bench, {buffers_->destination(), all});
}

void NetworkPair::put_signal() {
  beeline::put_signal(Thread{}, context(), buffers_->destination(), buffers_->source(), bytes_, &signals_.data()->value,
                      ++sent_, bench_.peer());
}
void NetworkPair::await_signal() {
  const Status status =
      beeline::wait(Thread{}, context(), &signals_.data()->value, Compare::greater_equal, ++awaited_, bench_.peer());
  bench_.require_ok(status, "a put with its signal");
}
void NetworkPair::put(std::uint64_t slot) {
  beeline::put(Thread{}, context(), buffers_->destination() + place(slot), buffers_->source() + place(slot), bytes_,
               bench_.peer());
}
void NetworkPair::signal() { beeline::signal(Thread{}, context(), &signals_.data()->value, ++sent_, bench_.peer()); }
void NetworkPair::quiet() { bench_.require_ok(beeline::quiet(Thread{}, context()), "puts"); }

void NetworkPair::bare_put_from(std::uint64_t place) {
  word_of(buffers_->source()) = ++bare_sent_;
  bare().put(buffers_->source() + place, place, word_place_ + sizeof(std::uint64_t) - place);
  bare().flush();
}
void NetworkPair::await_bare_put() { bare().await(word_of(buffers_->destination()), ++bare_awaited_); }
void NetworkPair::await_bare_messages(std::uint64_t messages) { bare().receive(bare_received_ += messages); }

void NetworkPair::bare_settle() {
  if (bench_.paired()) bare().settle();
}

Measurement network_measurement(const std::shared_ptr<NetworkPair>& pair, Receivers receivers, std::string method,
                                std::function<std::vector<double>(Rounds)> time) {
  const bool is_bare = method.starts_with("ucx/");
  const auto settled = [pair, is_bare, time = std::move(time)](Rounds rounds) {
    const std::vector<double> times = time(rounds);
    if (is_bare) pair->bare_settle();
    return times;
  };
  Measurement measurement = message_measurement(pair->bench(), pair->buffers(), receivers, std::move(method), settled);
  measurement.bytes = pair->bytes();
  return measurement;
}

}  // namespace beeline::bench
