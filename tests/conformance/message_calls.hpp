// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Messages on streams between ranks, checked at their destination.

#include <cstdint>
#include <string>
#include <vector>

#include "beeline/host/messages.hpp"
#include "tests/conformance/foreign_memory.hpp"
#include "tests/conformance/guarded_area.hpp"

namespace beeline_test {

/// Small slots and chunks, so that messages of thousands of bytes take several of them.
inline constexpr beeline::MessageOptions small_messages{
    .sessions = 3, .eager_bytes = 600, .depth = 4, .chunk_bytes = 1024};

/// Size of a message, and where its source and destination are.
struct MessageShape {
  std::size_t bytes;
  std::size_t source_offset = 0, destination_offset = 0;
  bool source_in_heap = true, destination_in_heap = true;
  unsigned blocks = 0;

  [[nodiscard]] std::string text() const {
    return join(bytes, " bytes in ", blocks, " blocks from ", source_in_heap ? "the heap" : "elsewhere", " + ",
                source_offset, " to ", destination_in_heap ? "the heap" : "elsewhere", " + ", destination_offset);
  }
};

/// Memory of a rank inside the heap, and memory outside of it that other ranks' kernels cannot reach.
class MessageMemory {
 public:
  /// Collective.
  MessageMemory(RankTest& test, std::size_t longest)
      : heap_(test.world(), longest + 1024), elsewhere_(test, longest + 1024) {}

  [[nodiscard]] std::byte* data(bool in_heap) const { return in_heap ? heap_.data() : elsewhere_.data(); }

 private:
  beeline::SymmetricArray<std::byte> heap_;
  ForeignMemory elsewhere_;
};

/// Sends and receives of one rank.
class MessageCalls {
 public:
  /// Collective.
  MessageCalls(RankTest& test, beeline::Messages& messages, std::size_t longest)
      : test_(test), messages_(messages), source_(test, longest), destination_(test, longest) {}

  /// The bytes of message `number` from `rank` to the rank that receives it.
  [[nodiscard]] static std::vector<std::byte> data_of(std::uint64_t number, int rank, std::size_t bytes) {
    return pattern(number * 64 + static_cast<std::uint64_t>(rank), bytes);
  }

  /// Every member sends to the member `distance` ahead and receives from the member as far behind, by `call(sent,
  /// received)`.
  template <class Call>
  void check(const MessageShape& shape, std::uint64_t number, int distance, const Call& call) {
    const beeline::Team& team = messages_.team();
    const int size = team.size(), rank = team.rank();
    const int to = (rank + distance) % size, from = (rank + size - distance % size) % size;
    std::byte* const source = source_.data(shape.source_in_heap) + shape.source_offset;
    test_.write(source, data_of(number, rank, shape.bytes));
    GuardedArea area(test_, destination_.data(shape.destination_in_heap), shape.destination_offset, shape.bytes);
    call(beeline::SentMessage{source, shape.bytes, to}, beeline::ReceivedMessage{area.data(), shape.bytes, from});
    area.check(data_of(number, from, shape.bytes), join("message ", number, " of ", shape.text()));
  }

  /// By one kernel.
  void send_receive(const MessageShape& shape, std::uint64_t number, int distance) {
    check(shape, number, distance, [&](const beeline::SentMessage& sent, const beeline::ReceivedMessage& received) {
      messages_.send_receive_on_stream(sent, received, beeline::ElementType::uint8, {.blocks = shape.blocks});
      test_.world().synchronize();
    });
  }

 private:
  RankTest& test_;
  beeline::Messages& messages_;
  MessageMemory source_, destination_;
};

}  // namespace beeline_test
