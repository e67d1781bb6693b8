// SPDX-License-Identifier: Apache-2.0
#include "cases/network_pair.hpp"

#include "beeline/core/error.hpp"

namespace beeline::bench {

namespace {

constexpr std::uint64_t line = 64;

constexpr const char* name_of(Heap heap) { return heap == Heap::pinned ? "host" : "gpu"; }

constexpr std::uint64_t whole(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

void require_two_nodes(const Bench& bench) {
  const bool is_remote =
      !bench.paired() || bench.world().host_context().access_to(bench.peer()).access == PeerAccess::engine;
  require(bench.everywhere(is_remote), Status::unavailable,
          "ranks 0 and 1 share memory: start them on two hosts, or with --split-nodes 2 on one");
}

void require_host_ranks(const Bench& bench) {
  bench.require_alike();
  require(!bench.world().device().is_gpu(), Status::unavailable,
          "measured with calls of CPU threads, which only host ranks make: start them with --device cpu");
}

std::vector<Memories> all_memories(const Bench& bench) {
  bench.require_alike();
  std::vector<Memories> all = {host_memories};
  if (bench.world().device().is_gpu())
    all.insert(all.end(),
               {{Heap::pinned, Heap::symmetric}, {Heap::symmetric, Heap::pinned}, {Heap::symmetric, Heap::symmetric}});
  return all;
}

NetworkPair::NetworkPair(Bench& bench, std::uint64_t bytes, std::uint64_t slots)
    : bench_(bench), bytes_(bytes), slots_(slots), word_place_(whole(bytes * slots, sizeof(std::uint64_t))),
      signals_((require_two_nodes(bench), bench.world()), 1), timed_(bench) {
  const std::uint64_t all = whole(word_place_ + sizeof(std::uint64_t), line);
  memory_ = std::make_shared<SymmetricArray<std::byte>>(bench.world(), 2 * all);
  host_memory_ = bench.world().device().is_gpu()
                     ? std::make_shared<SymmetricArray<std::byte>>(bench.world(), 2 * all, Heap::pinned)
                     : memory_;
  buffers_ = buffers_in(host_memories);
  try {
    bare_ = ucx::make_pair(bench, {buffers_->source(), 2 * all});
  } catch (const Error& error) {
    if (error.code() != Status::unavailable) throw;
    lacking_ = error.what();
  }
}

std::shared_ptr<MessageBuffers> NetworkPair::buffers_in(Memories memories) const {
  const auto& from = memories.source == Heap::pinned ? host_memory_ : memory_;
  const auto& to = memories.destination == Heap::pinned ? host_memory_ : memory_;
  return std::make_shared<MessageBuffers>(bench_, bytes_ * slots_, std::shared_ptr<std::byte>(from, from->data()),
                                          std::shared_ptr<std::byte>(to, to->data() + to->count() / 2));
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
void NetworkPair::get() {
  const Status status =
      beeline::get(Thread{}, context(), buffers_->destination(), buffers_->source(), bytes_, bench_.peer());
  bench_.require_ok(status, "a get");
}
void NetworkPair::signal() { beeline::signal(Thread{}, context(), &signals_.data()->value, ++sent_, bench_.peer()); }
void NetworkPair::quiet() { bench_.require_ok(beeline::quiet(Thread{}, context()), "puts"); }

void NetworkPair::bare_put_from(std::uint64_t place) {
  word_of(buffers_->source()) = ++bare_sent_;
  bare().put(buffers_->source() + place, there(place), word_place_ + sizeof(std::uint64_t) - place);
  bare().flush();
}
void NetworkPair::await_bare_put() { bare().await(word_of(buffers_->destination()), ++bare_awaited_); }
void NetworkPair::await_bare_messages(std::uint64_t messages) { bare().receive(bare_received_ += messages); }

void NetworkPair::bare_settle() {
  if (bench_.paired()) bare().settle();
}

Measurement network_measurement(const std::shared_ptr<NetworkPair>& pair, Receivers receivers, std::string method,
                                std::function<std::vector<double>(Rounds)> time, Memories memories) {
  const bool is_bare = method.starts_with("ucx/");
  const auto settled = [pair, is_bare, time = std::move(time)](Rounds rounds) {
    const std::vector<double> times = time(rounds);
    if (is_bare) pair->bare_settle();
    return times;
  };
  Measurement measurement =
      message_measurement(pair->bench(), pair->buffers_in(memories), receivers, std::move(method), settled);
  measurement.bytes = pair->bytes();
  if (is_bare) measurement.lacking = pair->lacking();
  measurement.settings = {{"source", name_of(memories.source)}, {"destination", name_of(memories.destination)}};
  return measurement;
}

}  // namespace beeline::bench
