// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Messages between engines of different nodes. All are active messages: the target's engine carries out their
/// commands, in the order in which the sender's engine has numbered the messages (docs/network.md).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "beeline/core/command.hpp"

namespace beeline {

enum class MessageKind : std::uint32_t {
  hello,        ///< shows that the sender reaches this rank
  acknowledge,  ///< carries only `acknowledged`
  ask,          ///< asks for an acknowledgement of messages up to the number `value`
  abort,        ///< aborts a team: `request` its id, `value` its abort word; the payload says why
  command,      ///< `command`, with its data if it puts any
  value,        ///< answers a command: the old value of the word
  data,         ///< answers a get: the payload has the data
  refusal,      ///< answers a command that was refused; the payload says why
  placed,       ///< a `command` whose data the sender has already put in place by a key
  ask_key,      ///< asks for the key of the piece of memory that contains the offset `value` of the receiver's slot
  key,          ///< answers `ask_key`: the payload is a KeyOffer and its key
  end_key,      ///< asks the receiver to give back the key of the piece `value`
  key_ended     ///< answers `end_key`: no put uses the key any more
};

/// Most commands in flight to one rank: commands that are not done, or whose answers have not arrived.
inline constexpr std::uint64_t most_in_flight = 256;
/// Most numbered messages from one rank that are not done: commands, as many answers, and others.
inline constexpr std::uint64_t most_ahead = 4 * most_in_flight;

/// The header of each message. Little-endian, as every platform that Beeline runs on.
struct NetworkMessage {
  std::uint64_t world;         ///< secret of the world: messages of other worlds are dropped
  std::uint64_t number;        ///< counts from 1 for each pair of ranks; 0 if unordered: hello, acknowledge, ask
  std::uint64_t acknowledged;  ///< the receiver's numbered messages that the sender has done
  std::uint64_t value;
  MessageKind kind;
  std::uint32_t from;      ///< world rank of the sender
  std::uint32_t request;   ///< identifies a command; its answers repeat it
  std::uint32_t piece;     ///< index of the piece, if a command is sent in pieces; of the first entry, for a batch
  std::uint64_t refusals;  ///< refusals sent to the receiver so far, for the messages acknowledged here
  std::uint64_t may_wait;  ///< 1: the acknowledgement may wait for a message in the other direction, or a request
  Command command;
};
static_assert(std::is_trivially_copyable_v<NetworkMessage> && sizeof(NetworkMessage) == 128);

/// Length of a message's header in bytes: messages of kinds without a command leave out its last member.
[[nodiscard]] constexpr std::size_t header_bytes(MessageKind kind) {
  const bool has_command = kind == MessageKind::command || kind == MessageKind::placed;
  return has_command ? sizeof(NetworkMessage) : offsetof(NetworkMessage, command);
}
/// Sets `message`, which is zero, to a header that has arrived. Returns false if the header has another length.
[[nodiscard]] inline bool take_header(NetworkMessage& message, std::span<const std::byte> header) {
  if (header.size() != sizeof(NetworkMessage) && header.size() != offsetof(NetworkMessage, command)) return false;
  std::memcpy(static_cast<void*>(&message), header.data(), header.size());
  return header.size() == header_bytes(message.kind);
}

/// A payload that is a text.
[[nodiscard]] inline std::string text_in(std::span<const std::byte> payload) {
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

/// The name of the protocol, which ranks compare before they exchange addresses. Not inline, so that programs hold the
/// text in one piece, which a test changes.
[[nodiscard, gnu::noinline]] std::string_view network_protocol() noexcept;

}  // namespace beeline
