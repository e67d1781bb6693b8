// SPDX-License-Identifier: Apache-2.0
#include "tests/model/trigger_oracle.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include <sys/uio.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace beeline_test {

namespace {

void check(long result, const char* call) {
  if (result < 0) throw std::runtime_error(std::string(call) + ": " + fi_strerror(static_cast<int>(-result)));
}

/// Closes an object of libfabric's.
struct Close {
  template <class Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <class Object>
using Owned = std::unique_ptr<Object, Close>;

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

Info find_provider() {
  const Info hints(fi_allocinfo());
  hints->caps = FI_MSG | FI_RMA | FI_TRIGGER;
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = ::strdup("sockets");
  fi_info* found = nullptr;
  check(fi_getinfo(FI_VERSION(1, 14), "127.0.0.1", nullptr, FI_SOURCE, hints.get(), &found), "fi_getinfo (sockets)");
  return Info(found);
}

/// One deferred write; libfabric uses these descriptions until the write is done.
struct Write {
  std::uint64_t value = 1;
  iovec source{};
  fi_rma_iov target{};
  fi_op_rma operation{};
  fi_deferred_work work{};
};

}  // namespace

class TriggerOracle::Implementation {
 public:
  Implementation(std::size_t counter_count, std::size_t write_count) : places(write_count), writes(write_count) {
    fid_fabric* new_fabric = nullptr;
    check(fi_fabric(info->fabric_attr, &new_fabric, nullptr), "fi_fabric");
    fabric.reset(new_fabric);
    fid_domain* new_domain = nullptr;
    check(fi_domain(fabric.get(), info.get(), &new_domain, nullptr), "fi_domain");
    domain.reset(new_domain);
    for (std::size_t i = 0; i < counter_count + 1; ++i) open_counter();
    open_memory();
    open_endpoint();
  }

  void open_counter() {
    fi_cntr_attr attributes{};
    attributes.events = FI_CNTR_EVENTS_COMP;
    fid_cntr* counter = nullptr;
    check(fi_cntr_open(domain.get(), &attributes, &counter, nullptr), "fi_cntr_open");
    counters.emplace_back(counter);
  }
  void open_memory() {
    fid_mr* registered = nullptr;
    check(fi_mr_reg(domain.get(), places.data(), places.size() * sizeof(std::uint64_t), FI_REMOTE_WRITE, 0, 1, 0,
                    &registered, nullptr),
          "fi_mr_reg");
    memory.reset(registered);
  }
  void open_endpoint() {
    fi_av_attr attributes{};
    fid_av* new_addresses = nullptr;
    check(fi_av_open(domain.get(), &attributes, &new_addresses, nullptr), "fi_av_open");
    addresses.reset(new_addresses);
    fid_ep* new_endpoint = nullptr;
    check(fi_endpoint(domain.get(), info.get(), &new_endpoint, nullptr), "fi_endpoint");
    endpoint.reset(new_endpoint);
    check(fi_ep_bind(endpoint.get(), &addresses->fid, 0), "fi_ep_bind (addresses)");
    // The endpoint's own completions are counted by the last counter, which nothing waits for.
    check(fi_ep_bind(endpoint.get(), &counters.back()->fid, FI_SEND | FI_RECV | FI_READ | FI_WRITE), "fi_ep_bind");
    check(fi_enable(endpoint.get()), "fi_enable");
    char name[256];
    std::size_t length = sizeof name;
    check(fi_getname(&endpoint->fid, name, &length), "fi_getname");
    if (fi_av_insert(addresses.get(), name, 1, &self, 0, nullptr) != 1) throw std::runtime_error("fi_av_insert");
  }

  // Destroyed in reverse order.
  const Info info = find_provider();
  std::vector<std::uint64_t> places;
  std::vector<Write> writes;
  Owned<fid_fabric> fabric;
  Owned<fid_domain> domain;
  std::vector<Owned<fid_cntr>> counters;
  Owned<fid_mr> memory;
  Owned<fid_av> addresses;
  Owned<fid_ep> endpoint;
  fi_addr_t self = FI_ADDR_UNSPEC;
  std::set<std::size_t> seen;
};

TriggerOracle::TriggerOracle(std::size_t counters, std::size_t writes)
    : implementation_(std::make_unique<Implementation>(counters, writes)) {}
TriggerOracle::~TriggerOracle() = default;

void TriggerOracle::defer(std::size_t name, std::size_t counter, std::uint64_t threshold, int then) {
  Implementation& in = *implementation_;
  Write& write = in.writes.at(name);
  const bool by_address =
      (in.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0 || in.info->domain_attr->mr_mode == FI_MR_BASIC;
  const std::uint64_t offset = name * sizeof(std::uint64_t);
  write.source = {&write.value, sizeof write.value};
  write.target = {by_address ? reinterpret_cast<std::uintptr_t>(in.places.data()) + offset : offset, sizeof write.value,
                  fi_mr_key(in.memory.get())};
  write.operation.ep = in.endpoint.get();
  write.operation.msg = {&write.source, nullptr, 1, in.self, &write.target, 1, &write.work.context, 0};
  write.operation.flags = FI_DELIVERY_COMPLETE;
  write.work.threshold = threshold;
  write.work.triggering_cntr = in.counters.at(counter).get();
  write.work.completion_cntr = (then < 0 ? in.counters.back() : in.counters.at(static_cast<std::size_t>(then))).get();
  write.work.op_type = FI_OP_WRITE;
  write.work.op.rma = &write.operation;
  check(fi_control(&in.domain->fid, FI_QUEUE_WORK, &write.work), "fi_control (FI_QUEUE_WORK)");
}

void TriggerOracle::add(std::size_t counter, std::uint64_t count) {
  check(fi_cntr_add(implementation_->counters.at(counter).get(), count), "fi_cntr_add");
}

std::set<std::size_t> TriggerOracle::arrived(std::size_t expected, std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds surplus(30);
  Implementation& in = *implementation_;
  std::set<std::size_t> fresh;
  const auto look = [&] {
    for (std::size_t name = 0; name < in.places.size(); ++name)
      if (std::atomic_ref<std::uint64_t>(in.places[name]).load() != 0 && in.seen.insert(name).second)
        fresh.insert(name);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto start = std::chrono::steady_clock::now();
  while (fresh.size() < expected && std::chrono::steady_clock::now() - start < limit) look();
  const auto end = std::chrono::steady_clock::now() + surplus;
  while (std::chrono::steady_clock::now() < end) look();
  return fresh;
}

}  // namespace beeline_test
