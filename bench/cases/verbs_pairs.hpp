// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Verbs-style queue pairs between ranks 0 and 1 in one of four placements, and memory of both, for the cases of
/// adapters.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "beeline/control/verbs.hpp"
#include "beeline/device/signal.hpp"
#include "beeline/host/verbs_queues.hpp"
#include "cases/adapter_placements.hpp"
#include "harness/message_buffers.hpp"

namespace beeline::bench::verbs_pairs {

enum class Protocol { immediate, flag };
inline constexpr const char* completion = "completion";

inline std::string method_of(Placement placement, const char* protocol) {
  return std::string(name_of(placement)) + "/verbs/" + protocol;
}

/// The queues of a rank, for kernels or CPU threads that post, or for kernels that ask a CPU thread to post.
struct Queues {
  VerbsQueuesView view;
  VerbsAssistedView mailboxes;
  bool is_assisted;

  BEELINE_HOST_DEVICE Status try_post(std::uint32_t pair, const VerbsRequest& request) const {
    return is_assisted ? post_assisted(Thread{}, mailboxes, pair, request) : post_send(Thread{}, view, pair, request);
  }
  /// Waits for the next completion of a send ring or, in assisted queues, of the ring that is named.
  BEELINE_HOST_DEVICE bool await(const Context& ctx, std::uint32_t pair, bool receives, VerbsCompletion& done) const {
    const Status status = is_assisted ? wait_assisted(Thread{}, ctx, mailboxes, pair, receives, done)
                                      : wait_completion(Thread{}, ctx, view, pair, done);
    return status == Status::ok && done.status == VerbsStatus::ok;
  }
  BEELINE_HOST_DEVICE bool post(const Context& ctx, std::uint32_t pair, const VerbsRequest& request) const {
    for (;;) {
      const Status status = try_post(pair, request);
      VerbsCompletion done;
      if (status == Status::ok) return true;
      if (status != Status::no_resource || !await(ctx, pair, false, done)) return false;
    }
  }
  BEELINE_HOST_DEVICE bool post_receive_without_memory() const {
    const VerbsRequest receive{.opcode = VerbsOpcode::receive};
    return (is_assisted ? post_assisted(Thread{}, mailboxes, 0, receive) : post_receive(Thread{}, view, 0, receive)) ==
           Status::ok;
  }
};

/// The actions of a placement: `adapter_placements.hpp`.
struct Actions {
  static constexpr std::uint32_t window = 16;
  Queues queues;
  VerbsSegment to, from;
  VerbsSegment flag_to, flag_from;
  std::uint64_t *flag, *flag_source;
  const void* payload;  ///< `from` if the request is to hold its bytes; otherwise nullptr
  std::uint32_t peer;
  Protocol protocol;

  BEELINE_HOST_DEVICE VerbsRequest write() const {
    return payload == nullptr ? write_request(to, from) : inline_write_request(to, payload);
  }
  BEELINE_HOST_DEVICE bool send(const Context& ctx, std::uint64_t sequence) const {
    VerbsRequest data = write();
    if (protocol == Protocol::immediate) {
      data.opcode = VerbsOpcode::write_with_immediate, data.immediate = static_cast<std::uint32_t>(sequence);
      data.signaled = sequence % window == 0;
      return queues.post(ctx, 0, data);
    }
    VerbsRequest word =
        queues.is_assisted ? write_request(flag_to, flag_from) : inline_write_request(flag_to, &sequence);
    if (queues.is_assisted) *flag_source = sequence;  // its last value was written, since the peer has answered
    data.signaled = false, word.signaled = sequence % window == 0;
    return queues.post(ctx, 0, data) && queues.post(ctx, 0, word);
  }
  BEELINE_HOST_DEVICE bool receive(const Context& ctx, std::uint64_t sequence) const {
    if (protocol == Protocol::flag)
      return wait(Thread{}, ctx, flag, Compare::greater_equal, sequence, peer) == Status::ok;
    VerbsCompletion done;
    do {
      if (!queues.await(ctx, 0, true, done)) return false;
    } while (!done.is_receive);
    return queues.post_receive_without_memory();
  }
  /// A window of writes, and the wait for their completion.
  BEELINE_HOST_DEVICE bool put(const Context& ctx, std::uint64_t) const {
    VerbsRequest request = write();
    for (std::uint32_t i = 0; i < window; ++i) {
      request.signaled = i + 1 == window;
      if (!queues.post(ctx, 0, request)) return false;
    }
    VerbsCompletion done;
    for (std::uint32_t left = queues.is_assisted ? window : 1; left > 0; --left)
      if (!queues.await(ctx, 0, false, done)) return false;
    return true;
  }
};

inline constexpr std::uint32_t receives_ahead = 4;

/// Posts the receives of a ping-pong, of which one is in use at a time.
struct PostReceives {
  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context&, Queues queues) const {
    if (grid.block().thread_rank() != 0) return;
    for (std::uint32_t i = 0; i < receives_ahead; ++i) static_cast<void>(queues.post_receive_without_memory());
  }
};

