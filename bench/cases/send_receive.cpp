// SPDX-License-Identifier: Apache-2.0
/// @file
/// Messages by send and receive: in a loop inside one kernel, and as calls on streams; eager, by rendezvous, and as the
/// library chooses; between memory in the heaps, and outside of them, where messages are copied once more.

#include "beeline/collectives/messages.hpp"
#include "beeline/host/distributed_array.hpp"
#include "beeline/host/messages.hpp"
#include "cases/cases.hpp"
#include "cases/packet_rings.hpp"
#include "harness/group_choice.hpp"
#include "harness/message_buffers.hpp"
#include "harness/timed_host.hpp"
#include "harness/timed_kernel.hpp"
#include "peers/nccl/nccl.hpp"

namespace beeline::bench::send_receive_cases {

namespace {

constexpr const char* operation = "send_receive";

/// The protocol and the memory of messages.
struct Travel {
  const char* name;
  bool eager, meets;  ///< forces eager messages or a rendezvous; neither: as the library chooses
  bool outside;       ///< between memory outside the heaps
};
constexpr Travel automatic{"automatic", false, false, false}, eager{"eager", true, false, false},
    rendezvous{"rendezvous", false, true, false}, staged{"staged", false, true, true};

std::string method_of(const Travel& travel) { return std::string("stream/") + travel.name; }

/// Sizes of the messages for which `travel` is possible.
SizeRange sizes_of(const Travel& travel) {
  if (travel.meets) return {.least_bytes = 17};
  if (travel.eager) return {.most_bytes = 512 << 10};
  return {};
}

MessageOptions options_for(const Travel& travel, std::uint64_t bytes) {
  if (travel.meets) return {.eager_bytes = 16};
  if (travel.eager) return {.eager_bytes = bytes, .depth = 4};
  return {};
}

/// Collective. Source and destination outside the heaps: chunks of distributed arrays with one chunk on each rank.
std::shared_ptr<MessageBuffers> outside_buffers(Bench& bench, std::uint64_t bytes) {
  constexpr std::uint64_t page_bytes = 2 << 20;
  const std::uint64_t chunk = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  const auto make = [&] {
    return std::make_shared<DistributedArray<std::byte>>(
        bench.world(), chunk * static_cast<std::size_t>(bench.world().size()), Distribution{.chunk_elements = chunk});
  };
  const auto source = make(), destination = make();
  const std::size_t own = chunk * static_cast<std::size_t>(bench.world().rank());
  return std::make_shared<MessageBuffers>(bench, bytes, std::shared_ptr<std::byte>(source, source->data() + own),
                                          std::shared_ptr<std::byte>(destination, destination->data() + own));
}

/// Source and destination of messages.
struct Place {
  std::byte *source, *destination;
};

/// A library's calls for messages between ranks 0 and 1, on their default streams.
struct Calls {
  std::function<void(const Place&, std::uint64_t bytes)> send, receive;
};

enum class Shape { ping_pong, flood };

/// Times one message to the peer and one back, or messages from rank 0 to rank 1, which answers the last one.
void complete(Measurement& measurement, Bench& bench, const std::shared_ptr<MessageBuffers>& buffers,
              const Calls& calls, Shape shape) {
  const std::uint64_t bytes = measurement.bytes;
  const Place place{buffers->source(), buffers->destination()};
  // A stream takes about a thousand kernels before enqueuing blocks inside the driver.
  measurement.most_iterations = 200;
  if (shape == Shape::ping_pong) {
    measurement.operations_per_iteration = 2;
    const auto bounce = [=, &bench] {
      if (bench.leads()) calls.send(place, bytes);
      calls.receive(place, bytes);
      if (!bench.leads()) calls.send(place, bytes);
    };
    measurement.time = [=, &bench](Rounds rounds) {
      return time_on_host(bench, rounds, bounce, [&] { bench.world().synchronize(); });
    };
  } else {
    measurement.unit = Unit::gigabytes_per_second;
    const auto finish = [=, &bench] {
      bench.leads() ? calls.receive(place, 1) : calls.send(place, 1);
      bench.world().synchronize();
    };
    measurement.time = [=, &bench](Rounds rounds) {
      return time_on_host(
          bench, rounds, [&] { bench.leads() ? calls.send(place, bytes) : calls.receive(place, bytes); }, finish);
    };
  }
  measurement.verify = verify_messages(bench, buffers, measurement.time,
                                       shape == Shape::ping_pong ? Receivers::both : Receivers::second);
}

Calls calls_of(Bench& bench, std::shared_ptr<Messages> messages) {
  const int peer = static_cast<int>(bench.peer());
  const unsigned blocks = bench.options().blocks;
  const auto how = [=](std::uint64_t bytes) { return MessageCall{.blocks = bytes == 1 ? 1 : blocks}; };
  return {[=](const Place& place, std::uint64_t bytes) {
            messages->send_on_stream(place.source, bytes, ElementType::uint8, peer, how(bytes));
          },
          [=](const Place& place, std::uint64_t bytes) {
            messages->receive_on_stream(place.destination, bytes, ElementType::uint8, peer, how(bytes));
          }};
}

Case stream_case(const Travel& travel, Shape shape) {
  const auto prepare = [=](Bench& bench, std::uint64_t bytes) {
    const auto messages = std::make_shared<Messages>(bench.world(), options_for(travel, bytes));
    const MessageCall call = messages->choice(bytes, {.blocks = bench.options().blocks});
    Measurement measurement{.operation = operation, .method = method_of(travel), .bytes = bytes};
    measurement.settings = {{"blocks", std::uint64_t{call.blocks}},
                            {"protocol", messages->is_eager(bytes, call) ? "eager" : "rendezvous"}};
    const Calls calls = calls_of(bench, messages);
    const auto buffers =
        travel.outside ? outside_buffers(bench, bytes) : std::make_shared<MessageBuffers>(bench, bytes);
    complete(measurement, bench, buffers, calls, shape);
    return std::vector{measurement};
  };
  return {operation, method_of(travel), true, prepare, sizes_of(travel)};
}

Case nccl_case(Shape shape) {
  const auto communicators = std::make_shared<nccl::Communicators>();
  const auto prepare = [=](Bench& bench, std::uint64_t bytes) {
    const auto communicator = communicators->get(bench);
    const int peer = static_cast<int>(bench.peer());
    Stream& stream = bench.world().stream();
    const Calls calls{[=, &stream](const Place& place, std::uint64_t count) {
                        communicator->send(place.source, count, peer, stream);
                      },
                      [=, &stream](const Place& place, std::uint64_t count) {
                        communicator->receive(place.destination, count, peer, stream);
                      }};
    Measurement measurement{.operation = operation, .method = "nccl/stream", .bytes = bytes};
    measurement.peer_of = method_of(automatic);
    measurement.settings = {{"version", communicator->version()}};
    complete(measurement, bench, std::make_shared<MessageBuffers>(bench, bytes), calls, shape);
    return std::vector{measurement};
  };
  return {operation, "nccl/stream", true, prepare};
}

template <class Wanted>
struct KernelPingPong {
  static constexpr unsigned max_threads = packet_kernel_threads;

