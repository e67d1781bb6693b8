// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The engine's side of a verbs-style queue pair: decodes the work requests of its send ring into commands, takes the
/// peer's posted receives, and writes the completions of both. See adapter_source.hpp for its functions.
///
/// All members of a team can read each other's receive rings and keys. So the sender's engine does all the work of a
/// request, also at the peer: it needs no answer, and the receiver's engine need not run.

#include <cstdint>
#include <type_traits>

#include "beeline/control/impl/verbs_format.hpp"
#include "beeline/device/impl/caller_check.hpp"
#include "beeline/device/impl/verbs.hpp"
#include "beeline/device/wait.hpp"

namespace beeline {

/// A completion queue as an engine writes to it.
struct VerbsCompletionRing {
  VerbsCompletionEntry* entries;  ///< [depth]
  VerbsCompletionWords* words;
  std::uint32_t depth;  ///< a power of two
};

/// One end of a connection, as an engine that serves either end reads and writes it.
struct VerbsEnd {
  std::uint32_t number, rank;         ///< queue pair number; world rank
  const VerbsRequestEntry* receives;  ///< [depth]
  VerbsDoorbells* doorbells;
  const VerbsKeyEntry* keys;  ///< [max_verbs_keys] of the rank
  VerbsCompletionRing completions;
  PaddedWord* withdrawn;  ///< keys that the rank has withdrawn; in the engine's memory, and written by the rank
};

/// Cached data of an end, so that the server need not read a table or a word in distant memory each time.
struct VerbsKnown {
  VerbsKeyEntry key;        ///< the key that was looked up last; 0: none
  std::uint64_t withdrawn;  ///< keys withdrawn when it was looked up
  std::uint64_t produced;   ///< the completion queue's count when last read or written
  std::uint64_t consumed;   ///< the poller's count of consumed completions when last read
};

/// A queue pair for the engine that serves its send ring.
struct VerbsConnection {
  VerbsEnd own, peer;
  const VerbsRequestEntry* sends;  ///< [depth]
  std::byte* slot;                 ///< start of the own rank's slot
  std::uint32_t depth;             ///< entries of each ring; a power of two
};

/// A request whose completion has not been written.
struct VerbsPending {
  std::uint64_t last;   ///< sequence of its last command, or of the last command before it
  std::uint64_t value;  ///< old value of an atomic
  std::uint32_t bytes, immediate, receive;
  VerbsOpcode opcode;
  VerbsStatus status, receive_status;
  bool signaled, has_receive;
};

/// What a server keeps.
struct VerbsServed {
  std::uint64_t next, done;                ///< requests decoded; of these, with completions
  std::uint64_t commands, over;            ///< commands taken; of these, complete
  std::uint64_t receives;                  ///< receives of the peer that were taken
  VerbsKnown known[2];                     ///< of the own end and the peer's
  std::uint32_t first_staged, end_staged;  ///< of `VerbsRing::staged`
  bool failed;                             ///< a request has failed: later ones are flushed
  bool is_lost;                            ///< the doorbell was rung too far: nothing is known of later requests

  /// The state of a server that continues after `sends` posted requests; requests without a completion get none.
  [[nodiscard]] VerbsServed behind(std::uint64_t sends) const {
    VerbsServed next{};
    next.next = next.done = sends;
    next.receives = receives;  // the peer's ring continues
    return next;
  }
};

/// A queue pair for its server. Engines change it for each request, so it shares no `fetched_bytes`.
struct alignas(128) VerbsRing {
  VerbsConnection connection;
  VerbsServed served;     ///< zeroed at first
  Command staged[2];      ///< commands of the request decoded last that have not been taken
  VerbsPending* pending;  ///< [depth]
};

/// Serves one queue pair. One thread at a time uses it.
class VerbsServer {
 public:
  using Ring = VerbsRing;
  BEELINE_HOST_DEVICE VerbsServer() = default;
  BEELINE_HOST_DEVICE explicit VerbsServer(Ring& ring)
      : ring_(&ring), doorbells_(ring.connection.own.doorbells), sends_(ring.connection.sends),
        completions_(ring.connection.own.completions), withdrawn_{ring.connection.own.withdrawn,
                                                                  ring.connection.peer.withdrawn},
        pending_(ring.pending), s_(ring.served), rung_(ring.served.next), number_(ring.connection.own.number),
        peer_(ring.connection.peer.rank), depth_(ring.connection.depth) {
    if (s_.done != s_.next) latest_ = in_memory(s_.next - 1);
  }
  BEELINE_HOST_DEVICE void save() {
    ring_->served = s_;
    if (s_.done != s_.next) in_memory(s_.next - 1) = latest_;
  }

