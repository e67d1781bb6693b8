// SPDX-License-Identifier: Apache-2.0
#include "transports/remote_exchange.hpp"

namespace beeline {

/// Keys end after the puts that use them and before the workers.
RemoteExchange::~RemoteExchange() {
  for (const auto& worker : workers) worker->close();
  keys.clear();
}

void RemoteExchange::serve(const EngineClient& client) {
  peers.serve(client);
  for (CommandRing* ring : client.rings) sender.open(*ring);
}

bool RemoteExchange::turn(unsigned polls, const std::atomic<bool>* ends) {
  bool any = sender.send_posted();
  any = progress(polls, ends) || any;
  any = receiver.turn() || any;
  any = peers.send_replies() || any;
  owes_acknowledgements_ = peers.acknowledge(!any);
  sender.advance();
  return any;
}

bool RemoteExchange::progress(unsigned polls, const std::atomic<bool>* ends) {
  const auto goes_on = [ends] { return ends == nullptr || !ends->load(std::memory_order_relaxed); };
  bool any = false;
  for (unsigned poll = 0; poll < polls && !any && (poll == 0 || goes_on()); ++poll)
    for (const auto& worker : workers) any = worker->progress() || any;
  return any;
}

bool RemoteExchange::arm() {
  peers.acknowledge_all();
  if (sender.has_posted()) return false;
  bool is_armed = true;
  for (const auto& worker : workers) is_armed = worker->arm() && is_armed;
  return is_armed;
}

void RemoteExchange::give_up(int peer, const std::string& reason) {
  peers.lose(peer, reason);
  peers[static_cast<std::uint32_t>(peer)].worker->disconnect(peer);
}

void RemoteExchange::end_lost() {
  peers.note_abort(true);
  for (std::uint32_t rank = 0; rank < peers.size(); ++rank) peers[rank].is_gone = peers[rank].is_lost();
  sender.end_lost();
}

}  // namespace beeline
