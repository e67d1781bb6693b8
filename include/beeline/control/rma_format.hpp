// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The formats of an RMA-style adapter, bit for bit: descriptors of requests, the requester page of a port, and
/// notifications. Posters, adapters and readers of notifications share these functions (docs/adapters.md).
///
///   descriptor, word 0    63 | 62..40   | 39..35   | 34..32        | 31..16 | 15..8 | 7..6 | 5..2    | 1..0
///                          0 | size - 1 | modifier | notifications | node   | vpid  | 0    | command | 3
///   put, get, words 1, 2   source address, destination address
///   lock, words 1, 2       number of the lock; operand to add (63..32) and value to compare with (31..0)
///   notify, words 1, 2     0; a value
///
///   notification, word 0   address; of a lock its number (63..32) and old value (31..0); of `notify` the value
///   notification, word 1  63 | 62..40   | 39..24 | 23..16 | 15..13 | 12..8    | 7..4    | 3..0
///                          0 | size - 1 | node   | vpid   | error  | modifier | command | kind
///
/// Words are in the byte order of the machine. The source gives a notification's command field 16 bits and its parts 3,
/// 5, 5 and 4, which are 17: here the command has 4 bits, as in a descriptor.
///
/// Source: seed 000, 2.4.7, 5.2.2 and 5.6, Table 2.2.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "beeline/core/layout.hpp"

namespace beeline {

/// What an adapter does for a request. `lock` is a fetch-compare-and-add: a 32-bit word of the target's lock address
/// space that equals the given value grows by the operand; its old value is returned in the notification. `notify`
/// notifies the target, and moves no data.
enum class RmaCommand : std::uint8_t { put = 1, get, lock, notify };

/// The units of adapters that a request passes. A set of units says which of them write a notification; the kind of a
/// notification is the unit that has written it.
enum RmaUnit : std::uint32_t { rma_none = 0, rma_requester = 1, rma_completer = 2, rma_responder = 4 };

/// Why an adapter has refused a request, or not notified its target.
enum class RmaError : std::uint8_t {
  none,
  malformed,      ///< constant bits differ, there is a modifier, or the size does not suit the command
  command,        ///< there is no such command
  notifications,  ///< Table 2.2 does not have this set for the command
  port,           ///< there is no such node, or the node has no such port
  address,        ///< memory of either side is not mapped, or there is no such lock
  overflow        ///< done, but the target's notification queue was full: the target has not been notified
};

/// Most bytes of one put or get.
inline constexpr std::uint64_t max_rma_bytes = std::uint64_t{1} << 23;
/// Most ports of a rank.
inline constexpr std::uint32_t max_rma_ports = 1u << 8;
/// The size of a lock, and of a notification without data.
inline constexpr std::uint64_t rma_lock_bytes = sizeof(std::uint32_t), rma_notify_bytes = 1;

/// The unit that notifies the rank that posts a command (the requester for an unknown command), and the unit that
/// notifies its target.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr RmaUnit local_unit(RmaCommand command) {
  return command == RmaCommand::get || command == RmaCommand::lock ? rma_completer : rma_requester;
}
[[nodiscard]] BEELINE_HOST_DEVICE constexpr RmaUnit remote_unit(RmaCommand command) {
  return local_unit(command) == rma_requester ? rma_completer : rma_responder;
}
/// Whether Table 2.2 has the set: no unit, the local unit, or both. A lock has the sets of a get; `notify` has only
/// both units.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr bool is_notification_set(RmaCommand command, std::uint32_t units) {
  const std::uint32_t local = local_unit(command), both = local | remote_unit(command);
  return units == both || (command != RmaCommand::notify && (units == rma_none || units == local));
}

/// `bits` bits of a word, from bit `shift` on.
template <std::uint32_t shift, std::uint32_t bits>
struct RmaField {
  static constexpr std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  [[nodiscard]] BEELINE_HOST_DEVICE static constexpr std::uint64_t in(std::uint64_t value) {
    return (value & mask) << shift;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static constexpr std::uint32_t of(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> shift & mask);
  }
};

/// The fields of a descriptor's word 0.
struct RmaDescriptorFields {
  using Constant = RmaField<0, 2>;
  using Command = RmaField<2, 4>;
  using Gap = RmaField<6, 2>;
  using Vpid = RmaField<8, 8>;
  using Node = RmaField<16, 16>;
  using Notifications = RmaField<32, 3>;
  using Modifier = RmaField<35, 5>;
  using Size = RmaField<40, 23>;
  using Top = RmaField<63, 1>;
};
/// The fields of a notification's word 1.
struct RmaNotificationFields {
  using Kind = RmaField<0, 4>;
  using Command = RmaField<4, 4>;
  using Modifier = RmaField<8, 5>;
  using Error = RmaField<13, 3>;
  using Vpid = RmaField<16, 8>;
  using Node = RmaField<24, 16>;
  using Size = RmaField<40, 23>;
};

/// The three words that a poster stores into a requester page, the first one last.
struct RmaDescriptor {
  std::uint64_t words[3];
};
static_assert(std::is_trivially_copyable_v<RmaDescriptor> && sizeof(RmaDescriptor) == 24);

/// A request, as its poster and its adapter see it.
struct RmaRequest {
  RmaCommand command;
  std::uint32_t notifications;  ///< set of `RmaUnit`
  std::uint32_t node, vpid;     ///< the target: a rank of the team, and the number of one of its ports
  std::uint64_t bytes;          ///< 1 to `max_rma_bytes`; of a lock 4, of `notify` 1
  std::uint64_t source;         ///< address, or the number of a lock
  std::uint64_t destination;    ///< address, the operands of a lock (`rma_operands`), or a value

