// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <iterator>

#include "gaspi/call.hpp"

using namespace beeline::gaspi;

namespace {

struct ErrorText {
  gaspi_return_t value;
  const char* text;
};
constexpr ErrorText texts[] = {
    {GASPI_ERROR, "general error"},
    {GASPI_SUCCESS, "success"},
    {GASPI_TIMEOUT, "time-out"},
    {GASPI_ERR_EMFILE, "too many open files"},
    {GASPI_ERR_ENV, "invalid environment"},
    {GASPI_ERR_SN_PORT, "invalid port"},
    {GASPI_ERR_CONFIG, "invalid value in the configuration"},
    {GASPI_ERR_NOINIT, "not initialized"},
    {GASPI_ERR_INITED, "already initialized"},
    {GASPI_ERR_NULLPTR, "null pointer"},
    {GASPI_ERR_INV_SEGSIZE, "invalid size of a segment"},
    {GASPI_ERR_INV_SEG, "invalid segment"},
    {GASPI_ERR_INV_GROUP, "invalid group"},
    {GASPI_ERR_INV_RANK, "invalid rank"},
    {GASPI_ERR_INV_QUEUE, "invalid queue"},
    {GASPI_ERR_INV_LOC_OFF, "beyond the local segment"},
    {GASPI_ERR_INV_REM_OFF, "beyond the remote segment"},
    {GASPI_ERR_INV_COMMSIZE, "invalid size of a transfer"},
    {GASPI_ERR_INV_NOTIF_VAL, "notification with value 0"},
    {GASPI_ERR_INV_NOTIF_ID, "invalid notification"},
    {GASPI_ERR_INV_NUM, "invalid number of elements"},
    {GASPI_ERR_INV_SIZE, "invalid size"},
    {GASPI_ERR_MANY_SEG, "too many segments"},
    {GASPI_ERR_MANY_GRP, "too many groups"},
    {GASPI_QUEUE_FULL, "queue full"},
    {GASPI_ERR_UNALIGN_OFF, "offset is not aligned"},
    {GASPI_ERR_ACTIVE_COLL, "another collective call of the group is active"},
    {GASPI_ERR_DEVICE, "device or network error"},
    {GASPI_ERR_SN, "error of the ranks' control messages"},
    {GASPI_ERR_MEMALLOC, "out of memory"},
};

const char* text_of(gaspi_return_t value) {
  const auto* const found =
      std::find_if(std::begin(texts), std::end(texts), [=](const ErrorText& each) { return each.value == value; });
  return found == std::end(texts) ? "unknown result" : found->text;
}

}  // namespace

gaspi_string_t pgaspi_error_str(gaspi_return_t error_code) { return const_cast<gaspi_string_t>(text_of(error_code)); }
GASPI_EXPORT(error_str);

gaspi_return_t pgaspi_print_error(gaspi_return_t error_code, gaspi_string_t* error_message) {
  return call_any_time("gaspi_print_error", [&] {
    require_pointer(error_message, "error_message");
    char* const copy = strdup(text_of(error_code));
    if (copy == nullptr) refuse(GASPI_ERR_MEMALLOC, "memory is exhausted");
    *error_message = copy;
  });
}
GASPI_EXPORT(print_error);
