// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// State of an engine's connection to a rank on another node.

#include <cstdint>
#include <set>
#include <string>

#include "transports/ordered_arrivals.hpp"
#include "transports/transport.hpp"

namespace beeline {

struct RemotePeer {
  TransportWorker* worker = nullptr;  ///< carries messages to the peer
  const TransportRow* transport = nullptr;
  bool is_remote = false;  ///< on another node; if not, the other members are unused
  bool has_greeted = false;
  bool takes_device_memory = false;  ///< the transport reads and writes long payloads in this rank's GPU memory
  bool is_gone = false;              ///< The connection is lost and the failure was reported: commands count as done.
  std::uint64_t sent = 0;            ///< numbered messages to the peer
  std::uint64_t acknowledged = 0;    ///< of these, messages that the peer has completed or refused
  std::uint64_t confirmed = 0;       ///< of these, messages whose refusals, if any, have arrived
  std::uint64_t refusals_sent = 0, refusals_taken = 0;  ///< refusals that the peer has sent, and that have arrived
  std::uint64_t unanswered = 0;                         ///< answers of the peer that this rank waits for
  std::uint64_t reported = 0;             ///< numbered messages of the peer whose completion was acknowledged
  std::uint64_t awaited = 0;              ///< number of the peer's last message whose acknowledgement it wants at once
  std::uint64_t asked_for = 0;            ///< number up to which the peer has asked for acknowledgements
  std::uint64_t unreported_since_ns = 0;  ///< time of the first completion not acknowledged; 0: none
  std::uint64_t acknowledged_at_ns = 0;   ///< time of the last acknowledgement by itself, until a message follows it
  bool has_waited = false;                ///< That acknowledgement has waited for a message in vain.
  int follows_soon = 0;                   ///< 1: a message soon followed it, and the next waits for one; 0: none did;
                                          ///< below 0: number of acknowledgements that do not wait
  std::uint64_t last_deferred = 0;        ///< number of the last message to the peer whose acknowledgement may wait
  std::uint64_t asked = 0;                ///< number up to which acknowledgements were asked for
  bool is_waited_for = false;             ///< A caller waited after the previous message: the next is not deferred.
  std::uint64_t refusals = 0;             ///< refusals of the peer's commands
  std::set<std::uint32_t> refused_rings;  ///< the peer's rings with a refused command: all later commands are refused
  OrderedArrivals arrivals;
  std::uint64_t in_device = 0;   ///< the peer's messages that this rank's device still carries out
  std::uint64_t completed = 0;   ///< All of the peer's messages up to this number are complete.
  std::string lost;              ///< why the connection is lost; empty: it is not lost
  std::uint64_t lost_at_ns = 0;  ///< time of the loss; 0: nothing to report

  [[nodiscard]] bool is_lost() const { return !lost.empty(); }
  /// Numbered messages that are done or refused, as far as this rank knows.
  [[nodiscard]] std::uint64_t confirm() {
    if (refusals_taken == refusals_sent) confirmed = acknowledged;
    return confirmed;
  }
  /// A message is done, or the device carries it out.
  void end_arrival() {
    arrivals.end();
    if (in_device == 0) completed = arrivals.done();
  }
  /// The device has carried out a message.
  void end_in_device(std::uint64_t number) { completed = --in_device == 0 ? arrivals.done() : number; }
  /// Whether a further command to the peer may be in flight. Commands to a lost rank are dropped.
  [[nodiscard]] bool has_room() const {
    return is_lost() || (sent - acknowledged < most_in_flight && unanswered < most_in_flight);
  }
};

}  // namespace beeline
