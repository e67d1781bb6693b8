// SPDX-License-Identifier: Apache-2.0
#include "gaspi/config.hpp"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <set>

#include "gaspi/call.hpp"
#include "gaspi/life.hpp"

namespace beeline::gaspi {

namespace {

constexpr gaspi_config_t defaults() {
  gaspi_config_t config{};
  config.user_net = 0, config.net_info = 0, config.logger = 0, config.sn_port = 12121;
  config.sn_persistent = 0, config.sn_timeout = 30'000;
  config.dev_config.network_type = config.network = GASPI_IB;
  config.queue_size_max = 1024, config.queue_num = 8;
  config.group_max = most_groups - 1, config.segment_max = segment_ids;
  config.transfer_size_max = std::uint64_t{1} << 40, config.notification_num = segment_notifications;
  config.passive_queue_size_max = 1024, config.passive_transfer_size_max = 65536;
  config.allreduce_buf_size = most_reduced_bytes, config.allreduce_elem_max = 255, config.rw_list_elem_max = 255;
  config.build_infrastructure = GASPI_TOPOLOGY_STATIC;
  config.netdev_id = -1, config.mtu = 0, config.port_check = 1;
  return config;
}

/// A field with a range.
struct Field {
  const char* name;
  std::uint64_t value, least, most;
};

void check(const gaspi_config_t& config) {
  const Field fields[] = {
      {"queue_num", config.queue_num, 1, most_queues},
      {"queue_size_max", config.queue_size_max, 1, most_queue_entries},
      {"group_max", config.group_max, 0, most_groups - 1},
      {"segment_max", config.segment_max, 1, segment_ids},
      {"transfer_size_max", config.transfer_size_max, 1, most_transfer_bytes},
      {"notification_num", config.notification_num, 1, segment_notifications},
      {"passive_queue_size_max", config.passive_queue_size_max, 1, most_passive_entries},
      {"passive_transfer_size_max", config.passive_transfer_size_max, 1, most_passive_bytes},
      {"allreduce_buf_size", config.allreduce_buf_size, 8, most_reduced_bytes},
      {"allreduce_elem_max", config.allreduce_elem_max, 1, 255},
      {"rw_list_elem_max", config.rw_list_elem_max, 1, most_list_elements},
      {"build_infrastructure", config.build_infrastructure, GASPI_TOPOLOGY_NONE, GASPI_TOPOLOGY_DYNAMIC},
  };
  for (const Field& field : fields)
    if (field.value < field.least || field.value > field.most)
      refuse(GASPI_ERR_CONFIG,
             fmt::format("{} = {}: it is {} to {}", field.name, field.value, field.least, field.most));
}

/// Logs, once each, the fields that have no meaning here and were changed.
void log_ignored(const gaspi_config_t& config) {
  static std::set<std::string> logged;
  const gaspi_config_t before = defaults();
  const std::pair<const char*, bool> changed[] = {
      {"logger", config.logger != before.logger},
      {"sn_port", config.sn_port != before.sn_port},
      {"net_info", config.net_info != before.net_info},
      {"user_net", config.user_net != before.user_net},
      {"sn_persistent", config.sn_persistent != before.sn_persistent},
      {"sn_timeout", config.sn_timeout != before.sn_timeout},
      {"dev_config", std::memcmp(&config.dev_config, &before.dev_config, sizeof config.dev_config) != 0},
      {"network", config.network != before.network},
      {"netdev_id", config.netdev_id != before.netdev_id},
      {"mtu", config.mtu != before.mtu},
      {"port_check", config.port_check != before.port_check},
  };
  std::string names;
  for (const auto& [name, is_changed] : changed)
    if (is_changed && logged.insert(name).second) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  if (!names.empty())
    log_failure("gaspi_config_set", fmt::format("ignored, since Beeline has no such setting: {}", names).c_str());
}

std::mutex configuring;

}  // namespace

constinit gaspi_config_t configured = defaults();

}  // namespace beeline::gaspi

using namespace beeline::gaspi;

extern "C" gaspi_return_t pgaspi_config_get(gaspi_config_t* config) {
  return call_any_time("gaspi_config_get", [&] {
    require_pointer(config, "config");
    const std::lock_guard lock(configuring);
    *config = configured;
  });
}

extern "C" gaspi_return_t pgaspi_config_set(gaspi_config_t config) {
  return call_any_time("gaspi_config_set", [&] {
    if (has_begun()) refuse(GASPI_ERR_INITED, "after gaspi_proc_init");
    const std::lock_guard lock(configuring);
    check(config);
    log_ignored(config);
    configured = config;
  });
}

GASPI_EXPORT(config_get);
GASPI_EXPORT(config_set);
