// SPDX-License-Identifier: Apache-2.0
#include "transports/ucx/ucx_worker.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <string_view>
#include <utility>

#include "beeline/core/error.hpp"

namespace beeline {

namespace {

constexpr unsigned message_id = 0;
constexpr std::chrono::seconds longest_close{1};

/// The name of a setting for ucp_config_modify, which before UCX 1.18 expects TCP's settings without their prefix.
const char* name_for(const UcxFunctions& ucx, std::string_view name) {
  constexpr std::string_view prefix = "TCP_";
  return name.data() + (ucx.minor < 18 && name.starts_with(prefix) ? prefix.size() : 0);
}

// What ucp_ep_query returns from UCX 1.14 on; the headers of 1.13 do not declare it.
constexpr std::uint64_t endpoint_transports = 1u << 3;
struct TransportEntry {
  const char *transport, *device;
};
struct EndpointAttributes {
  std::uint64_t field_mask;
  char name[UCP_ENTITY_NAME_MAX];
  sockaddr_storage local, remote;
  struct {
    TransportEntry* entries;
    unsigned count;
    std::size_t entry_bytes;
  } transports;
  void* user_data;
};

ucs_memory_type_t type_of(DeviceKind kind) {
  return kind == DeviceKind::gpu ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
}

void check(const UcxFunctions& ucx, ucs_status_t status, const char* call) {
  require(status == UCS_OK, Status::unavailable,
          fmt::format("UCX {}: {}: {}", ucx.version, call, ucx.ucs_status_string(status)));
}

}  // namespace

UcxWorker::UcxWorker(WorkerEvents& events, std::span<const UcxSetting> settings, bool keys)
    : ucx_(ucx()), events_(events), keys_(keys) {
  try {
    open_context(settings);
    open_worker();
  } catch (...) {
    if (worker_ != nullptr) ucx_.ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucx_.ucp_cleanup(context_);
    throw;
  }
}

void UcxWorker::open_context(std::span<const UcxSetting> settings) {
  ucp_config_t* config = nullptr;
  check(ucx_, ucx_.ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  for (const UcxSetting& each : settings)
    if (std::getenv((std::string("UCX_") + each.name).c_str()) == nullptr)
      static_cast<void>(ucx_.ucp_config_modify(config, name_for(ucx_, each.name), each.value));
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP | (keys_ ? UCP_FEATURE_RMA : 0);
  parameters.name = "beeline";
  const ucs_status_t status = ucx_.ucp_init_version(1, 13, &parameters, config, &context_);
  ucx_.ucp_config_release(config);
  check(ucx_, status, "ucp_init");
}

void UcxWorker::open_worker() {
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  check(ucx_, ucx_.ucp_worker_create(context_, &parameters, &worker_), "ucp_worker_create");
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = message_id;
  handler.cb = &UcxWorker::on_message;
  handler.arg = this;
  check(ucx_, ucx_.ucp_worker_set_am_recv_handler(worker_, &handler), "ucp_worker_set_am_recv_handler");
  check(ucx_, ucx_.ucp_worker_get_efd(worker_, &descriptor_), "ucp_worker_get_efd");
}

UcxWorker::~UcxWorker() {
  close();
  ucx_.ucp_worker_destroy(worker_);
  ucx_.ucp_cleanup(context_);
}

void UcxWorker::close() {
  closing_ = true;
  for (Line& line : lines_) close(line);
}

/// Closes an endpoint at once: its messages in flight are dropped.
void UcxWorker::close(Line& line) {
  const ucp_ep_h endpoint = std::exchange(line.endpoint, nullptr);
  if (endpoint == nullptr) return;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const auto end = std::chrono::steady_clock::now() + longest_close;
  const ucs_status_ptr_t request = ucx_.ucp_ep_close_nbx(endpoint, &how);
  if (!UCS_PTR_IS_PTR(request)) return;
  while (ucx_.ucp_request_check_status(request) == UCS_INPROGRESS && std::chrono::steady_clock::now() < end)
    ucx_.ucp_worker_progress(worker_);
  ucx_.ucp_request_free(request);
}

void UcxWorker::disconnect(int peer) { close(*line_of_[static_cast<std::size_t>(peer)]); }

template <class Call>
void UcxWorker::report(Call call) noexcept {
  if (closing_) return;
  try {
    call();
  } catch (const std::exception& error) {
    events_.failed(error.what());
  }
}

std::vector<std::byte> UcxWorker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  check(ucx_, ucx_.ucp_worker_get_address(worker_, &address, &bytes), "ucp_worker_get_address");
  const auto* first = reinterpret_cast<const std::byte*>(address);
  std::vector<std::byte> copy(first, first + bytes);
  ucx_.ucp_worker_release_address(worker_, address);
  return copy;
}

void UcxWorker::connect(int peer, std::span<const std::byte> address, const std::string& remark) {
  Line& line = lines_.emplace_back(Line{this, peer, nullptr});
  ucp_ep_params_t parameters{};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler.cb = &UcxWorker::on_error;
  parameters.err_handler.arg = &line;
  const ucs_status_t status = ucx_.ucp_ep_create(worker_, &parameters, &line.endpoint);
  if (status != UCS_OK) {
    lines_.pop_back();
    throw Error(Status::unreachable, fmt::format("UCX {} finds no route to rank {}: {}; {}", ucx_.version, peer,
                                                 ucx_.ucs_status_string(status), remark));
  }
  if (line_of_.size() <= static_cast<std::size_t>(peer)) line_of_.resize(static_cast<std::size_t>(peer) + 1);
  line_of_[static_cast<std::size_t>(peer)] = &line;
}

UcxWorker::Sending* UcxWorker::take_sending() {
  if (free_.empty()) return &sendings_.emplace_back();
  Sending* const sending = free_.back();
  free_.pop_back();
  return sending;
}

void UcxWorker::end_sending(Sending* sending) {
  sending->staged.reset();
  free_.push_back(sending);
}

bool UcxWorker::send(int peer, const NetworkMessage& message, std::span<const std::byte> payload, std::uint64_t token,
                     StagedBytes staged, DeviceKind kind) {
  Sending* const sending = take_sending();
  sending->worker = this, sending->message = message, sending->staged = std::move(staged), sending->peer = peer,
  sending->token = token;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.cb.send = &UcxWorker::on_sent;
  how.user_data = sending;
  how.memory_type = type_of(kind);
  const ucp_ep_h endpoint = line_of_[static_cast<std::size_t>(peer)]->endpoint;
  const ucs_status_ptr_t request = ucx_.ucp_am_send_nbx(
      endpoint, message_id, &sending->message, header_bytes(message.kind), payload.data(), payload.size(), &how);
  if (UCS_PTR_IS_PTR(request)) return false;
  end_sending(sending);
  if (UCS_PTR_IS_ERR(request)) lose(peer, UCS_PTR_STATUS(request));
  return true;
}

void UcxWorker::on_sent(void* request, ucs_status_t status, void* user) {
  auto* const sending = static_cast<Sending*>(user);
  UcxWorker& self = *sending->worker;
  const int peer = sending->peer;
  const std::uint64_t token = sending->token;
  self.ucx_.ucp_request_free(request);
  self.end_sending(sending);
  self.report([&] {
    if (status != UCS_OK) self.lose(peer, status);
    self.events_.sent(token);
  });
}

bool UcxWorker::fetch(int peer, void* parcel, std::span<std::byte> to, std::uint64_t number, DeviceKind kind) {
  const auto transfer = begin(peer, number, &WorkerEvents::fetched);
  ucp_request_param_t how = how_for(*transfer, kind);
  how.cb.recv_am = [](void* request, ucs_status_t status, std::size_t, void* user) {
    on_part_over(request, status, user);
  };
  add_part(*transfer, ucx_.ucp_am_recv_data_nbx(worker_, parcel, to.data(), to.size(), &how));
  return end_begin(transfer);
}

bool UcxWorker::has_gpu_memory() const {
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  check(ucx_, ucx_.ucp_context_query(context_, &attributes), "ucp_context_query");
  return (attributes.memory_types >> UCS_MEMORY_TYPE_CUDA & 1u) != 0;
}

std::vector<std::string> UcxWorker::links_to(int peer) const {
  std::array<TransportEntry, 16> entries{};
  EndpointAttributes attributes{};
  attributes.field_mask = endpoint_transports;
  attributes.transports = {entries.data(), unsigned{entries.size()}, sizeof(TransportEntry)};
  const ucp_ep_h endpoint = line_of_[static_cast<std::size_t>(peer)]->endpoint;
  std::vector<std::string> names;
  if (ucx_.ucp_ep_query(endpoint, reinterpret_cast<ucp_ep_attr_t*>(&attributes)) != UCS_OK) return names;
  for (const TransportEntry& each : entries)  // UCX 1.13 leaves the entries unchanged
    if (each.transport != nullptr && std::find(names.begin(), names.end(), each.transport) == names.end())
      names.emplace_back(each.transport);
  return names;
}

KeyHandle UcxWorker::register_memory(std::span<const std::byte> memory) {
  ucp_mem_map_params_t parameters{};
  parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  parameters.address = const_cast<std::byte*>(memory.data());
  parameters.length = memory.size();
  ucp_mem_h registration = nullptr;
  check(ucx_, ucx_.ucp_mem_map(context_, &parameters, &registration), "ucp_mem_map");
  return {registration, [this](void* handle) { ucx_.ucp_mem_unmap(context_, static_cast<ucp_mem_h>(handle)); }};
}

std::vector<std::byte> UcxWorker::key_of(const KeyHandle& registration) const {
  void* key = nullptr;
  std::size_t bytes = 0;
  check(ucx_, ucx_.ucp_rkey_pack(context_, static_cast<ucp_mem_h>(registration.get()), &key, &bytes), "ucp_rkey_pack");
  const auto* first = static_cast<const std::byte*>(key);
  std::vector<std::byte> copy(first, first + bytes);
  ucx_.ucp_rkey_buffer_release(key);
  return copy;
}

KeyHandle UcxWorker::unpack_key(int peer, std::span<const std::byte> key) {
  ucp_rkey_h unpacked = nullptr;
  const ucp_ep_h endpoint = line_of_[static_cast<std::size_t>(peer)]->endpoint;
  check(ucx_, ucx_.ucp_ep_rkey_unpack(endpoint, key.data(), &unpacked), "ucp_ep_rkey_unpack");
  return {unpacked, [this](void* handle) { ucx_.ucp_rkey_destroy(static_cast<ucp_rkey_h>(handle)); }};
}

bool UcxWorker::put(int peer, std::span<const std::byte> from, std::uint64_t to, const KeyHandle& key,
                    std::uint64_t number, DeviceKind kind) {
  const auto transfer = begin(peer, number, &WorkerEvents::placed);
  ucp_request_param_t how = how_for(*transfer, kind);
  how.cb.send = &UcxWorker::on_part_over;
  const ucp_ep_h endpoint = line_of_[static_cast<std::size_t>(peer)]->endpoint;
  add_part(*transfer,
           ucx_.ucp_put_nbx(endpoint, from.data(), from.size(), to, static_cast<ucp_rkey_h>(key.get()), &how));
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  if (transfer->status == UCS_OK) add_part(*transfer, ucx_.ucp_ep_flush_nbx(endpoint, &how));
  return end_begin(transfer);
}

bool UcxWorker::get(int peer, std::span<std::byte> to, std::uint64_t from, const KeyHandle& key, std::uint64_t token) {
  const auto transfer = begin(peer, token, &WorkerEvents::got);
  ucp_request_param_t how = how_for(*transfer, DeviceKind::host);
  how.cb.send = &UcxWorker::on_part_over;
  add_part(*transfer, ucx_.ucp_get_nbx(line_of_[static_cast<std::size_t>(peer)]->endpoint, to.data(), to.size(), from,
                                       static_cast<ucp_rkey_h>(key.get()), &how));
  return end_begin(transfer);
}

std::list<UcxWorker::Transfer>::iterator UcxWorker::begin(int peer, std::uint64_t number, Transfer::Over over) {
  if (free_transfers_.empty()) free_transfers_.emplace_back();
  transfers_.splice(transfers_.end(), free_transfers_, free_transfers_.begin());
  const auto transfer = std::prev(transfers_.end());
  *transfer = {this, peer, number, over, 1, UCS_OK, transfer};
  return transfer;
}

ucp_request_param_t UcxWorker::how_for(Transfer& transfer, DeviceKind kind) {
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.user_data = &transfer;
  how.memory_type = type_of(kind);
  return how;
}

void UcxWorker::add_part(Transfer& transfer, ucs_status_ptr_t request) {
  if (UCS_PTR_IS_PTR(request)) ++transfer.pending;
  if (UCS_PTR_IS_ERR(request)) transfer.status = UCS_PTR_STATUS(request);
}

bool UcxWorker::end_begin(std::list<Transfer>::iterator transfer) {
  if (--transfer->pending > 0) return false;
  const Transfer over = *transfer;
  free_transfers_.splice(free_transfers_.begin(), transfers_, transfer);
  if (over.status == UCS_OK) return true;
  lose(over.peer, over.status);
  (events_.*over.over)(over.peer, over.number, false);
  return false;
}

void UcxWorker::on_part_over(void* request, ucs_status_t status, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  UcxWorker& self = *transfer.worker;
  self.ucx_.ucp_request_free(request);
  if (status != UCS_OK) transfer.status = status;
  if (--transfer.pending > 0) return;
  const Transfer over = transfer;
  self.free_transfers_.splice(self.free_transfers_.begin(), self.transfers_, over.self);
  self.report([&] {
    if (over.status != UCS_OK) self.lose(over.peer, over.status);
    (self.events_.*over.over)(over.peer, over.number, over.status == UCS_OK);
  });
}

void UcxWorker::on_error(void* user, ucp_ep_h, ucs_status_t status) {
  const Line& line = *static_cast<Line*>(user);
  line.worker->report([&] { line.worker->lose(line.peer, status); });
}

ucs_status_t UcxWorker::on_message(void* user, const void* header, std::size_t header_bytes, void* data,
                                   std::size_t bytes, const ucp_am_recv_param_t* how) {
  UcxWorker& self = *static_cast<UcxWorker*>(user);
  NetworkMessage message{};
  if (!take_header(message, {static_cast<const std::byte*>(header), header_bytes})) return UCS_OK;
  bool is_kept = false;
  self.report([&] {
    if ((how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)
      is_kept = self.events_.announced(message, data, bytes);
    else
      self.events_.received(message, {static_cast<const std::byte*>(data), bytes});
  });
  return is_kept ? UCS_INPROGRESS : UCS_OK;
}

}  // namespace beeline