  template <class Grid>
  BEELINE_HOST_DEVICE void operator()(Grid& grid, const Context& ctx, Loop loop, MessageChannel channel,
                                      std::byte* destination, const std::byte* source, std::uint64_t bytes) const {
    const auto group = group_of<Wanted>(grid.block());
    const MessageSession session(group, ctx, channel);
    MessageSender sender(session, loop.peer);
    MessageReceiver receiver(session, loop.peer);
    time_rounds(group, loop, [&](std::uint64_t) {
      return round_trip(
          loop.leads, [&] { return sender.send(source, bytes) == Status::ok; },
          [&] { return receiver.receive(destination, bytes) == Status::ok; });
    });
  }
};

std::vector<Measurement> prepare_in_kernel(Bench& bench, std::uint64_t bytes) {
  const auto messages = std::make_shared<Messages>(bench.world());
  const auto buffers = std::make_shared<MessageBuffers>(bench, bytes);
  const auto timed = std::make_shared<TimedKernel>(bench);
  const MessageChannel channel = messages->channel();
  std::vector<Measurement> all;
  for (const GroupChoice& choice : candidate_groups(bench, bytes, packet_payload_bytes, packet_kernel_threads)) {
    Measurement measurement{.operation = operation, .method = "device/automatic", .bytes = bytes};
    measurement.operations_per_iteration = 2;
    measurement.settings = choice.settings();
    measurement.settings.emplace_back("protocol", channel.is_eager(bytes, 1) ? "eager" : "rendezvous");
    measurement.time = [=, &bench](Rounds rounds) {
      return with_group(choice.kind, [&]<class Wanted>(Wanted) {
        return timed->run(choice.threads, bench.paired(), rounds, KernelPingPong<Wanted>{}, messages->channel(),
                          buffers->destination(), static_cast<const std::byte*>(buffers->source()), bytes);
      });
    };
    measurement.verify = verify_messages(bench, buffers, measurement.time, Receivers::both);
    all.push_back(std::move(measurement));
  }
  return all;
}

const ListedCases latency_cases(Command::latency, {{operation, "device/automatic", true, prepare_in_kernel},
                                                   stream_case(automatic, Shape::ping_pong),
                                                   stream_case(eager, Shape::ping_pong),
                                                   stream_case(rendezvous, Shape::ping_pong),
                                                   stream_case(staged, Shape::ping_pong),
                                                   nccl_case(Shape::ping_pong)});
const ListedCases bandwidth_cases(Command::bandwidth, {stream_case(automatic, Shape::flood),
                                                       stream_case(staged, Shape::flood), nccl_case(Shape::flood)});

}  // namespace

}  // namespace beeline::bench::send_receive_cases
