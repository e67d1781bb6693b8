// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Rounds in the protocol LL, of words; see packet_round.hpp.

#include "beeline/collectives/impl/protocol/packet_round.hpp"

namespace beeline::detail {

/// `count` elements at any address, as words; for each word it is tested whether it is whole and aligned. T may be
/// const.
template <class T>
class WordVector {
 public:
  using Element = std::remove_const_t<T>;
  BEELINE_HOST_DEVICE WordVector(T* vector, std::uint32_t count) : vector_(vector), count_(count) {}

  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t words() const {
    return static_cast<std::uint32_t>(words_of<Element>(count_));
  }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t whole_words() const { return 0; }
  template <bool whole, class Place>
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint64_t load(std::uint32_t first, const Place& place) const {
    return load_word(vector_, first + place.unit, count_);
  }
  template <bool whole, class Place>
  BEELINE_HOST_DEVICE void store(std::uint32_t first, const Place& place, std::uint64_t word) const {
    store_word(vector_, first + place.unit, count_, word);
  }

 private:
  T* vector_;
  std::uint32_t count_;
};

template <class Group>
class PacketRound<LL, Group, 0> {
 public:
  static constexpr std::uint32_t unit_words = 1;
  static constexpr bool sends_own_part = true;          ///< a member also sends itself its own part, which saves code
                                                        ///< for a special case
  static constexpr bool any_pieces = true;              ///< pieces may have any lengths, and go to some members only
  static constexpr std::uint32_t frequent_members = 0;  ///< number of members with specialized code; 0: none
  using Value = std::uint64_t;
  template <class T>
  using Vector = WordVector<T>;
  struct Place {
    std::uint32_t unit;
    static constexpr bool exists = true;
  };

  [[nodiscard]] BEELINE_HOST_DEVICE static bool serves(const Session<Group>&) { return true; }
  [[nodiscard]] BEELINE_HOST_DEVICE static std::uint32_t area_units(const Session<Group>& session) {
    return session.area_words();
  }

  BEELINE_HOST_DEVICE PacketRound(const Session<Group>& session, Timeout timeout, bool is_new, bool to_itself)
      : session_(session), timeout_(timeout), is_new_(is_new), to_itself_(to_itself),
        all_speak_(all_speak(session.context())) {}

  [[nodiscard]] BEELINE_HOST_DEVICE const Context& context() const { return session_.context(); }
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t size() const { return context().size; }
  /// The first unit of an area's second half.
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t half() const { return session_.area_words() / 2; }
  [[nodiscard]] BEELINE_HOST_DEVICE bool is_new() const { return is_new_; }
  [[nodiscard]] BEELINE_HOST_DEVICE bool sends_to_itself() const { return to_itself_; }

  template <class Visit>
  BEELINE_INLINE BEELINE_HOST_DEVICE Status for_each(std::uint32_t units, std::uint32_t, const Visit& visit) const {
    for (std::uint32_t i = session_.group().thread_rank(); i < units; i += session_.group().size())
      if (const Status status = visit(Place{i}, std::false_type{}); status != Status::ok) return status;
    return Status::ok;
  }

  template <class Load>
  BEELINE_INLINE BEELINE_HOST_DEVICE void send_all(std::uint32_t units, std::uint32_t, const Load& load) const {
    const std::uint32_t thread = session_.group().thread_rank(), threads = session_.group().size();
    if constexpr (executor == DeviceKind::gpu) {
      for (std::uint32_t i = thread; i < units; i += threads)
        send_on<false>(Place{i}, 0, load(Place{i}, std::false_type{}));
    } else {  // a CPU thread has many words, and serves one peer after the other
      const std::uint32_t flag = session_.flag();
      for (std::uint32_t step = 1; step <= receivers(); ++step) {
        machine::PacketPair* const to = session_.area_at(peer_ahead(context(), step));
        for (std::uint32_t i = thread; i < units; i += threads)
          machine::store_packets(to + i, packets_of(load(Place{i}, std::false_type{}), flag));
      }
    }
  }
  template <bool whole>
  BEELINE_INLINE BEELINE_HOST_DEVICE void send_on(const Place& place, std::uint32_t at, std::uint64_t word) const {
    for (std::uint32_t step = 1; step <= receivers(); ++step)  // each member begins with a different peer
      session_.send_word(peer_ahead(context(), step), at + place.unit, word);
  }
  template <class Parts>
  BEELINE_INLINE BEELINE_HOST_DEVICE void send_parts(const Parts& parts, std::uint32_t) const {
    for (std::uint32_t step = 1; step <= receivers(); ++step) {
      const std::uint32_t peer = peer_ahead(context(), step);
      const auto part = parts.of(peer);
      for (std::uint32_t i = session_.group().thread_rank(); i < part.units; i += session_.group().size())
        session_.send_word(peer, i, part.template load<false>(Place{i}));
    }
  }
  template <class Parts>
  BEELINE_INLINE BEELINE_HOST_DEVICE void send_pieces(const Parts& parts, std::uint32_t) const {
    static_cast<void>(for_each_of_others(parts.most(), [&](std::uint32_t peer, const Place& place) {
      const auto part = parts.of(peer);
      if (place.unit < part.units)
        session_.send_word(peer, place.unit, part.template load<false>(place));
      else if (place.unit == 0 && all_speak_)
        greet(peer);
      return Status::ok;
    }));
  }

