// SPDX-License-Identifier: Apache-2.0
#include "peers/ucx/ucx.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <ucp/api/ucp.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/device/impl/machine.hpp"

namespace beeline::bench::ucx {

namespace {

#define BEELINE_BENCH_UCX(each)                                                                                      \
  each(ucp_config_read) each(ucp_config_modify) each(ucp_config_release) each(ucp_init_version) each(ucp_cleanup)    \
      each(ucp_worker_create) each(ucp_worker_destroy) each(ucp_worker_get_address) each(ucp_worker_release_address) \
          each(ucp_worker_progress) each(ucp_worker_set_am_recv_handler) each(ucp_ep_create) each(ucp_ep_close_nbx)  \
              each(ucp_ep_flush_nbx) each(ucp_put_nbx) each(ucp_get_nbx) each(ucp_am_send_nbx)                       \
                  each(ucp_am_recv_data_nbx) each(ucp_mem_map) each(ucp_mem_unmap) each(ucp_rkey_pack)               \
                      each(ucp_rkey_buffer_release) each(ucp_ep_rkey_unpack) each(ucp_rkey_destroy)                  \
                          each(ucp_request_check_status) each(ucp_request_free) each(ucs_status_string)

struct Library {
#define BEELINE_BENCH_MEMBER(function) decltype(&::function) function;
  BEELINE_BENCH_UCX(BEELINE_BENCH_MEMBER)
#undef BEELINE_BENCH_MEMBER
};

Library find_library() {
  const char* const folder = std::getenv("BEELINE_UCX");
  const std::string name = folder == nullptr ? "libucp.so.0" : fmt::format("{}/libucp.so.0", folder);
  void* const known = ::dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
  void* const opened = known != nullptr ? known : ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  require(opened != nullptr, Status::unavailable, "no UCX was found: install libucx0");
  Library library{};
#define BEELINE_BENCH_FIND(function)                                                           \
  library.function = reinterpret_cast<decltype(library.function)>(::dlsym(opened, #function)); \
  require(library.function != nullptr, Status::unavailable, "this UCX has no " #function);
  BEELINE_BENCH_UCX(BEELINE_BENCH_FIND)
#undef BEELINE_BENCH_FIND
  return library;
}

/// The offset that marks an empty message: its sender has no operation in flight.
constexpr std::size_t end_of_loop = sink - 1;

/// Precedes the bytes of an active message.
struct Header {
  std::uint64_t place;
};

class UcxPair final : public Pair {
 public:
  UcxPair(Bench& bench, std::span<std::byte> target) : bench_(bench), library_(find_library()), target_(target) {}
  ~UcxPair() override;
  UcxPair(const UcxPair&) = delete;
  UcxPair& operator=(const UcxPair&) = delete;

  void open();
  /// Data that the peer needs: the target's address and key, and this worker's address, each preceded by its length.
  [[nodiscard]] std::vector<std::byte> introduction() const;
  void connect(std::span<const std::byte> introduction);

  void put(const std::byte* source, std::size_t place, std::size_t bytes) override {
    const ucp_request_param_t how = counted();
    note(library_.ucp_put_nbx(endpoint_, source, bytes, remote_ + place, key_, &how), "ucp_put_nbx");
  }
  void get(std::byte* destination, std::size_t place, std::size_t bytes) override {
    const ucp_request_param_t how = counted();
    note(library_.ucp_get_nbx(endpoint_, destination, bytes, remote_ + place, key_, &how), "ucp_get_nbx");
    until([this] { return pending_ == 0; }, "ucp_get_nbx");
  }
  void flush() override {
    const ucp_request_param_t how = counted();
    note(library_.ucp_ep_flush_nbx(endpoint_, &how), "ucp_ep_flush_nbx");
    until([this] { return pending_ == 0; }, "ucp_ep_flush_nbx");
    headers_.clear();
  }
  void send(const std::byte* source, std::size_t place, std::size_t bytes) override {
    const ucp_request_param_t how = counted();
    headers_.push_back(std::make_unique<Header>(Header{place}));
    note(library_.ucp_am_send_nbx(endpoint_, 0, headers_.back().get(), sizeof(Header), source, bytes, &how),
         "ucp_am_send_nbx");
    if (pending_ == 0) headers_.clear();
  }
  void receive(std::uint64_t messages) override {
    until([&] { return received_ >= messages; }, "the peer's active messages");
  }
  [[nodiscard]] std::uint64_t received() const override { return received_; }
  void settle() override {
    until([this] { return pending_ == 0; }, "what this rank has sent");
    send(nullptr, end_of_loop, 0);
    ++settled_;
    until([this] { return ends_ >= settled_; }, "the peer's end of a loop");
  }
  void await(const std::uint64_t& word, std::uint64_t value) override {
    const std::atomic_ref<std::uint64_t> there(const_cast<std::uint64_t&>(word));
    until([&] { return there.load(std::memory_order_acquire) >= value; }, "the peer's put");
  }

 private:
  void check(ucs_status_t status, const char* call) const {
    if (status != UCS_OK)
      throw Error(Status::internal, fmt::format("bare UCX: {}: {}", call, library_.ucs_status_string(status)));
  }
  ucp_request_param_t counted() {
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    how.cb.send = [](void* request, ucs_status_t status, void* self) {
      static_cast<UcxPair*>(self)->end(request, status);
    };
    how.user_data = this;
    return how;
  }
  void note(ucs_status_ptr_t request, const char* call) {
    if (UCS_PTR_IS_ERR(request)) check(UCS_PTR_STATUS(request), call);
    if (request != nullptr) ++pending_;
  }
  void end(void* request, ucs_status_t status) {
    --pending_;
    if (status != UCS_OK) failed_ = status;
    library_.ucp_request_free(request);
  }
  template <class Done>
  void until(Done done, const char* what) {
    const std::uint64_t start = machine::clock_ns();
    const auto deadline_ns = static_cast<std::uint64_t>(bench_.world().config().deadline_ns);
    while (!done()) {
      library_.ucp_worker_progress(worker_);
      check(failed_, what);
      if (machine::clock_ns() - start >= deadline_ns)
        throw Error(Status::deadline, fmt::format("bare UCX: {} has not ended", what));
    }
  }
  static ucs_status_t on_message(void* self, const void* header, std::size_t, void* data, std::size_t bytes,
                                 const ucp_am_recv_param_t* how) {
    return static_cast<UcxPair*>(self)->take(header, data, bytes, how);
  }
  ucs_status_t take(const void* header, void* data, std::size_t bytes, const ucp_am_recv_param_t* how);

  Bench& bench_;
  const Library library_;
  std::span<std::byte> target_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_mem_h memory_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  ucp_rkey_h key_ = nullptr;
  std::uint64_t remote_ = 0;  ///< address of the peer's target
  std::uint64_t pending_ = 0, received_ = 0, ends_ = 0, settled_ = 0;
  ucs_status_t failed_ = UCS_OK;
  std::vector<std::byte> dropped_;                ///< receives every long message that is dropped
  std::vector<std::unique_ptr<Header>> headers_;  ///< of messages in flight
};

void UcxPair::open() {
  ucp_config_t* config = nullptr;
  check(library_.ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  if (bench_.world().config().split_nodes > 1)  // as the world does
    for (const auto& [variable, value] : {std::pair{"UCX_TLS", "tcp"}, std::pair{"UCX_NET_DEVICES", "lo"}})
      if (std::getenv(variable) == nullptr)
        static_cast<void>(library_.ucp_config_modify(config, variable + sizeof "UCX_" - 1, value));
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_RMA;
  const ucs_status_t status = library_.ucp_init_version(1, 13, &parameters, config, &context_);
  library_.ucp_config_release(config);
  check(status, "ucp_init");
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SINGLE;
  check(library_.ucp_worker_create(context_, &worker, &worker_), "ucp_worker_create");
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.cb = &UcxPair::on_message;
  handler.arg = this;
  check(library_.ucp_worker_set_am_recv_handler(worker_, &handler), "ucp_worker_set_am_recv_handler");
  ucp_mem_map_params_t memory{};
  memory.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  memory.address = target_.data(), memory.length = target_.size();
  check(library_.ucp_mem_map(context_, &memory, &memory_), "ucp_mem_map");
}

UcxPair::~UcxPair() {
  if (key_ != nullptr) library_.ucp_rkey_destroy(key_);
  if (endpoint_ != nullptr) {
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = library_.ucp_ep_close_nbx(endpoint_, &how);
    if (UCS_PTR_IS_PTR(request)) {
      constexpr std::uint64_t longest_ns = 1'000'000'000;
      const std::uint64_t start = machine::clock_ns();
      while (library_.ucp_request_check_status(request) == UCS_INPROGRESS && machine::clock_ns() - start < longest_ns)
        library_.ucp_worker_progress(worker_);
      library_.ucp_request_free(request);
    }
  }
  if (memory_ != nullptr) library_.ucp_mem_unmap(context_, memory_);
  if (worker_ != nullptr) library_.ucp_worker_destroy(worker_);
  if (context_ != nullptr) library_.ucp_cleanup(context_);
}

void append(std::vector<std::byte>& all, const void* from, std::uint64_t bytes) {
  const auto* const length = reinterpret_cast<const std::byte*>(&bytes);
  all.insert(all.end(), length, length + sizeof bytes);
  const auto* const first = static_cast<const std::byte*>(from);
  all.insert(all.end(), first, first + bytes);
}

std::span<const std::byte> take_part(std::span<const std::byte>& from) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, from.data(), sizeof bytes);
  const auto part = from.subspan(sizeof bytes, bytes);
  from = from.subspan(sizeof bytes + bytes);
  return part;
}

std::vector<std::byte> UcxPair::introduction() const {
  std::vector<std::byte> all;
  const auto start = reinterpret_cast<std::uint64_t>(target_.data());
  append(all, &start, sizeof start);
  void* key = nullptr;
  std::size_t key_bytes = 0, address_bytes = 0;
  check(library_.ucp_rkey_pack(context_, memory_, &key, &key_bytes), "ucp_rkey_pack");
  append(all, key, key_bytes);
  library_.ucp_rkey_buffer_release(key);
  ucp_address_t* address = nullptr;
  check(library_.ucp_worker_get_address(worker_, &address, &address_bytes), "ucp_worker_get_address");
  append(all, address, address_bytes);
  library_.ucp_worker_release_address(worker_, address);
  return all;
}

void UcxPair::connect(std::span<const std::byte> introduction) {
  std::memcpy(&remote_, take_part(introduction).data(), sizeof remote_);
  const std::span<const std::byte> key = take_part(introduction), address = take_part(introduction);
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  check(library_.ucp_ep_create(worker_, &parameters, &endpoint_), "ucp_ep_create");
  check(library_.ucp_ep_rkey_unpack(endpoint_, key.data(), &key_), "ucp_ep_rkey_unpack");
}

ucs_status_t UcxPair::take(const void* header, void* data, std::size_t bytes, const ucp_am_recv_param_t* how) {
  Header head{};
  std::memcpy(&head, header, sizeof head);
  if (head.place == end_of_loop) return ++ends_, UCS_OK;
  if (head.place == sink && dropped_.size() < bytes) dropped_.resize(bytes);
  std::byte* const to = head.place == sink ? dropped_.data() : target_.data() + head.place;
  if ((how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
    if (head.place != sink) std::memcpy(to, data, bytes);
    ++received_;
    return UCS_OK;
  }
  ucp_request_param_t receive{};
  receive.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  receive.cb.recv_am = [](void* request, ucs_status_t status, std::size_t, void* self) {
    auto& pair = *static_cast<UcxPair*>(self);
    pair.library_.ucp_request_free(request);
    if (status != UCS_OK) pair.failed_ = status;
    ++pair.received_;
  };
  receive.user_data = this;
  const ucs_status_ptr_t request = library_.ucp_am_recv_data_nbx(worker_, data, to, bytes, &receive);
  if (UCS_PTR_IS_ERR(request)) failed_ = UCS_PTR_STATUS(request);
  if (request == nullptr) ++received_;
  return UCS_INPROGRESS;
}

}  // namespace

std::unique_ptr<Pair> make_pair(Bench& bench, std::span<std::byte> target) {
  std::unique_ptr<UcxPair> pair;
  require(!bench.world().config().secure, Status::unavailable, "UCX does not encrypt, and this world does");
  bench.together(
      [&] {
        pair = std::make_unique<UcxPair>(bench, target);
        pair->open();
      },
      "a UCX of its own");
  const auto all = bench.world().allgather(pair->introduction());
  if (bench.paired()) pair->connect(all[bench.peer()]);
  return pair;
}

}  // namespace beeline::bench::ucx