  [[nodiscard]] BEELINE_HOST_DEVICE bool has_next() const {
    return s_.first_staged != s_.end_staged || (!s_.is_lost && posted<true>(doorbells_->send) != s_.next);
  }

  [[nodiscard]] BEELINE_HOST_DEVICE bool take(Command& command) {
    for (;;) {
      if (s_.first_staged != s_.end_staged) {
        command = ring_->staged[s_.first_staged++];
        command.sequence = ++s_.commands;
        return true;
      }
      if (s_.is_lost || s_.next - s_.done == depth_) return false;
      if (rung_ == s_.next) rung_ = posted<true>(doorbells_->send);
      if (rung_ == s_.next) return false;
      if (decode(rung_, command)) {
        command.sequence = ++s_.commands;
        return true;
      }
      complete(s_.over);
    }
  }

  [[nodiscard]] BEELINE_HOST_DEVICE bool has_known() const {
    return s_.first_staged != s_.end_staged || (!s_.is_lost && rung_ != s_.next);
  }

  BEELINE_HOST_DEVICE void answer(const Command& command, std::uint64_t value) {
    change_pending(command.sequence, [value](VerbsPending& pending) { pending.value = value; });
  }
  BEELINE_HOST_DEVICE void refused(const Command& command) {
    change_pending(command.sequence, [this](VerbsPending& pending) {
      pending.status = pending.receive_status = VerbsStatus::refused;
      pending.last = s_.commands;
    });
    s_.first_staged = s_.end_staged;
    s_.failed = true;
  }
  BEELINE_HOST_DEVICE void complete(std::uint64_t commands) {
    s_.over = commands;
    for (; s_.done != s_.next; ++s_.done) {
      const VerbsPending pending = s_.done + 1 == s_.next ? latest_ : in_memory(s_.done);
      if (pending.last > commands) return;
      finish(pending);
    }
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t* asleep() const { return &doorbells_->asleep.value; }

 private:
  using Word = detail::SystemAtomic<std::uint64_t>;
  [[nodiscard]] BEELINE_HOST_DEVICE const VerbsConnection& link() const { return ring_->connection; }

  /// A request in the machine's byte order.
  struct Fields {
    std::uint32_t owner_opcode, index, immediate, remote_key, bytes;
    std::uint32_t flags, segments, payload_bytes;
    std::uint64_t remote_address, tail[4];

    [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t bytes_of(std::uint32_t segment) const {
      return static_cast<std::uint32_t>(tail[2 * segment] >> 32);
    }
    [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t key_of(std::uint32_t segment) const {
      return static_cast<std::uint32_t>(tail[2 * segment]);
    }
    [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t address_of(std::uint32_t segment) const {
      return tail[2 * segment + 1];
    }
    [[nodiscard]] BEELINE_HOST_DEVICE bool is_inline() const { return (flags & verbs_inline) != 0; }
  };
  /// Bytes of memory at one end, as up to two segments.
  struct Piece {
    std::uint64_t offset;
    std::uint32_t bytes;
  };

  /// A word with the scope of its writers: the own device, or all.
  template <bool is_own>
  using WordOf = std::conditional_t<is_own && detail::executor == DeviceKind::gpu, detail::DeviceAtomic<std::uint64_t>,
                                    detail::SystemAtomic<std::uint64_t>>;
  template <bool is_own = false>
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint64_t posted(const PaddedWord& doorbell) {
    const WordOf<is_own> word(const_cast<std::uint64_t&>(doorbell.value));
    return detail::big_endian(word.load(std::memory_order_acquire));
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static Fields read(const VerbsRequestEntry& entry) {
    std::uint64_t words[8];
    const auto* const from = reinterpret_cast<const std::byte*>(&entry);
    BEELINE_UNROLL
    for (int i = 0; i < 8; ++i) words[i] = detail::big_endian(machine::load_as<std::uint64_t>(from + 8 * i));
    const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
    return {low(words[0] >> 32),
            low(words[1] >> 32),
            low(words[1]),
            low(words[3] >> 32),
            low(words[3]),
            low(words[0] >> 24) & 0xffu,
            low(words[0] >> 16) & 0xffu,
            low(words[0]) & 0xffffu,
            words[2],
            {words[4], words[5], words[6], words[7]}};
  }

  [[nodiscard]] BEELINE_HOST_DEVICE VerbsPending& in_memory(std::uint64_t request) const {
    return pending_[request & (depth_ - 1)];
  }
  /// Changes the pending request of a command. Both calls of `change` are inlined, so that `latest_` has no address.
  template <class Change>
  BEELINE_HOST_DEVICE void change_pending(std::uint64_t sequence, Change change) {
    std::uint64_t request = s_.done;
    while (request + 1 != s_.next && in_memory(request).last < sequence) ++request;
    if (request + 1 == s_.next)
      change(latest_);
    else
      change(in_memory(request));
  }

  /// Decodes the next request. Returns whether it has commands: the first one in `command`, the others staged.
  BEELINE_HOST_DEVICE bool decode(std::uint64_t rung, Command& command) {
    if (s_.done != s_.next) in_memory(s_.next - 1) = latest_;
    VerbsPending& pending = latest_;
    pending = {s_.commands, 0, 0, 0, 0, VerbsOpcode::none, VerbsStatus::ok, VerbsStatus::ok, true, false};
    s_.first_staged = s_.end_staged = 0;
    std::uint32_t commands = 0;
    if (s_.failed) {
      pending.status = VerbsStatus::flushed;
    } else if (rung - s_.next > depth_) {
      pending.status = VerbsStatus::doorbell_too_far;
    } else {
      // These loads and those of the request overlap, and together take as long as either alone.
      for (int end = 0; end < 2; ++end)
        withdrawals_[end] = Word(withdrawn_[end]->value).load(std::memory_order_relaxed);
      const Fields fields = read(sends_[s_.next & (depth_ - 1)]);
      pending.status = begin(fields, pending, command, commands);
    }
    if (pending.status != VerbsStatus::ok) {
      s_.is_lost |= rung - s_.next > depth_;
      s_.failed = true;
      commands = s_.end_staged = 0;
    }
    pending.last += commands;
    ++s_.next;
    return commands != 0;
  }

  BEELINE_HOST_DEVICE VerbsStatus begin(const Fields& fields, VerbsPending& pending, Command& command,
                                        std::uint32_t& commands) {
    const VerbsStatus header = check_header(fields, s_.next);
    if (header != VerbsStatus::ok) return header;
    const std::uint32_t code = fields.owner_opcode & ~verbs_owner_bit;
    if (!is_opcode(code)) return VerbsStatus::bad_opcode;
    pending.opcode = static_cast<VerbsOpcode>(code);
    pending.signaled = (fields.flags & verbs_signaled) != 0;
    pending.bytes = fields.bytes;
    command = Command{};
    command.peer = peer_;
    switch (pending.opcode) {
      case VerbsOpcode::write:
      case VerbsOpcode::write_with_immediate:
      case VerbsOpcode::read:
        return begin_access(fields, pending, command, commands);
      case VerbsOpcode::send:
        return begin_send(fields, pending, command, commands);
      case VerbsOpcode::fetch_add:
      case VerbsOpcode::compare_swap:
        commands = 1;
        return begin_atomic(fields, pending, command);
      default:
        return VerbsStatus::bad_opcode;
    }
  }

  /// Checks owner and index of an entry.
  BEELINE_HOST_DEVICE VerbsStatus check_header(const Fields& fields, std::uint64_t number) const {
    const auto index = static_cast<std::uint32_t>(number);
    const std::uint32_t owner = detail::owner_of_lap(number, depth_);
    if (fields.owner_opcode == verbs_stamp) return VerbsStatus::no_request;
    if (fields.owner_opcode >> 31 == owner && fields.index == index) return VerbsStatus::ok;
    const std::uint32_t swapped = detail::big_endian(fields.owner_opcode);
    if (swapped >> 31 == owner && is_opcode(swapped & ~verbs_owner_bit) && detail::big_endian(fields.index) == index)
      return VerbsStatus::wrong_byte_order;
    return fields.owner_opcode >> 31 == owner ? VerbsStatus::bad_index : VerbsStatus::no_request;
  }
  [[nodiscard]] BEELINE_HOST_DEVICE static bool is_opcode(std::uint32_t value) {
    return value != 0 && value <= static_cast<std::uint32_t>(VerbsOpcode::receive);
  }

  /// The bytes of a request's payload or segments must be `bytes` in all.
  BEELINE_HOST_DEVICE static bool has_length(const Fields& fields) {
    if (fields.is_inline())
      return fields.payload_bytes == fields.bytes && fields.bytes <= max_verbs_payload && fields.segments == 0;
    if (fields.segments > max_verbs_segments) return false;
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < max_verbs_segments; ++i) sum += i < fields.segments ? fields.bytes_of(i) : 0;
    return sum == fields.bytes;
  }

  /// Whether a key names memory of this end that holds the range. The table, which may be in memory far away, is read
  /// if the key is not that of the previous request, or if the rank has withdrawn keys since.
  ///   end  0: the own; 1: the peer's
  template <int end>
  BEELINE_HOST_DEVICE bool is_registered(std::uint32_t key, std::uint64_t offset, std::uint64_t bytes) {
    VerbsKnown& known = s_.known[end];
    if (key == 0) return false;  // `known.key` is 0 until a key has been looked up
    if ((known.key.key != key || known.withdrawn != withdrawals_[end]) &&
        !look_up(end == 0 ? link().own : link().peer, known, key))
      return false;
    return offset >= known.key.offset && offset - known.key.offset <= known.key.bytes &&
           bytes <= known.key.bytes - (offset - known.key.offset);
  }
  BEELINE_HOST_DEVICE static bool look_up(const VerbsEnd& end, VerbsKnown& known, std::uint32_t key) {
    known.key.key = 0;
    known.withdrawn = Word(end.withdrawn->value).load(std::memory_order_acquire);
    if (detail::rank_of_key(key) != end.rank) return false;
    const VerbsKeyEntry& entry = end.keys[detail::entry_of_key(key)];
    const auto held = [&] {
      return detail::SystemAtomic<std::uint32_t>(const_cast<std::uint32_t&>(entry.key)).load(std::memory_order_acquire);
    };
    if (held() != key) return false;
    const std::uint64_t first = machine::load_scalar(&entry.offset), length = machine::load_scalar(&entry.bytes);
    if (held() != key) return false;
    known.key = {key, 0, first, length};
    return true;
  }
  BEELINE_HOST_DEVICE bool has_local(const Fields& fields) {
    for (std::uint32_t i = 0; i < max_verbs_segments; ++i)
      if (i < fields.segments && !is_registered<0>(fields.key_of(i), fields.address_of(i), fields.bytes_of(i)))
        return false;
    return true;
  }

  BEELINE_HOST_DEVICE VerbsStatus begin_access(const Fields& fields, VerbsPending& pending, Command& command,
                                               std::uint32_t& commands) {
    const bool reads = pending.opcode == VerbsOpcode::read;
    if (!has_length(fields) || (reads && fields.is_inline())) return VerbsStatus::bad_length;
    if (!has_local(fields)) return VerbsStatus::bad_local_key;
    if (!is_registered<1>(fields.remote_key, fields.remote_address, fields.bytes)) return VerbsStatus::bad_remote_key;
    if (pending.opcode == VerbsOpcode::write_with_immediate) {
      Fields receive;
      const VerbsStatus taken = take_receive(receive, fields, pending);
      if (taken != VerbsStatus::ok) return taken;
    }
    command.verb = reads ? Verb::get : Verb::put;
    const Piece target[max_verbs_segments] = {{fields.remote_address, fields.bytes}, {0, 0}};
    commands = stage(fields, target, command);
    return VerbsStatus::ok;
  }

  BEELINE_HOST_DEVICE VerbsStatus begin_send(const Fields& fields, VerbsPending& pending, Command& command,
                                             std::uint32_t& commands) {
    if (!has_length(fields)) return VerbsStatus::bad_length;
    if (!has_local(fields)) return VerbsStatus::bad_local_key;
    Fields receive;
    const VerbsStatus taken = take_receive(receive, fields, pending);
    if (taken != VerbsStatus::ok) return taken;
    Piece target[max_verbs_segments] = {};
    std::uint64_t room = 0;
    for (std::uint32_t i = 0; i < max_verbs_segments; ++i) {
      if (i >= receive.segments) break;
      target[i] = {receive.address_of(i), receive.bytes_of(i)};
      room += target[i].bytes;
    }
    if (room < fields.bytes) return pending.receive_status = VerbsStatus::short_receive;
    command.verb = Verb::put;
    commands = stage(fields, target, command);
    return VerbsStatus::ok;
  }

  BEELINE_HOST_DEVICE VerbsStatus begin_atomic(const Fields& fields, VerbsPending& pending, Command& command) {
    constexpr std::uint32_t width = sizeof(std::uint64_t);
    pending.bytes = width;
    if (fields.bytes != width || fields.remote_address % width != 0 || fields.segments != 0 || fields.is_inline())
      return VerbsStatus::bad_length;
    if (!is_registered<1>(fields.remote_key, fields.remote_address, width)) return VerbsStatus::bad_remote_key;
    command.verb = pending.opcode == VerbsOpcode::fetch_add ? Verb::add : Verb::compare_swap;
    command.width = width, command.answers = true;
    command.remote = fields.remote_address, command.local = fields.tail[0], command.rows = fields.tail[1];
    return VerbsStatus::ok;
  }

  /// Takes the next receive that the peer has posted. Its completion is written with that of the request.
  BEELINE_HOST_DEVICE VerbsStatus take_receive(Fields& receive, const Fields& request, VerbsPending& pending) {
    const std::uint64_t rung = posted(link().peer.doorbells->receive);
    if (rung == s_.receives) return VerbsStatus::no_receive;
    if (rung - s_.receives > depth_) return VerbsStatus::bad_receive;
    receive = read(link().peer.receives[s_.receives & (depth_ - 1)]);
    pending.has_receive = true;
    pending.receive = static_cast<std::uint32_t>(s_.receives);
    pending.immediate = request.immediate;
    pending.receive_status = check_receive(receive);
    ++s_.receives;
    return pending.receive_status == VerbsStatus::ok ? VerbsStatus::ok : VerbsStatus::bad_receive;
  }
  BEELINE_HOST_DEVICE VerbsStatus check_receive(const Fields& receive) {
    const VerbsStatus header = check_header(receive, s_.receives);
    if (header != VerbsStatus::ok) return header;
    if ((receive.owner_opcode & ~verbs_owner_bit) != static_cast<std::uint32_t>(VerbsOpcode::receive))
      return VerbsStatus::bad_opcode;
    if (receive.segments > max_verbs_segments || receive.is_inline()) return VerbsStatus::bad_length;
    for (std::uint32_t i = 0; i < max_verbs_segments; ++i)
      if (i < receive.segments && !is_registered<1>(receive.key_of(i), receive.address_of(i), receive.bytes_of(i)))
        return VerbsStatus::bad_local_key;
    return VerbsStatus::ok;
  }

  /// Makes a command for each piece of contiguous bytes at both ends: at most 3. Returns their number.
  ///   target   the bytes at the peer: at least as many as the request has
  ///   command  verb and peer are set; becomes the first command
  BEELINE_HOST_DEVICE std::uint32_t stage(const Fields& fields, const Piece (&target)[max_verbs_segments],
                                          Command& command) {
    if (fields.segments <= 1 && fields.bytes != 0 && target[0].bytes >= fields.bytes) {
      fill(command, fields, 0, 0, fields.bytes);
      command.remote = target[0].offset;
      s_.end_staged = 0;
      return 1;
    }
    const Command blank = command;
    std::uint32_t count = 0, done = 0, segment = 0, piece = 0, in_segment = 0, in_piece = 0;
    while (done < fields.bytes) {
      const std::uint32_t length = fields.is_inline() ? fields.bytes : fields.bytes_of(segment);
      const std::uint32_t here = length - in_segment, there = target[piece].bytes - in_piece;
      const std::uint32_t bytes = here < there ? here : there;
      if (bytes != 0) {
        Command& next = count == 0 ? command : ring_->staged[count - 1];
        next = blank;
        fill(next, fields, segment, in_segment, bytes);
        next.remote = target[piece].offset + in_piece;
        ++count;
      }
      done += bytes, in_segment += bytes, in_piece += bytes;
      if (bytes == here) ++segment, in_segment = 0;
      if (bytes == there) ++piece, in_piece = 0;
    }
    s_.end_staged = count > 1 ? count - 1 : 0;
    return count;
  }
  BEELINE_HOST_DEVICE void fill(Command& command, const Fields& fields, std::uint32_t segment, std::uint32_t first,
                                std::uint32_t bytes) const {
    if (!fields.is_inline()) {
      command.local = reinterpret_cast<std::uintptr_t>(link().slot) + fields.address_of(segment) + first;
      command.rows = 1, command.row_bytes = bytes;
      return;
    }
    command.verb = Verb::put_inline;
    command.width = static_cast<std::uint8_t>(bytes);
    if (first == 0) {  // the bytes after the payload are not used
      command.local = detail::big_endian(fields.tail[0]), command.rows = detail::big_endian(fields.tail[1]);
      command.row_bytes = detail::big_endian(fields.tail[2]),
      command.remote_stride = detail::big_endian(fields.tail[3]);
      return;
    }
    const auto* const entry = reinterpret_cast<const std::byte*>(&sends_[s_.next & (depth_ - 1)]);
    auto* const to = reinterpret_cast<std::byte*>(&command.local);
    for (std::uint32_t i = 0; i < bytes; ++i) to[i] = entry[offsetof(VerbsRequestEntry, local) + first + i];
  }

  BEELINE_HOST_DEVICE void finish(const VerbsPending& pending) {
    if (pending.has_receive) {
      const VerbsStatus status = pending.status == VerbsStatus::refused ? VerbsStatus::refused : pending.receive_status;
      const bool is_written =
          write<false>(link().peer.completions, link().peer.number, s_.known[1],
                       {pending.receive, pending.bytes, pending.immediate, 0, VerbsOpcode::receive, status, true});
      s_.failed |= !is_written;
    }
    if (!pending.signaled && pending.status == VerbsStatus::ok) return;
    const bool is_written = write<true>(
        completions_, number_, s_.known[0],
        {static_cast<std::uint32_t>(s_.done), pending.bytes, 0, pending.value, pending.opcode, pending.status, false});
    s_.failed |= !is_written;
  }

  struct Completion {
    std::uint32_t index, bytes, immediate;
    std::uint64_t value;
    VerbsOpcode opcode;
    VerbsStatus status;
    bool is_receive;
  };
  /// Writes a completion. Engines of several queue pairs write to one completion queue. Returns whether there was an
  /// entry for it; the last free entry reports that there is none.
  ///   is_own  the poller is on the engine's device: device scope suffices, since its later work for others is released
  ///           again
  template <bool is_own>
  BEELINE_HOST_DEVICE static bool write(const VerbsCompletionRing& ring, std::uint32_t number, VerbsKnown& known,
                                        Completion completion) {
    const Word produced(ring.words->produced.value);
    std::uint64_t ticket = known.produced;
    bool is_last = false;
    do {
      if (ticket - known.consumed >= ring.depth - 1) {
        known.consumed = posted(ring.words->consumed);  // read first, so that it is at most `produced`
        ticket = produced.load(std::memory_order_relaxed);
      }
      const std::uint64_t used = ticket - known.consumed;
      if (used >= ring.depth) return false;
      is_last = used == ring.depth - 1;
    } while (!produced.compare_exchange_strong(ticket, ticket + 1, std::memory_order_relaxed));
    known.produced = ticket + 1;
    if (is_last) completion.status = VerbsStatus::completions_full;
    auto* const to = reinterpret_cast<std::byte*>(&ring.entries[ticket & (ring.depth - 1)]);
    machine::store_as(to, detail::big_endian(detail::joined(number, completion.index)));
    machine::store_as(to + 8, detail::big_endian(completion.value));
    machine::store_as(to + 16, detail::big_endian(detail::joined(completion.immediate, completion.bytes)));
    const std::uint64_t last = std::uint64_t{static_cast<std::uint8_t>(completion.opcode)} << 56 |
                               std::uint64_t{static_cast<std::uint8_t>(completion.status)} << 48 |
                               std::uint64_t{completion.is_receive ? 1u : 0u} << 40 |
                               detail::owner_of_lap(ticket, ring.depth);
    WordOf<is_own>(*reinterpret_cast<std::uint64_t*>(to + 24))
        .store(detail::big_endian(last), std::memory_order_release);
    return !is_last;
  }

  VerbsRing* ring_ = nullptr;
  // Copies of fields of the ring: a thread of a GPU would read its memory anew after each load that acquires.
  VerbsDoorbells* doorbells_ = nullptr;
  const VerbsRequestEntry* sends_ = nullptr;
  VerbsCompletionRing completions_{};
  PaddedWord* withdrawn_[2]{};  ///< of the own end and the peer's
  VerbsPending* pending_ = nullptr;
  VerbsPending latest_{};  ///< the last decoded request, if it has no completion; earlier ones are in memory
  VerbsServed s_{};
  std::uint64_t withdrawals_[2]{};  ///< keys that each end has withdrawn, when the request was read
  std::uint64_t rung_ = 0;          ///< the doorbell's value when it was last read
  std::uint32_t number_ = 0, peer_ = 0, depth_ = 0;
};

}  // namespace beeline
