// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The parts that send a rank's commands to other nodes, and carry out commands from there, over the rank's workers.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "transports/remote_keys.hpp"
#include "transports/remote_peers.hpp"
#include "transports/remote_receiver.hpp"
#include "transports/remote_sender.hpp"

namespace beeline {

/// Used by one thread at a time.
class RemoteExchange {
 public:
  explicit RemoteExchange(const NetworkPlan& plan)
      : peers(plan), keys(peers), sender(peers, keys), receiver(peers, sender, keys) {}
  ~RemoteExchange();

  /// From now on, rings are served and commands of other ranks are carried out. Keeps a reference to `client`.
  void serve(const EngineClient& client);
  /// Does one round of all work. Returns whether there was any.
  ///   polls  most polls of the network: the first that finds something is the last
  ///   ends   no further poll follows once it is true; nullptr: none
  bool turn(unsigned polls = 1, const std::atomic<bool>* ends = nullptr);
  /// Whether the last turn has left something that a later turn has to do, although nothing more arrives.
  [[nodiscard]] bool has_left_work() const { return owes_acknowledgements_ || sender.has_posted(); }
  /// Sends acknowledgements. Returns whether there is nothing to do until the descriptor of a worker is readable.
  [[nodiscard]] bool arm();
  /// Gives a rank up: nothing more is sent to it. Its messages in flight count as done once `end_lost` is called.
  void give_up(int peer, const std::string& reason);
  /// Called once the world has been aborted: ends waits for answers that will not arrive, and makes commands to lost
  /// ranks count as done.
  void end_lost();

  RemotePeers peers;
  RemoteKeys keys;
  RemoteSender sender;
  RemoteReceiver receiver;
  std::vector<std::unique_ptr<TransportWorker>> workers;  ///< must end before their buffers

 private:
  /// Polls the network. Returns whether anything was found.
  bool progress(unsigned polls, const std::atomic<bool>* ends);

  bool owes_acknowledgements_ = false;  ///< after the last turn
};

}  // namespace beeline