  template <class T>
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status combine(const Place& place, Reduction reduction,
                                                                  std::uint64_t own, std::uint64_t& result) const {
    Partial<T, std::uint64_t> partial;
    std::uint32_t peer = 0;
    Status status = Status::ok;
    BEELINE_NO_UNROLL
    for (; peer + 4 <= size() && status == Status::ok; peer += 4)
      status = combine_some<4>(peer, place.unit, reduction, own, partial);
    BEELINE_NO_UNROLL
    for (; peer + 2 <= size() && status == Status::ok; peer += 2)
      status = combine_some<2>(peer, place.unit, reduction, own, partial);
    if (peer < size() && status == Status::ok) status = combine_some<1>(peer, place.unit, reduction, own, partial);
    result = partial.finish(reduction, size());
    return status;
  }

  template <class Parts>
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status receive_parts(std::uint32_t at, const Parts& parts,
                                                                        std::uint32_t) const {
    for (std::uint32_t step = to_itself_ ? 0 : 1; step < size(); ++step) {
      const std::uint32_t peer = peer_ahead(context(), step);
      const auto part = parts.of(peer);
      for (std::uint32_t i = session_.group().thread_rank(); i < part.units; i += session_.group().size())
        if (const Status status = receive(peer, at, Place{i}, part); status != Status::ok) return status;
    }
    return Status::ok;
  }
  template <class Parts>
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status receive_pieces(const Parts& parts, std::uint32_t) const {
    return for_each_of_others(parts.most(), [&](std::uint32_t peer, const Place& place) {
      const auto part = parts.of(peer);
      if (place.unit < part.units) return receive(peer, 0, place, part);
      return place.unit == 0 && all_speak_ ? hear(peer) : Status::ok;
    });
  }

  /// Sends a word without data to a member that gets no data in this round; `hear` waits for such a word. See
  /// `all_speak`.
  BEELINE_INLINE BEELINE_HOST_DEVICE void greet(std::uint32_t peer) const { session_.send_word(peer, 0, 0); }
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status hear(std::uint32_t peer) const {
    std::uint64_t word[1] = {};
    return session_.receive_words(peer, 0, word, timeout_);
  }

 private:
  [[nodiscard]] BEELINE_HOST_DEVICE std::uint32_t receivers() const { return to_itself_ ? size() : size() - 1; }

  /// The units of all other members are distributed to the threads, so that a thread has few consecutive waits.
  template <class Visit>
  BEELINE_INLINE BEELINE_HOST_DEVICE Status for_each_of_others(std::uint32_t width, const Visit& visit) const {
    const std::uint32_t all = width * (size() - 1);
    BEELINE_NO_UNROLL
    for (std::uint32_t k = session_.group().thread_rank(); k < all; k += session_.group().size()) {
      const Status status = visit(peer_ahead(context(), 1 + k / width), Place{k % width});
      if (status != Status::ok) return status;
    }
    return Status::ok;
  }

  template <class Part>
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status receive(std::uint32_t peer, std::uint32_t at,
                                                                  const Place& place, const Part& part) const {
    std::uint64_t word[1] = {};
    const Status status = session_.receive_words(peer, at + place.unit, word, timeout_);
    if (status == Status::ok) part.template store<false>(place, word[0]);
    return status;
  }

  /// Combines a word of `count` members from `first` on. One thread waits for all these words.
  template <unsigned count, class Sum>
  [[nodiscard]] BEELINE_INLINE BEELINE_HOST_DEVICE Status combine_some(std::uint32_t first, std::uint32_t unit,
                                                                       Reduction reduction, std::uint64_t own,
                                                                       Sum& partial) const {
    std::uint64_t words[count];
    BEELINE_UNROLL
    for (std::uint64_t& word : words) word = own;
    const std::uint32_t silent = to_itself_ ? no_peer : context().rank;
    const Status status = session_.receive_words(first, unit, words, timeout_, silent);
    if (status != Status::ok) return status;
    BEELINE_UNROLL
    for (unsigned k = 0; k < count; ++k)
      first + k == 0 ? partial.start(words[k]) : partial.combine(reduction, words[k]);
    return Status::ok;
  }

  const Session<Group>& session_;
  Timeout timeout_;
  bool is_new_, to_itself_, all_speak_;
};

}  // namespace beeline::detail
