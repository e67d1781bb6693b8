// SPDX-License-Identifier: Apache-2.0
// Messages on streams: every size, alignment and memory, eager and by rendezvous, in order, between all pairs at once,
// in teams, to the rank itself; and refusals.
#include <chrono>
#include <memory>

#include "tests/conformance/collective_calls.hpp"
#include "tests/conformance/message_calls.hpp"

namespace beeline_test::message_cases {

namespace {

using namespace beeline;

constexpr auto bytes_type = ElementType::uint8;

BEELINE_CASE(messages, messages_of_every_size, 1) {
  Messages messages(test.world(), small_messages);
  constexpr std::size_t most = 20'011;
  MessageCalls calls(test, messages, most);
  std::uint64_t number = 0;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{515}, std::size_t{600},
                                  std::size_t{601}, std::size_t{4096}, most})
    for (const bool source_in_heap : {true, false})
      for (const bool destination_in_heap : {true, false}) {
        ++number;
        const std::size_t skew = number % 3 == 0 ? 0 : number % 16;
        calls.send_receive({.bytes = bytes,
                            .source_offset = skew,
                            .destination_offset = number % 2 == 0 ? skew : 3 * skew,
                            .source_in_heap = source_in_heap,
                            .destination_in_heap = destination_in_heap,
                            .blocks = static_cast<unsigned>(number % 4)},
                           number, static_cast<int>(number % 3));
      }
}

BEELINE_CASE(messages, long_messages, 1) {
  Messages messages(test.world());
  MessageCalls calls(test, messages, most_bytes);
  std::uint64_t number = 0;
  for (const bool source_in_heap : {true, false})
    for (const bool destination_in_heap : {true, false})
      calls.send_receive(
          {.bytes = most_bytes - number, .source_in_heap = source_in_heap, .destination_in_heap = destination_in_heap},
          ++number, 1);
}

/// The last block has no part of the message.
BEELINE_CASE(messages, messages_of_few_bytes_in_many_blocks, 1) {
  Messages messages(test.world(), {.sessions = 3, .eager_bytes = 16, .depth = 2, .chunk_bytes = 256});
  MessageCalls calls(test, messages, 17);
  std::uint64_t number = 0;
  for (const bool source_in_heap : {true, false})
    for (const bool destination_in_heap : {true, false})
      calls.send_receive(
          {.bytes = 17, .source_in_heap = source_in_heap, .destination_in_heap = destination_in_heap, .blocks = 3},
          ++number, 1);
}

/// Two calls, one after another on one stream: some ranks send first, others receive first.
BEELINE_CASE(messages, messages_by_two_calls, 2) {
  Messages messages(test.world(), small_messages);
  MessageCalls calls(test, messages, 5000);
  std::uint64_t number = 0;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{9}, std::size_t{600}, std::size_t{5000}})
    for (const bool in_heap : {true, false})
      calls.check({.bytes = bytes, .destination_in_heap = in_heap}, ++number, 1,
                  [&](const SentMessage& sent, const ReceivedMessage& received) {
                    const bool sends_first = test.rank() % 2 == 0;
                    for (const bool sends : {sends_first, !sends_first})
                      if (sends)
                        messages.send_on_stream(sent.source, sent.count, bytes_type, sent.peer);
                      else
                        messages.receive_on_stream(received.destination, received.count, bytes_type, received.peer);
                    test.world().synchronize();
                  });
}

BEELINE_CASE(messages, eager_messages_need_no_receiver, 1) {
  Messages messages(test.world(), small_messages);
  const std::size_t bytes = small_messages.eager_bytes;
  MessageMemory source(test, bytes), destination(test, bytes * small_messages.depth);
  for (std::uint64_t lap = 0; lap < 3; ++lap) {
    for (std::uint32_t i = 0; i < small_messages.depth; ++i) {
      test.write(source.data(true), MessageCalls::data_of(lap * 10 + i, test.rank(), bytes - i));
      messages.send_on_stream(source.data(true), bytes - i, bytes_type, test.ahead(1));
      test.world().synchronize();  // nobody has received yet
    }
    test.world().barrier();
    for (std::uint32_t i = 0; i < small_messages.depth; ++i)
      messages.receive_on_stream(destination.data(false) + i * bytes, bytes - i, bytes_type, test.behind(1));
    test.world().synchronize();
    for (std::uint32_t i = 0; i < small_messages.depth; ++i)
      check_bytes(MessageCalls::data_of(lap * 10 + i, test.behind(1), bytes - i),
                  test.read(destination.data(false) + i * bytes, bytes - i), join("message ", i, " of lap ", lap));
  }
}

/// A stream for messages to, and one for messages from, each other rank.
struct PeerStreams {
  PeerStreams(World& world, int peers) {
    for (int i = 0; i < 2 * peers; ++i) streams.push_back(world.make_stream());
    world.barrier();  // a stream cannot be created on a GPU while another rank's kernel spins
  }
  [[nodiscard]] Stream* sending(std::size_t peer) const { return streams[2 * peer].get(); }
  [[nodiscard]] Stream* receiving(std::size_t peer) const { return streams[2 * peer + 1].get(); }
  void synchronize(World& world) const {
    for (const auto& stream : streams) world.synchronize(*stream);
  }
  std::vector<std::unique_ptr<Stream>> streams;
};

