// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The parts that carry a rank's commands to other nodes and others' commands out here, over its workers.

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

  /// From here on rings are served and others' commands are done. The client stays where it is.
  void serve(const EngineClient& client);
  /// One round of everything. Whether there was anything to do.
  bool turn();
  /// Sends acknowledgements. Whether there is nothing to do until the descriptor of a worker is readable.
  [[nodiscard]] bool arm();
  /// Gives a rank up: nothing is sent to it any more. What is in flight to it counts as done once `end_lost` is called.
  void give_up(int peer, const std::string& reason);
  /// Once the world has been aborted: waits for answers that will not come end, and commands to ranks that are lost
  /// count as done.
  void end_lost();

  RemotePeers peers;
  RemoteKeys keys;
  RemoteSender sender;
  RemoteReceiver receiver;
  std::vector<std::unique_ptr<TransportWorker>> workers;  ///< end before the buffers that they read and write
};

}  // namespace beeline
