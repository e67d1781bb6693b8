// SPDX-License-Identifier: Apache-2.0
// The functions that say how much there may be of everything (12), but for groups and segments.
#include <limits>

#include "gaspi/checks.hpp"
#include "gaspi/queues.hpp"

using namespace beeline::gaspi;

gaspi_return_t pgaspi_queue_num(gaspi_number_t* queue_num) {
  return answer_by("gaspi_queue_num", queue_num, "queue_num", [](const Process&) { return queues().count(); });
}
GASPI_EXPORT(queue_num);

gaspi_return_t pgaspi_queue_size_max(gaspi_number_t* queue_size_max) {
  return answer<gaspi_number_t>("gaspi_queue_size_max", queue_size_max, "queue_size_max",
                                configuration().queue_size_max);
}
GASPI_EXPORT(queue_size_max);

gaspi_return_t pgaspi_queue_max(gaspi_number_t* queue_max) {
  return answer<gaspi_number_t>("gaspi_queue_max", queue_max, "queue_max", most_queues);
}
GASPI_EXPORT(queue_max);

gaspi_return_t pgaspi_transfer_size_min(gaspi_size_t* transfer_size_min) {
  return answer<gaspi_size_t>("gaspi_transfer_size_min", transfer_size_min, "transfer_size_min", 1);
}
GASPI_EXPORT(transfer_size_min);

gaspi_return_t pgaspi_transfer_size_max(gaspi_size_t* transfer_size_max) {
  return answer<gaspi_size_t>("gaspi_transfer_size_max", transfer_size_max, "transfer_size_max",
                              configuration().transfer_size_max);
}
GASPI_EXPORT(transfer_size_max);

gaspi_return_t pgaspi_notification_num(gaspi_number_t* notification_num) {
  return answer<gaspi_number_t>("gaspi_notification_num", notification_num, "notification_num",
                                configuration().notification_num);
}
GASPI_EXPORT(notification_num);

gaspi_return_t pgaspi_passive_transfer_size_min(gaspi_size_t* passive_transfer_size_min) {
  return answer<gaspi_size_t>("gaspi_passive_transfer_size_min", passive_transfer_size_min, "passive_transfer_size_min",
                              1);
}
GASPI_EXPORT(passive_transfer_size_min);

gaspi_return_t pgaspi_passive_transfer_size_max(gaspi_size_t* passive_transfer_size_max) {
  return answer<gaspi_size_t>("gaspi_passive_transfer_size_max", passive_transfer_size_max, "passive_transfer_size_max",
                              configuration().passive_transfer_size_max);
}
GASPI_EXPORT(passive_transfer_size_max);

gaspi_return_t pgaspi_atomic_max(gaspi_atomic_value_t* max_value) {
  return answer<gaspi_atomic_value_t>("gaspi_atomic_max", max_value, "max_value",
                                      std::numeric_limits<gaspi_atomic_value_t>::max());
}
GASPI_EXPORT(atomic_max);

gaspi_return_t pgaspi_allreduce_buf_size(gaspi_size_t* buf_size) {
  return answer<gaspi_size_t>("gaspi_allreduce_buf_size", buf_size, "buf_size", configuration().allreduce_buf_size);
}
GASPI_EXPORT(allreduce_buf_size);

gaspi_return_t pgaspi_allreduce_elem_max(gaspi_number_t* elem_max) {
  return answer<gaspi_number_t>("gaspi_allreduce_elem_max", elem_max, "elem_max", configuration().allreduce_elem_max);
}
GASPI_EXPORT(allreduce_elem_max);

gaspi_return_t pgaspi_rw_list_elem_max(gaspi_number_t* elem_max) {
  return answer<gaspi_number_t>("gaspi_rw_list_elem_max", elem_max, "elem_max", configuration().rw_list_elem_max);
}
GASPI_EXPORT(rw_list_elem_max);

gaspi_return_t pgaspi_network_type(gaspi_network_t* network_type) {
  return answer<gaspi_network_t>("gaspi_network_type", network_type, "network_type", configuration().network);
}
GASPI_EXPORT(network_type);

gaspi_return_t pgaspi_build_infrastructure(gaspi_number_t* build_infrastructure) {
  return answer<gaspi_number_t>("gaspi_build_infrastructure", build_infrastructure, "build_infrastructure",
                                configuration().build_infrastructure);
}
GASPI_EXPORT(build_infrastructure);