std::size_t size_of_message(std::uint64_t number) {
  constexpr std::size_t sizes[] = {8, 3000, 0, 600, 601, 17, 1, 4100};
  return sizes[number % 8] + number % 3;
}

BEELINE_CASE(messages, messages_keep_their_order, 2) {
  World& world = test.world();
  Messages messages(world, small_messages);
  const PeerStreams streams(world, 1);
  constexpr std::uint64_t count = 48;
  constexpr std::size_t room = 4200;
  MessageMemory source(test, count * room), destination(test, count * room);
  for (std::uint64_t number = 0; number < count; ++number)
    test.write(source.data(true) + number * room, MessageCalls::data_of(number, test.rank(), size_of_message(number)));
  for (std::uint64_t number = 0; number < count; ++number) {
    const std::size_t bytes = size_of_message(number), place = number * room;
    const bool to_heap = number / 8 % 2 == 0;
    messages.send_on_stream(source.data(true) + place, bytes, bytes_type, test.ahead(1),
                            {.stream = streams.sending(0)});
    messages.receive_on_stream(destination.data(to_heap) + place, bytes, bytes_type, test.behind(1),
                               {.stream = streams.receiving(0)});
  }
  streams.synchronize(world);
  for (std::uint64_t number = 0; number < count; ++number)
    check_bytes(MessageCalls::data_of(number, test.behind(1), size_of_message(number)),
                test.read(destination.data(number / 8 % 2 == 0) + number * room, size_of_message(number)),
                join("message ", number));
}

BEELINE_CASE(messages, messages_between_all_pairs, 2) {
  World& world = test.world();
  test.skip_if(world.ranks_on_device() > 1,
               "ranks share a GPU: more streams than it has hardware queues (docs/design.md, Residency)");
  Messages messages(world, small_messages);
  const auto peers = static_cast<std::size_t>(test.size()) - 1;
  const PeerStreams streams(world, static_cast<int>(peers));
  constexpr std::size_t room = 6000;
  MessageMemory source(test, room), destination(test, peers * room);
  std::uint64_t number = 100;
  for (const std::size_t bytes : {std::size_t{40}, std::size_t{5999}})
    for (const bool to_heap : {true, false}) {
      ++number;
      test.write(source.data(true), MessageCalls::data_of(number, test.rank(), bytes));
      for (std::size_t i = 0; i < peers; ++i) {
        const MessageCall to{.stream = streams.sending(i), .blocks = 1},
            from{.stream = streams.receiving(i), .blocks = 1};
        const int distance = static_cast<int>(i) + 1;
        messages.send_on_stream(source.data(true), bytes, bytes_type, test.ahead(distance), to);
        messages.receive_on_stream(destination.data(to_heap) + i * room, bytes, bytes_type, test.ahead(distance), from);
      }
      streams.synchronize(world);
      for (std::size_t i = 0; i < peers; ++i)
        check_bytes(MessageCalls::data_of(number, test.ahead(static_cast<int>(i) + 1), bytes),
                    test.read(destination.data(to_heap) + i * room, bytes), join(bytes, " bytes"));
    }
}

/// Sequence numbers pass those at which slots are rewritten, and 2^32.
BEELINE_CASE(messages, message_numbers_wrap, 1) {
  for (const std::uint32_t first : {0xffffffffu - 3, (1u << 30) - 4}) {
    MessageOptions options = small_messages;
    options.first_message = first;
    Messages messages(test.world(), options);
    MessageCalls calls(test, messages, 5000);
    for (std::uint64_t number = 0; number < 16; ++number)
      calls.send_receive({.bytes = size_of_message(number), .destination_in_heap = number % 4 == 0, .blocks = 2},
                         number, 1);
  }
}

BEELINE_CASE(messages, messages_in_two_teams, 2) {
  World& world = test.world();
  const std::vector<int> members = test.alternate_ranks();
  const std::unique_ptr<Team> team = world.make_team(members);
  Messages messages(*team, small_messages);
  MessageCalls calls(test, messages, 3001);
  for (std::uint64_t number = 0; number < 8; ++number)
    calls.send_receive(
        {.bytes = number % 2 == 0 ? std::size_t{77} : std::size_t{3001}, .destination_in_heap = number < 4}, number,
        static_cast<int>(number % 3));
  world.barrier();
}

/// Channels of two teams that share no call.
BEELINE_CASE(messages, messages_in_teams_alone, 2) {
  World& world = test.world();
  const std::vector<int> members = test.alternate_ranks();
  const std::unique_ptr<Team> team = world.make_team(members);
  MessageMemory source(test, 3001), destination(test, 3001);
  for (std::uint64_t number = 0; number < (test.rank() % 2 == 0 ? 4u : 2u); ++number) {
    Messages messages(*team, small_messages);
    const std::size_t bytes = number % 2 == 0 ? 77 : 3001;
    const int after = (team->rank() + 1) % team->size(), before = (team->rank() + team->size() - 1) % team->size();
    test.write(source.data(true), MessageCalls::data_of(number, team->rank(), bytes));
    messages.send_receive_on_stream({source.data(true), bytes, after}, {destination.data(false), bytes, before},
                                    bytes_type);
    world.synchronize();
    check_bytes(MessageCalls::data_of(number, before, bytes), test.read(destination.data(false), bytes),
                join("message ", number, " of a team alone"));
    team->barrier();
  }
  world.barrier();
}

