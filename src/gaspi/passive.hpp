// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Passive messages. The sender writes a *cell* at the receiver, which says where the message lies; the receiver reads
/// the message from there, and confirms it by a signal at the sender. Each sender has one cell at each receiver, so it
/// has at most one message in flight to each.
///
///     sender                                            receiver
///     cell[sender] = segment, offset, size, number  ->  waits for a number that it has not confirmed
///                                                       reads the message (a get, or a copy of registered memory)
///     waits for confirmed[receiver] = number        <-  confirmed[receiver] = number
///
/// A message whose segment its sender has deleted meanwhile is refused: refused[receiver] is set to its number before
/// it is confirmed.
///
/// A sender that waits sleeps between two looks, longer and longer. So does a receiver for some milliseconds; then it
/// sleeps until the service thread, which wakes every 10 ms in any case, has seen a message: the receiver and that
/// thread together take less than a hundredth of a core.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gaspi/checks.hpp"

namespace beeline::gaspi {

/// A message to a rank, as its sender names it.
struct PassiveMessage {
  gaspi_segment_id_t segment;
  gaspi_offset_t offset;
  gaspi_size_t size;
  bool operator==(const PassiveMessage&) const = default;
};

class Passive final : public Extension {
 public:
  void open(Process& process) override;
  void close(Process& process) override;
  [[nodiscard]] bool serve(Process& process) override;

  /// Sends a message, or continues to. The arguments were checked.
  [[nodiscard]] Result send(const Process& process, int rank, const PassiveMessage& message, std::uint64_t timeout_ms);
  /// Receives a message into `size` bytes of a segment of this rank, and sets `sender`.
  [[nodiscard]] Result receive(const Process& process, const PassiveMessage& to, gaspi_rank_t& sender,
                               std::uint64_t timeout_ms);
  /// Forgets messages to ranks that have failed, and withdraws those that nobody has received.
  void purge(const Process& process);

 private:
  /// A message at its receiver.
  struct Cell {
    std::uint64_t offset;
    std::uint64_t place;   ///< size and segment; 0: the message was withdrawn
    std::uint64_t number;  ///< of the message, from 1 on; set last
  };
  /// What this rank has sent to another.
  struct Outgoing {
    std::mutex calls;  ///< held by the call that sends
    PassiveMessage message{};
    std::uint64_t number = 0;
    bool is_in_flight = false;
    std::uint64_t words[2][2]{};  ///< what the cell gets, by the number's last bit: an engine may still read the others
  };

  [[nodiscard]] beeline_status post(const Process& process, int rank, Outgoing& to);
  /// Receives the message of `sender`. BEELINE_IN_PROGRESS: there is none. Other results than BEELINE_OK are those of
  /// transfers: the message is still there.
  [[nodiscard]] beeline_status receive_from(const Process& process, int sender, const PassiveMessage& to);
  /// As above, of any sender, which it sets.
  [[nodiscard]] beeline_status receive_any(const Process& process, const PassiveMessage& to, gaspi_rank_t& sender);
  [[nodiscard]] std::uint64_t number_of(int sender) const;
  [[nodiscard]] beeline_status confirm(const Process& process, int sender, std::uint64_t number);
  /// Confirms a message that its sender has withdrawn. BEELINE_IN_PROGRESS if that is done.
  [[nodiscard]] beeline_status drop(const Process& process, int sender, std::uint64_t number);
  /// As `drop`, for a message whose segment is no longer there: its sender's call fails.
  [[nodiscard]] beeline_status refuse_message(const Process& process, int sender, std::uint64_t number,
                                              gaspi_segment_id_t segment);

  Cell* cells_ = nullptr;               ///< [ranks] symmetric memory: the message of each sender
  std::uint64_t* confirmed_ = nullptr;  ///< [ranks] symmetric memory: the last number that each receiver has confirmed
  std::uint64_t* refused_ = nullptr;    ///< [ranks] symmetric memory: the last number that each receiver has refused
  std::vector<std::unique_ptr<Outgoing>> outgoing_;  ///< [ranks]
  std::mutex receiving_;                             ///< held while a thread looks for messages, not while it sleeps
  std::vector<std::uint64_t> received_;     ///< [ranks] number of the last message of each sender that was confirmed
  std::atomic<int> waiting_{0};             ///< calls of `receive`
  std::atomic<std::uint64_t> arrivals_{0};  ///< changes with each message that the service thread sees while calls wait
  std::mutex arriving_;
  std::condition_variable arrived_;
  std::vector<std::uint64_t> seen_;  ///< [ranks] the last number of each sender that the service thread has seen
  int next_ = 0;                     ///< sender at which the next look begins, so that all get their turn
};

/// The passive messages of the process that is running.
[[nodiscard]] Passive& passive();

}  // namespace beeline::gaspi
