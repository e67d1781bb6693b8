// SPDX-License-Identifier: Apache-2.0
#include "common/launch_window.hpp"

namespace apps {

LaunchWindow::LaunchWindow(beeline::World& world, beeline::Stream& stream, std::uint32_t batch)
    : world_(world), stream_(stream), batch_(batch) {
  for (auto& event : events_) event = stream.make_event();
}

void LaunchWindow::advance() {
  if (++iterations_ % batch_ != 0) return;
  beeline::Event& oldest = *events_[(iterations_ / batch_) % 2];
  world_.synchronize(oldest);
  stream_.record(oldest);
}

}  // namespace apps