/// Queue pairs between ranks 0 and 1, and memory of both.
class Verbs {
 public:
  Verbs(Bench& bench, std::uint64_t bytes, Placement placement, std::uint32_t pairs = 1)
      : bench_(bench), placement_(placement), buffers_(std::make_shared<MessageBuffers>(bench, bytes * pairs)),
        flags_(bench.world(), 2, heap_of(placement)),
        queues_(with_room(bench, placement).world(),
                std::vector<int>(pairs, bench.paired() ? static_cast<int>(bench.peer()) : bench.world().rank()),
                {.engine = engine_of(placement),
                 .posts_from_cpu = placement == Placement::host,
                 .assisted = placement == Placement::assisted}),
        bytes_(bytes) {
    const auto registered = [&](const void* memory, std::uint64_t length) {
      return queues_.register_memory(memory, std::max<std::uint64_t>(length, 1));
    };
    from_ = registered(buffers_->source(), buffers_->bytes());
    to_ = registered(buffers_->destination(), buffers_->bytes());
    flag_ = registered(flags_.data(), flags_.bytes());
    bench.world().barrier();
    const int peer = bench.paired() ? static_cast<int>(bench.peer()) : bench.world().rank();
    to_ = queues_.key_of(to_, peer), flag_to_ = queues_.key_of(flag_, peer);
  }

  [[nodiscard]] const std::shared_ptr<MessageBuffers>& buffers() const { return buffers_; }
  [[nodiscard]] Placement placement() const { return placement_; }
  [[nodiscard]] Queues queues() const {
    const bool is_assisted = placement_ == Placement::assisted;
    return {queues_.view(), is_assisted ? queues_.assisted() : VerbsAssistedView{}, is_assisted};
  }
  [[nodiscard]] Actions actions(Protocol protocol) const {
    const auto segment = [&](const void* at, std::uint64_t length, VerbsKey key) {
      return segment_of(bench_.world().host_context(), at, static_cast<std::uint32_t>(length), key);
    };
    std::uint64_t* const flag = &flags_.data()[0].value;
    std::uint64_t* const source = &flags_.data()[1].value;
    return {queues(),
            segment(buffers_->destination(), bytes_, to_),
            segment(buffers_->source(), bytes_, from_),
            segment(flag, sizeof *flag, flag_to_),
            segment(source, sizeof *source, flag_),
            flag,
            source,
            holds_payload() ? buffers_->source() : nullptr,
            bench_.peer(),
            protocol};
  }
  /// Collective.
  void post_receives() {
    if (placement_ == Placement::host) {
      for (std::uint32_t i = 0; i < receives_ahead; ++i) static_cast<void>(queues().post_receive_without_memory());
    } else if (bench_.paired()) {
      launch(bench_.world(), {}, PostReceives{}, queues());
      bench_.world().synchronize();
      if (placement_ == Placement::assisted) await_posted();
    }
    bench_.world().barrier();
  }

 private:
  /// Waits until the CPU thread has posted the receives for which the kernel has asked.
  void await_posted() const {
    const std::uint64_t& doorbell = queues_.view().doorbells[0].receive.value;
    bench_.require_ok(beeline::detail::await_engine(bench_.world().host_context(), {},
                                                    [&] {
                                                      return beeline::detail::load_acquired(doorbell) ==
                                                             beeline::detail::big_endian(std::uint64_t{receives_ahead});
                                                    }),
                      "receives that a CPU thread posts");
  }
  /// Whether requests hold their bytes: few, and in memory that the thread which writes the requests can read.
  [[nodiscard]] bool holds_payload() const {
    const bool is_readable = placement_ != Placement::host || !bench_.world().device().is_gpu();
    return bytes_ <= max_verbs_payload && is_readable && placement_ != Placement::assisted;
  }

  Bench& bench_;
  const Placement placement_;
  std::shared_ptr<MessageBuffers> buffers_;
  SymmetricArray<PaddedWord> flags_;  ///< the receiver's flag, and the sender's value for it
  VerbsQueues queues_;
  const std::uint64_t bytes_;
  VerbsKey from_, to_, flag_, flag_to_;
};

}  // namespace beeline::bench::verbs_pairs