  [[nodiscard]] BEELINE_HOST_DEVICE constexpr RmaDescriptor descriptor() const {
    using F = RmaDescriptorFields;
    return {{F::Size::in(bytes - 1) | F::Notifications::in(notifications) | F::Node::in(node) | F::Vpid::in(vpid) |
                 F::Command::in(static_cast<std::uint64_t>(command)) | F::Constant::in(3),
             source, destination}};
  }
};

/// The operands of a lock in one word.
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t rma_operands(std::uint32_t compare, std::uint32_t add) {
  return std::uint64_t{add} << 32 | compare;
}

/// A descriptor's request, and why its fields are refused. With an error the request has the fields as posted.
struct DecodedRma {
  RmaRequest request;
  RmaError error;
};

[[nodiscard]] BEELINE_HOST_DEVICE constexpr DecodedRma decode(const RmaDescriptor& descriptor) {
  using F = RmaDescriptorFields;
  const std::uint64_t head = descriptor.words[0];
  const auto command = static_cast<RmaCommand>(F::Command::of(head));
  const RmaRequest request{command,
                           F::Notifications::of(head),
                           F::Node::of(head),
                           F::Vpid::of(head),
                           std::uint64_t{F::Size::of(head)} + 1,
                           descriptor.words[1],
                           descriptor.words[2]};
  if (F::Constant::of(head) != 3 || F::Gap::of(head) != 0 || F::Top::of(head) != 0 || F::Modifier::of(head) != 0)
    return {request, RmaError::malformed};
  if (command < RmaCommand::put || command > RmaCommand::notify) return {request, RmaError::command};
  if ((command == RmaCommand::lock && request.bytes != rma_lock_bytes) ||
      (command == RmaCommand::notify && (request.bytes != rma_notify_bytes || request.source != 0)))
    return {request, RmaError::malformed};
  return {request, is_notification_set(command, request.notifications) ? RmaError::none : RmaError::notifications};
}

/// An entry of a port's notification queue. Word 1 is stored last; it is never 0, which marks a free entry.
struct alignas(16) RmaNotification {
  std::uint64_t address;
  std::uint64_t word;

  [[nodiscard]] BEELINE_HOST_DEVICE constexpr RmaUnit kind() const {
    return static_cast<RmaUnit>(RmaNotificationFields::Kind::of(word));
  }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr RmaCommand command() const {
    return static_cast<RmaCommand>(RmaNotificationFields::Command::of(word));
  }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr RmaError error() const {
    return static_cast<RmaError>(RmaNotificationFields::Error::of(word));
  }
  /// The other side: the target at the rank that has posted the request, the poster at its target.
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t node() const {
    return RmaNotificationFields::Node::of(word);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t vpid() const {
    return RmaNotificationFields::Vpid::of(word);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t bytes() const {
    return std::uint64_t{RmaNotificationFields::Size::of(word)} + 1;
  }
  /// Of a lock: its number, and the value before the request.
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t lock() const {
    return static_cast<std::uint32_t>(address >> 32);
  }
  [[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint32_t lock_value() const {
    return static_cast<std::uint32_t>(address);
  }
};
static_assert(std::is_trivially_copyable_v<RmaNotification> && sizeof(RmaNotification) == 16);

/// Word 1 of a notification about a request.
///   node, vpid  the other side
[[nodiscard]] BEELINE_HOST_DEVICE constexpr std::uint64_t notification_word(const RmaRequest& request, RmaUnit unit,
                                                                            RmaError error, std::uint32_t node,
                                                                            std::uint32_t vpid) {
  using F = RmaNotificationFields;
  return F::Kind::in(unit) | F::Command::in(static_cast<std::uint64_t>(request.command)) |
         F::Error::in(static_cast<std::uint64_t>(error)) | F::Vpid::in(vpid) | F::Node::in(node) |
         F::Size::in(request.bytes - 1);
}

/// A requester page. The offset at which a poster stores a descriptor determines the meaning of its addresses:
///   logical   offsets in the slots of the two ranks (`Context::offset_in_slot`)
///   physical  addresses of the poster's process: any of its own memory, and the peer's as it is mapped there
/// A page holds one request. Once it is over, the adapter sets word 0 to 0.
struct alignas(64) RmaPage {
  alignas(32) RmaDescriptor logical;
  alignas(32) RmaDescriptor physical;
};
static_assert(offsetof(RmaPage, logical) == 0 && offsetof(RmaPage, physical) == 32 && sizeof(RmaPage) == 64);

/// A port as posters, adapters and readers share it. Zeroed memory is a new port.
struct RmaPortMemory {
  RmaPage page;
  PaddedWord written;              ///< notifications that adapters have begun to write
  PaddedWord freed;                ///< read pointer's write-back: notifications that the reader has freed
  PaddedWord overflowed;           ///< notifications that adapters had no free entry for
  PaddedWord asleep;               ///< as `CommandRing::asleep`
  alignas(64) std::uint64_t read;  ///< reader's: notifications that it has read
  std::uint64_t known_overflows;   ///< reader's: the part of `overflowed` that it has reported
};
static_assert(std::is_trivially_copyable_v<RmaPortMemory> && sizeof(RmaPortMemory) == 384);

}  // namespace beeline
