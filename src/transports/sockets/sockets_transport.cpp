// SPDX-License-Identifier: Apache-2.0
// The row of TCP sockets in the table of transports: it needs no library beside the system's.
#include "transports/sockets/socket_worker.hpp"
#include "transports/transport.hpp"

namespace beeline {

namespace {

std::unique_ptr<TransportWorker> open_sockets(const NetworkPlan& plan, const TransportSettings& settings,
                                              WorkerEvents& events) {
  return std::make_unique<SocketWorker>(plan, SocketFaults(settings), events);
}

}  // namespace

extern const TransportRow sockets_transport;
constinit const TransportRow sockets_transport = {
    .name = "sockets",
    .reason = [] { return std::string(); },
    .encrypts = true,
    .settings = socket_settings,
    .label = [] { return std::string("sockets"); },
    .devices = [](const NetworkPlan& plan) { return plan.is_one_host ? std::string("lo") : text_of(plan.devices); },
    .how_to_choose_devices = "by the address of the rendezvous",
    .warning = [] { return std::string(); },
    .open = open_sockets};

}  // namespace beeline
