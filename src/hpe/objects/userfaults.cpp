// SPDX-License-Identifier: Apache-2.0
#include "hpe/objects/userfaults.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "beeline/core/error.hpp"

namespace beeline::hpe::detail {

namespace {

// Of linux/userfaultfd.h, since Linux 6.7.
constexpr std::uint64_t feature_shared_write_protect = 1 << 12, feature_unpopulated = 1 << 13, feature_poison = 1 << 14,
                        feature_asynchronous = 1 << 15, feature_minor_shared = 1 << 10, feature_write_flag = 1 << 0;
constexpr std::uint64_t continue_protected = 1 << 1;
struct Poison {
  uffdio_range range;
  std::uint64_t mode;
  std::int64_t updated;
};
constexpr unsigned long ioctl_poison = _IOWR(UFFDIO, 0x08, Poison);

// Of linux/fs.h, since Linux 6.7.
struct PageRegion {
  std::uint64_t start, end, categories;
};
struct PageScan {
  std::uint64_t size, flags, start, end, walk_end, regions, region_count, most_pages, inverted, all_of, any_of,
      returned;
};
constexpr unsigned long ioctl_scan = _IOWR('f', 16, PageScan);
constexpr std::uint64_t is_present = 1 << 3, is_swapped = 1 << 4;  // a mark without a page counts as swapped

std::uint64_t number(const std::byte* address) { return reinterpret_cast<std::uint64_t>(address); }

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

[[noreturn]] void fail(const char* call, std::size_t bytes) {
  throw Error(errno == ENOMEM ? Status::no_resource : Status::internal,
              fmt::format("{} for {} bytes of an object: {}", call, bytes, std::strerror(errno)));
}

}  // namespace

Userfaults* Userfaults::of_process(std::string& why_not) {
  struct Opened {
    std::unique_ptr<Userfaults> faults{new Userfaults};
    std::string why_not = faults->open();
  };
  static const Opened& opened = *new Opened;  // objects may be freed after static objects
  why_not = opened.why_not;
  return why_not.empty() ? opened.faults.get() : nullptr;
}

std::string Userfaults::open() {
  faults_ = FileDescriptor(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
  if (!faults_)
    return fmt::format("userfaultfd: {}{}", std::strerror(errno),
                       errno == EPERM ? " (needs CAP_SYS_PTRACE, or vm.unprivileged_userfaultfd=1)" : "");
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = feature_shared_write_protect | feature_unpopulated | feature_poison | feature_asynchronous |
                 feature_minor_shared | feature_write_flag | UFFD_FEATURE_THREAD_ID;
  if (::ioctl(faults_.get(), UFFDIO_API, &api) != 0)
    return fmt::format("the kernel's userfaultfd lacks features of Linux 6.7: {}", std::strerror(errno));
  page_map_ = FileDescriptor(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!page_map_) return fmt::format("/proc/self/pagemap: {}", std::strerror(errno));
  try {
    return find_defect();
  } catch (const Error& error) {
    return error.what();
  }
}

/// Tries on two pages what `unmap` relies on. Returns what does not work, or an empty text.
std::string Userfaults::find_defect() const {
  const std::size_t page = page_bytes();
  ShadowMemory memory(2 * page, nullptr, false);
  memory.populate();
  std::byte* const start = memory.program();
  watch(start, 2 * page);
  map(start, 2 * page, true);
  *static_cast<volatile std::byte*>(start + page) = std::byte{1};
  std::vector<Range> written;
  unmap(start, 2 * page, start, written);
  const bool is_right = written.size() == 1 && written[0].offset == page && written[0].bytes == page;
  return is_right ? "" : "the kernel does not mark removed pages that were not written";
}

std::optional<Userfaults::Event> Userfaults::next() const {
  uffd_msg message{};
  while (::read(faults_.get(), &message, sizeof message) == sizeof message) {
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    return Event{reinterpret_cast<std::byte*>(message.arg.pagefault.address),
                 (message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WRITE) != 0,
                 static_cast<pid_t>(message.arg.pagefault.feat.ptid)};
  }
  return std::nullopt;
}

void Userfaults::watch(std::byte* start, std::size_t bytes) const {
  uffdio_register request{};
  request.range = {number(start), bytes};
  request.mode = UFFDIO_REGISTER_MODE_WP | UFFDIO_REGISTER_MODE_MINOR;
  if (::ioctl(faults_.get(), UFFDIO_REGISTER, &request) != 0) fail("UFFDIO_REGISTER", bytes);
  mark(start, bytes);
}

void Userfaults::mark(std::byte* start, std::size_t bytes) const {
  if (!set_marks(start, bytes, UFFDIO_WRITEPROTECT_MODE_WP)) fail("UFFDIO_WRITEPROTECT", bytes);
}

bool Userfaults::set_marks(std::byte* start, std::size_t bytes, std::uint64_t mode) const noexcept {
  uffdio_writeprotect request{};
  request.range = {number(start), bytes};
  request.mode = mode;
  while (::ioctl(faults_.get(), UFFDIO_WRITEPROTECT, &request) != 0)
    if (errno != EAGAIN) return false;
  return true;
}

void Userfaults::map(std::byte* start, std::size_t bytes, bool notes_writes) const {
  bool was_mapped = false;
  for (std::size_t done = 0; done < bytes;) {
    uffdio_continue request{};
    request.range = {number(start + done), bytes - done};
    request.mode = notes_writes ? continue_protected : 0;
    const int result = ::ioctl(faults_.get(), UFFDIO_CONTINUE, &request);
    const int error = errno;
    if (request.mapped > 0) done += static_cast<std::size_t>(request.mapped);
    if (result == 0 || error == EAGAIN) continue;
    if (error != EEXIST) fail("UFFDIO_CONTINUE", bytes);
    if (request.mapped <= 0) done += page_bytes();
    was_mapped = true;
  }
  if (!was_mapped) return;  // the kernel wakes the threads that wait for pages that it maps
  uffdio_range range{number(start), bytes};
  if (::ioctl(faults_.get(), UFFDIO_WAKE, &range) != 0) fail("UFFDIO_WAKE", bytes);
}

void Userfaults::unmap(std::byte* start, std::size_t bytes, const std::byte* base, std::vector<Range>& written) const {
  if (::madvise(start, bytes, MADV_DONTNEED) != 0) fail("madvise(MADV_DONTNEED)", bytes);
  std::array<PageRegion, 256> regions{};
  const std::uint64_t end = number(start) + bytes;
  for (std::uint64_t from = number(start); from < end;) {
    PageScan scan{};
    scan.size = sizeof scan;
    scan.start = from, scan.end = end;
    scan.regions = reinterpret_cast<std::uint64_t>(regions.data()), scan.region_count = regions.size();
    scan.inverted = scan.all_of = is_present | is_swapped;
    const int found = ::ioctl(page_map_.get(), ioctl_scan, &scan);
    if (found < 0) fail("PAGEMAP_SCAN", bytes);
    for (int each = 0; each < found; ++each) {
      const PageRegion& region = regions[static_cast<std::size_t>(each)];
      const std::size_t offset = region.start - number(base), length = region.end - region.start;
      mark(start + (region.start - number(start)), length);  // the others have kept their marks
      if (!written.empty() && written.back().end() == offset)
        written.back().bytes += length;
      else
        written.push_back({offset, length});
    }
    from = scan.walk_end;
  }
}

void Userfaults::wake(std::byte* page) const noexcept {
  uffdio_range range{number(page), page_bytes()};
  ::ioctl(faults_.get(), UFFDIO_WAKE, &range);
}

bool Userfaults::poison(std::byte* page) const noexcept {
  // The kernel poisons only pages without an entry, and a mark is one. Without it the page counts as written.
  static_cast<void>(set_marks(page, page_bytes(), UFFDIO_WRITEPROTECT_MODE_DONTWAKE));
  Poison request{};
  request.range = {number(page), page_bytes()};
  if (::ioctl(faults_.get(), ioctl_poison, &request) == 0) return true;
  wake(page);
  return false;
}

void Userfaults::remove_poison(std::byte* page) const {
  if (::madvise(page, page_bytes(), MADV_DONTNEED) != 0) fail("madvise(MADV_DONTNEED)", page_bytes());
  mark(page, page_bytes());
}

}  // namespace beeline::hpe::detail