BEELINE_CASE(messages, messages_to_oneself, 1) {
  Messages messages(test.world(), small_messages);
  MessageCalls calls(test, messages, 5000);
  calls.send_receive({.bytes = 5000}, 1, 0);
  calls.send_receive({.bytes = 5000, .source_in_heap = false, .destination_in_heap = false}, 2, 0);
  calls.check({.bytes = 600}, 3, 0, [&](const SentMessage& sent, const ReceivedMessage& received) {
    messages.send_on_stream(sent.source, 600, bytes_type, sent.peer);
    messages.receive_on_stream(received.destination, 600, bytes_type, received.peer);
    test.world().synchronize();
    expect_refused("to itself, more than the 600 of an eager message",
                   [&] { messages.send_on_stream(sent.source, 601, bytes_type, sent.peer); });
  });
}

/// A probe finds a message after it was sent and until it was received.
BEELINE_CASE(messages, messages_are_probed, 2) {
  World& world = test.world();
  Messages messages(world, small_messages);
  expect_refused(join("peer ", test.size(), " of a team").c_str(),
                 [&] { static_cast<void>(messages.probe(test.size())); });
  if (test.on_gpu() && !world.mixed())
    return expect_refused("which the CPU does not poll", [&] { static_cast<void>(messages.probe(0)); });
  MessageMemory source(test, 5000), destination(test, 5000);
  const std::unique_ptr<Stream> sending = world.make_stream();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{600}, std::size_t{5000}}) {
    BEELINE_CHECK(!messages.probe(test.behind(1)));  // not sent yet
    world.barrier();
    messages.send_on_stream(source.data(true), bytes, bytes_type, test.ahead(1), {.stream = sending.get()});
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!messages.probe(test.behind(1))) BEELINE_CHECK(std::chrono::steady_clock::now() < limit);
    messages.receive_on_stream(destination.data(false), bytes, bytes_type, test.behind(1));
    world.synchronize();
    world.synchronize(*sending);
    BEELINE_CHECK(!messages.probe(test.behind(1)));
    world.barrier();
  }
}

BEELINE_CASE(messages, messages_refused, 1) {
  World& world = test.world();
  Messages messages(world, small_messages);
  const SymmetricArray<float> vector(world, 64);
  float* const data = vector.data();
  constexpr auto f32 = ElementType::float32;
  expect_refused(join("peer ", test.size(), " of a team of ", test.size()).c_str(),
                 [&] { messages.send_on_stream(data, 1, f32, test.size()); });
  expect_refused("peer -1 of", [&] { messages.receive_on_stream(data, 1, f32, -1); });
  expect_refused("the source is a null pointer", [&] { messages.send_on_stream(nullptr, 1, f32, 0); });
  expect_refused("not aligned", [&] { messages.receive_on_stream(reinterpret_cast<std::byte*>(data) + 1, 1, f32, 0); });
  expect_refused("more than an address space", [&] { messages.send_on_stream(data, SIZE_MAX / 4, f32, 0); });
  expect_refused("at most 274877906943", [&] { messages.send_on_stream(data, std::size_t{1} << 47, f32, 0); });
  expect_refused("element type 9", [&] { messages.send_on_stream(data, 1, static_cast<ElementType>(9), 0); });
  expect_refused("4 blocks for a message on a channel of 3 sessions",
                 [&] { messages.receive_on_stream(data, 1, f32, 0, {.blocks = 4}); });
  expect_refused("overlap", [&] { messages.send_receive_on_stream({data, 8, 0}, {data + 4, 8, 0}, f32); });
  expect_refused("depth 3 of a message channel", [&] { Messages(world, {.depth = 3}); });
  expect_refused("chunk_bytes 100", [&] { Messages(world, {.chunk_bytes = 100}); });
  expect_refused("2000 sessions", [&] { Messages(world, {.sessions = 2000}); });
  if (test.size() > 1)
    expect_refused("give different options for messages",
                   [&] { Messages(world, {.eager_bytes = 64 + static_cast<std::size_t>(test.rank())}); });
}

/// Many ranks on few cores exchange a few messages each.
BEELINE_CASE(crowded_messages, crowded_messages, 1) {
  Messages messages(test.world(), {.sessions = 1, .eager_bytes = 64, .depth = 2, .chunk_bytes = 256});
  MessageCalls calls(test, messages, 999);
  for (std::uint64_t number = 0; number < 6; ++number)
    calls.send_receive(
        {.bytes = number % 2 == 0 ? std::size_t{64} : std::size_t{999}, .destination_in_heap = number < 3}, number,
        1 + 9 * static_cast<int>(number));
}

}  // namespace

}  // namespace beeline_test::message_cases
