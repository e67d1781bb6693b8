// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What engines of different nodes send each other. All of it are active messages: the engine of the target does what
/// the command says, in the order in which the sender's engine has numbered the messages (docs/network.md).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "beeline/core/command.hpp"

namespace beeline {

enum class MessageKind : std::uint32_t {
  hello,        ///< that the sender reaches this rank
  acknowledge,  ///< only `acknowledged`
  ask,          ///< for an acknowledgement of messages up to the number `value`
  abort,        ///< of a team: `request` its id, `value` its abort word; the payload says why
  command,      ///< `command` with its data, if it puts some
  value,        ///< answers a command: what the word held
  data,         ///< answers a get: the payload
  refusal,      ///< answers a command that was not done; the payload says why
  placed,       ///< a `command` that puts data, which the sender has put in place by a key
  ask_key,      ///< for the key of the piece of memory in which the offset `value` of the receiver's slot lies
  key,          ///< answers it: the payload is a KeyOffer and its key
  end_key,      ///< the receiver is to give a key back, that of the piece `value`
  key_ended     ///< answers it: no put by that key is under way, and none will be
};

/// Commands in flight to one rank at most, be it that they are not done or that their answers have not come.
inline constexpr std::uint64_t most_in_flight = 256;
/// Numbered messages from one rank that are not done at most: its commands, its answers to as many, and news.
inline constexpr std::uint64_t most_ahead = 4 * most_in_flight;

/// Precedes each payload. Little-endian, as every platform that Beeline runs on.
struct NetworkMessage {
  std::uint64_t world;         ///< secret of the world: messages of others are dropped
  std::uint64_t number;        ///< from 1 on for each pair, of what is done in order; 0: hello, acknowledge, ask
  std::uint64_t acknowledged;  ///< numbered messages of the receiver's that the sender has done
  std::uint64_t value;
  MessageKind kind;
  std::uint32_t from;      ///< world rank
  std::uint32_t request;   ///< of a command: what its answers name
  std::uint32_t piece;     ///< of a command that is sent in pieces: which one
  std::uint64_t refusals;  ///< messages of this kind among those to the receiver, for what is acknowledged here
  std::uint64_t may_wait;  ///< 1: its acknowledgement may wait for a message the other way, or until it is asked for
  Command command;
};
static_assert(std::is_trivially_copyable_v<NetworkMessage> && sizeof(NetworkMessage) == 128);

/// A payload that is a text.
[[nodiscard]] inline std::string text_in(std::span<const std::byte> payload) {
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

/// What ranks compare before they exchange addresses. Not inline, so that programs hold it in one piece, which a test
/// changes.
[[nodiscard, gnu::noinline]] std::string_view network_protocol() noexcept;

}  // namespace beeline
