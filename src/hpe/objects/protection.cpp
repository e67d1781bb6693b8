// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "beeline/core/error.hpp"
#include "hpe/objects/host_view.hpp"

namespace beeline::hpe::detail {

namespace {

class ProtectedView final : public HostView {
 public:
  explicit ProtectedView(ShadowMemory& memory) : memory_(memory) {
    protect({0, memory.bytes()}, PROT_READ);  // the first write to each block is a fault
  }

  void close(Range range, bool may_read, std::vector<Range>&) override {
    protect(range, may_read ? PROT_READ : PROT_NONE);
  }
  void open(Range range, Permission permission, std::size_t) override {
    protect(range, permission == Permission::write ? PROT_READ | PROT_WRITE : PROT_READ);
  }
  void refuse(std::size_t) noexcept override {}
  void forget_refusals() override {}
  bool may_have_gone_on(std::size_t, std::int64_t) override { return false; }
  bool tracks_writes() const override { return false; }

 private:
  /// One system call for neighbouring blocks.
  void protect(Range range, int protection) const {
    if (::mprotect(memory_.program() + range.offset, range.bytes, protection) == 0) return;
    const int error = errno;
    throw Error(error == ENOMEM ? Status::no_resource : Status::internal,
                fmt::format("mprotect of {} bytes of an object: {}{}", range.bytes, std::strerror(error),
                            error == ENOMEM ? ": the process has as many mappings as vm.max_map_count permits; use "
                                              "larger blocks, or raise it (sysctl -w vm.max_map_count=...)"
                                            : ""));
  }
  ShadowMemory& memory_;
};

}  // namespace

std::unique_ptr<HostView> make_protected_view(ShadowMemory& memory) { return std::make_unique<ProtectedView>(memory); }

}  // namespace beeline::hpe::detail
