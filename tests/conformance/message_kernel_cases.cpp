// SPDX-License-Identifier: Apache-2.0
// Messages in kernels: by each kind of group and by grids, in sessions that stay open, and time-outs that continue.
#include "beeline/collectives/messages.hpp"
#include "tests/conformance/group_kind.hpp"
#include "tests/conformance/message_calls.hpp"

namespace beeline_test::message_kernel_cases {

namespace {

using namespace beeline;

/// Arguments of a kernel of messages: each rank sends to the next rank and receives from the previous one.
struct KernelArguments {
  MessageChannel channel;
  std::uint32_t* source;
  std::uint32_t* destination;
  std::uint64_t* late;  ///< [2, rounds] set by a sender that timed out; set by a receiver that timed out
  std::uint32_t rounds;
  bool some_are_late;
};

constexpr std::uint32_t most_words = 700;  // messages are eager up to 150 words

BEELINE_HOST_DEVICE std::uint32_t words_of_round(std::uint32_t round) {
  constexpr std::uint32_t words[] = {1, 2, 150, most_words, 0, 33, 151};
  return words[round % 7];
}
BEELINE_HOST_DEVICE bool is_eager_round(std::uint32_t round) { return words_of_round(round) <= 150; }
BEELINE_HOST_DEVICE std::uint32_t word_of(std::uint32_t round, std::uint32_t rank, std::uint32_t i) {
  return round * 100'000 + rank * 1000 + i;
}

/// Repeats `call(timeout)` until it does not time out; calls `tell` after the first time-out.
template <class Call, class Tell>
BEELINE_HOST_DEVICE Status insist(bool some_are_late, Call call, Tell tell) {
  if (!some_are_late) return call(Timeout::none());
  bool told = false;
  for (std::uint32_t tries = 0;; ++tries) {
    const Status status = call(tries % 4 == 0 ? Timeout{20'000} : Timeout::test());
    if (status != Status::timeout) return status;
    if (!told) tell();
    told = true;
  }
}

/// Which end is late in a round, so that the other end times out first: the sender, the receiver of a message that is
/// not eager, or neither. The sender of a few chunks to another node does not wait.
BEELINE_HOST_DEVICE bool sender_is_late(const KernelArguments& a, std::uint32_t round) {
  return a.some_are_late && round % 3 == 0;
}
BEELINE_HOST_DEVICE bool receiver_is_late(const KernelArguments& a, std::uint32_t round) {
  return a.some_are_late && round % 3 == 1 && !is_eager_round(round) && a.channel.across == nullptr;
}

/// Sends all rounds by `send(data, bytes, timeout)`.
template <class Group, class Send>
BEELINE_HOST_DEVICE void send_rounds(const Group& group, const Context& ctx, DeviceReport* report,
                                     const KernelArguments& a, Send send) {
  const std::uint32_t to = (ctx.rank + 1) % ctx.size;
  for (std::uint32_t round = 0; round < a.rounds; ++round) {
    const std::uint32_t words = words_of_round(round);
    for (std::uint32_t i = group.thread_rank(); i < words; i += group.size()) a.source[i] = word_of(round, ctx.rank, i);
    group.sync();
    if (sender_is_late(a, round))
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(group, ctx, a.late + a.rounds + round, Compare::equal, 1, to));
    const Status status = insist(
        a.some_are_late, [&](Timeout timeout) { return send(a.source, std::size_t{4} * words, timeout); },
        [&] { signal(group, ctx, a.late + round, 1, to); });
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
    group.sync();
  }
}

/// Receives all rounds by `receive(data, bytes, timeout)`.
template <class Group, class Receive>
BEELINE_HOST_DEVICE void receive_rounds(const Group& group, const Context& ctx, DeviceReport* report,
                                        const KernelArguments& a, Receive receive) {
  const std::uint32_t from = (ctx.rank + ctx.size - 1) % ctx.size;
  for (std::uint32_t round = 0; round < a.rounds; ++round) {
    const std::uint32_t words = words_of_round(round);
    if (receiver_is_late(a, round))
      BEELINE_DEVICE_CHECK_EQ(report, Status::ok, wait(group, ctx, a.late + round, Compare::equal, 1, from));
    const Status status = insist(
        a.some_are_late, [&](Timeout timeout) { return receive(a.destination, std::size_t{4} * words, timeout); },
        [&] { signal(group, ctx, a.late + a.rounds + round, 1, from); });
    BEELINE_DEVICE_CHECK_EQ(report, Status::ok, status);
    for (std::uint32_t i = group.thread_rank(); i < words; i += group.size())
      BEELINE_DEVICE_CHECK_EQ(report, word_of(round, from, i), a.destination[i]);
    group.sync();
  }
}

/// The first group of block 0 sends; the first group of block 1 receives.
template <GroupKind kind>
struct GroupKernel {
  static constexpr unsigned max_threads = 128;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, KernelArguments a) const {
    const auto group = group_of<kind>(grid);
    const GroupPlace place = place_of<kind>(grid);
    if (place.index % (place.count / grid.blocks()) != 0) return;
    const MessageSession session(group, ctx, a.channel);
    if (grid.block_rank() == 0) {
      MessageSender sender(session, (ctx.rank + 1) % ctx.size);
      send_rounds(group, ctx, report, a, [&](const void* data, std::size_t bytes, Timeout timeout) {
        return sender.send(data, bytes, {.timeout = timeout});
      });
    } else {
      MessageReceiver receiver(session, (ctx.rank + ctx.size - 1) % ctx.size);
      receive_rounds(group, ctx, report, a, [&](void* data, std::size_t bytes, Timeout timeout) {
        return receiver.receive(data, bytes, {.timeout = timeout});
      });
    }
  }
};

/// As above, by calls that leave no session open.
struct CallsKernel {
  static constexpr unsigned max_threads = 128;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, KernelArguments a) const {
    const auto& block = grid.block();
    const MessageSession session(block, ctx, a.channel);
    if (grid.block_rank() == 0)
      send_rounds(block, ctx, report, a, [&](const void* data, std::size_t bytes, Timeout timeout) {
        return send(session, data, bytes, (ctx.rank + 1) % ctx.size, {.timeout = timeout});
      });
    else
      receive_rounds(block, ctx, report, a, [&](void* data, std::size_t bytes, Timeout timeout) {
        return receive(session, data, bytes, (ctx.rank + ctx.size - 1) % ctx.size, {.timeout = timeout});
      });
  }
};

void run_kernels(RankTest& test, bool some_are_late) {
  World& world = test.world();
  Messages messages(world, small_messages);
  MessageMemory source(test, 4 * most_words), destination(test, 4 * most_words);
  const std::uint32_t rounds = some_are_late ? 21 : under_thread_sanitizer || test.on_several_nodes() ? 14 : 70;
  for (const bool source_in_heap : {true, false})
    for (const bool destination_in_heap : {true, false}) {
      const auto run = [&](auto kernel, const char* what) {
        const Signals late(world, std::size_t{2} * rounds);
        const KernelArguments arguments{messages.channel(),
                                        reinterpret_cast<std::uint32_t*>(source.data(source_in_heap)),
                                        reinterpret_cast<std::uint32_t*>(destination.data(destination_in_heap)),
                                        late.data(),
                                        rounds,
                                        some_are_late};
        test.run(test.shape(2, true), kernel, arguments,
                 join("messages by ", what, some_are_late ? ", some late" : ""));
      };
      for_each_group_kind(world, [&]<GroupKind kind> { run(GroupKernel<kind>{}, name(kind)); });
      run(CallsKernel{}, "calls");
    }
}

BEELINE_CASE(message_sessions, messages_in_kernels, 1) { run_kernels(test, false); }
BEELINE_CASE(message_sessions, messages_continue_after_a_timeout, 1) { run_kernels(test, true); }

struct GridArguments {
  MessageChannel channel;
  std::byte* data;
  std::size_t bytes;
  bool sends;
  bool times_out;
  Status expected = Status::ok;
};

/// A whole grid sends or receives; each block continues by itself after a time-out.
struct GridKernel {
  static constexpr unsigned max_threads = 128;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, DeviceReport* report, GridArguments a) const {
    const MessageSession session(grid, ctx, a.channel);
    const Timeout timeout = a.times_out ? Timeout{5'000} : Timeout::none();
    const std::uint32_t next = (ctx.rank + 1) % ctx.size, before = (ctx.rank + ctx.size - 1) % ctx.size;
    Status status = Status::timeout;
    while (status == Status::timeout)
      status = a.sends ? send(session, a.data, a.bytes, next, {.timeout = timeout})
                       : receive(session, a.data, a.bytes, before, {.timeout = timeout});
    BEELINE_DEVICE_CHECK_EQ(report, a.expected, status);
  }
};

BEELINE_CASE(message_sessions, messages_by_grids, 2) {
  Messages messages(test.world(), small_messages);
  MessageCalls calls(test, messages, 20'000);
  std::uint64_t number = 0;
  for (const std::size_t bytes : {std::size_t{500}, std::size_t{20'000}})
    for (const bool in_heap : {true, false})
      for (const bool times_out : {false, true})
        calls.check({.bytes = bytes, .source_in_heap = in_heap, .destination_in_heap = !in_heap}, ++number, 1,
                    [&](const SentMessage& sent, const ReceivedMessage& received) {
                      const bool sends_first = test.rank() % 2 == 0;
                      for (const bool sends : {sends_first, !sends_first})
                        test.run(test.shape(3, true), GridKernel{},
                                 GridArguments{messages.channel(),
                                               sends ? static_cast<std::byte*>(const_cast<void*>(sent.source))
                                                     : static_cast<std::byte*>(received.destination),
                                               bytes, sends, times_out},
                                 join(bytes, " bytes by a grid"));
                    });
  for (const bool sends : {true, false})
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{500}, std::size_t{20'000}})
      test.run(test.shape(4, true), GridKernel{},
               GridArguments{messages.channel(), nullptr, bytes, sends, false, Status::invalid_argument},
               "4 blocks on 3 sessions");
  calls.send_receive({.bytes = 500}, ++number, 1);
}

/// The host's call on one rank is matched by a grid's call on another.
BEELINE_CASE(message_sessions, messages_between_grids_and_hosts, 2) {
  test.skip_if(test.on_several_nodes() && (test.on_gpu() || test.world().mixed()),
               "kernels of a GPU have links of their own");
  Messages messages(test.world(), small_messages);
  MessageCalls calls(test, messages, 20'000);
  constexpr unsigned blocks = 3;
  std::uint64_t number = 0;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{20}, std::size_t{500}, std::size_t{20'000}})
    calls.check({.bytes = bytes}, ++number, 1, [&](const SentMessage& sent, const ReceivedMessage& received) {
      auto* const source = static_cast<std::byte*>(const_cast<void*>(sent.source));
      auto* const destination = static_cast<std::byte*>(received.destination);
      if (test.rank() % 2 == 0) {
        test.run(test.shape(blocks, true), GridKernel{}, GridArguments{messages.channel(), source, bytes, true, false},
                 "sent by a grid");
        messages.receive_on_stream(destination, bytes, ElementType::uint8, received.peer, {.blocks = blocks});
      } else {
        messages.receive_on_stream(destination, bytes, ElementType::uint8, received.peer, {.blocks = blocks});
        test.run(test.shape(blocks, true), GridKernel{}, GridArguments{messages.channel(), source, bytes, true, false},
                 "sent by a grid");
      }
      test.world().synchronize();
    });
}

}  // namespace

}  // namespace beeline_test::message_kernel_cases
