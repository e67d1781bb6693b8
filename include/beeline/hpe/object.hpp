// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Coherent objects: memory of the host and of devices behind one pointer.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "beeline/core/error.hpp"
#include "beeline/hpe/device.hpp"
#include "beeline/hpe/stream.hpp"

namespace beeline::hpe {

class ObjectState;

/// How accesses of the CPU to an object are noticed.
enum class Protocol : std::uint8_t {
  automatic,   ///< `protection`
  protection,  ///< pages are protected, and a first access to a block is a SIGSEGV that the library handles
  tracking,    ///< by userfaultfd: a first access, also in a system call, waits in the kernel, which notes which pages
               ///< are written (Linux 6.7, with CAP_SYS_PTRACE or vm.unprivileged_userfaultfd=1); elsewhere
               ///< `protection`, which one line of the log says
  managed      ///< managed memory of CUDA, on GPUs; the program synchronizes with kernels before the CPU's accesses
};
/// The name in options and texts, as in "protection".
[[nodiscard]] const char* name(Protocol protocol) noexcept;

/// How a program uses an object. A wrong `read_mostly` or `streaming` loses what kernels write.
enum class Hint : std::uint8_t {
  none,
  read_mostly,  ///< kernels only read: after a kernel the host's copy and those of other devices stay valid
  streaming,    ///< as `read_mostly`, and the CPU writes the object in whole: its first write opens all blocks
  device_only   ///< the CPU's accesses, except by `HostAccess`, are faults of the program
};
[[nodiscard]] const char* name(Hint hint) noexcept;

/// What an object is made with.
struct ObjectOptions {
  /// The device whose kernels find the object at its address, if it is a GPU; no value: the first of `Device::all()`.
  std::optional<Device> device;
  Protocol protocol = Protocol::automatic;
  Hint hint = Hint::none;
  /// Bytes of a block, a power of two and at least a page; 0: 64 KiB, more for large objects.
  std::size_t block_bytes = 0;
  /// The longest wait of a thread for an object, more than 0; no value: BEELINE_STREAM_DEADLINE_S.
  std::optional<std::chrono::nanoseconds> deadline;
  /// Memory of `device` for its copy of the object, which is cleared, such as a rank's symmetric memory; aligned as the
  /// elements are. It outlives the object, and is no other object's. nullptr: memory of the object's own.
  void* device_memory = nullptr;
};

/// What an object has done so far.
struct ObjectStatistics {
  std::uint64_t faults = 0;         ///< accesses of the CPU that waited
  std::uint64_t fetched_bytes = 0;  ///< from devices to the host
  std::uint64_t sent_bytes = 0;     ///< to devices
  std::size_t block_bytes = 0;
  Protocol protocol = Protocol::protection;  ///< the one in use
};

/// Bytes of an object: as `Object`, without a type.
class ObjectMemory {
 public:
  explicit ObjectMemory(std::size_t bytes, const ObjectOptions& options = {});
  /// As `release`; but if that throws, the memory is not released, and the error is logged.
  ~ObjectMemory();
  ObjectMemory(ObjectMemory&& other) noexcept;
  ObjectMemory& operator=(ObjectMemory&& other) noexcept;

  [[nodiscard]] void* data() const;
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] Device device() const;
  /// Where kernels of `device` find the object. On the object's own GPU it is `data()`. Elsewhere, as on every host
  /// device, it is the address of the device's copy, so that a pointer stored inside an object does not lead there.
  /// Throws no_resource if the device has no memory for a copy.
  [[nodiscard]] void* on(Device device) const;
  [[nodiscard]] ObjectStatistics statistics() const;
  /// Releases the memory now. Waits for kernels that use the object and for accesses that other threads have open. The
  /// object stays as it is if this throws: deadline; invalid_argument at once if the only open `HostAccess` or
  /// `DeviceAccess` is the calling thread's own, or if the object was released already.
  void release();
  /// For launches.
  [[nodiscard]] ObjectState& state() const;

 private:
  struct Deleter {
    Deleter();
    static void forget(ObjectState* state);
    void operator()(ObjectState* state) const;
    std::uint32_t fork_depth;
  };
  std::unique_ptr<ObjectState, Deleter> state_;
};

/// `size()` elements that the CPU and devices use at one pointer. The CPU has them between kernels: a launch hands the
/// object to the kernel's device, with the blocks that the CPU has written; when the kernel has ended, the first access
/// of the CPU to a block fetches it. A thread that accesses the object earlier waits inside the access until then.
/// Elements are zero at first.
///
/// CPU threads order their accesses among themselves as for other memory. Kernels that use an object run one after the
/// other, also on different streams. Threads must not block SIGSEGV, and handlers of signals must not access objects.
/// Under `protection`, system calls with the object's memory fail with EFAULT unless a `HostAccess` covers it. After
/// `fork` the child has the blocks that the CPU held: its stores to them are its own, but pages that it has not written
/// also show later stores of the parent. Accesses to other blocks are faults.
/// Source: seed 001, asymmetric distributed shared memory for many threads.
template <class T>
class Object {
  static_assert(std::is_trivially_copyable_v<T>, "elements of objects are moved as bytes: T is trivially copyable");
  static_assert(alignof(T) <= 4096, "objects begin at pages: T is aligned to at most 4096 bytes");

 public:
  /// Throws invalid_argument (0 elements, a block size or deadline that is not allowed, managed memory on a host
  /// device, `device_memory` that belongs to no device or is not aligned for T), no_resource with the limit that
  /// applies (memory, addresses, open files, vm.max_map_count), unavailable.
  explicit Object(std::size_t count, const ObjectOptions& options = {})
      : memory_(checked_bytes(count, options), options), count_(count) {}

  [[nodiscard]] T* data() const { return static_cast<T*>(memory_.data()); }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] T& operator[](std::size_t index) const { return data()[index]; }
  [[nodiscard]] T* begin() const { return data(); }
  [[nodiscard]] T* end() const { return data() + count_; }
  /// As `ObjectMemory::on`.
  [[nodiscard]] T* on(Device device) const { return static_cast<T*>(memory_.on(device)); }
  [[nodiscard]] const ObjectMemory& memory() const { return memory_; }
  [[nodiscard]] ObjectMemory& memory() { return memory_; }
  [[nodiscard]] ObjectState& state() const { return memory_.state(); }

 private:
  static std::size_t checked_bytes(std::size_t count, const ObjectOptions& options) {
    require(count <= SIZE_MAX / sizeof(T), Status::invalid_argument, "an object with too many elements");
    require(reinterpret_cast<std::uintptr_t>(options.device_memory) % alignof(T) == 0, Status::invalid_argument,
            "the memory for an object is not aligned as its elements are");
    return count * sizeof(T);
  }

  ObjectMemory memory_;
  std::size_t count_;
};

/// Allocates an object for programs that keep pointers. Throws as `Object`.
[[nodiscard]] void* allocate(std::size_t bytes, const ObjectOptions& options = {});
/// Releases an object of `allocate`. Throws invalid_argument for any other pointer, an object that was released already
/// included, and as `ObjectMemory::release`.
void deallocate(void* object);
/// The object that contains an address. Throws invalid_argument if there is none. Managed memory has no entry.
[[nodiscard]] ObjectState& object_at(const void* address);

/// What a thread does with an object's elements.
enum class Access : std::uint8_t { read, write };

/// Holds a part of an object on the host: system calls and devices' copies use its memory, and no access waits. Kernels
/// that use the object are not launched meanwhile: their launch waits, and is refused in a thread that holds the only
/// access itself.
class HostAccess {
 public:
  /// The elements [first, first + count). Throws invalid_argument for others than the object's, and while this thread
  /// holds a `DeviceAccess` to it; deadline; unavailable if the device has failed.
  template <class T>
  HostAccess(const Object<T>& object, std::size_t first, std::size_t count, Access access)
      : HostAccess(object.state(), first, count, sizeof(T), access) {}
  template <class T>
  HostAccess(const Object<T>& object, Access access) : HostAccess(object, 0, object.size(), access) {}
  /// The elements [first, first + count) of `element_bytes` bytes each.
  HostAccess(ObjectState& object, std::size_t first, std::size_t count, std::size_t element_bytes, Access access);
  ~HostAccess();
  HostAccess(const HostAccess&) = delete;
  HostAccess& operator=(const HostAccess&) = delete;

 private:
  ObjectState& object_;
};

/// Holds objects for work that the program puts on a stream itself, such as kernels of other libraries, or a graph's
/// run: acquires them, and releases them to the host once the stream has passed the work that was put on it meanwhile.
/// Launches and copies that use the objects on other streams wait for its end, and are refused with invalid_argument if
/// the calling thread itself holds the only such access; so is a `HostAccess`, and the thread's plain access to an
/// object is a fault of the program. Managed objects do not order launches of several streams. Throws unavailable while
/// a graph captures the stream.
class DeviceAccess {
 public:
  DeviceAccess(Stream& stream, std::vector<ObjectState*> objects);
  /// All objects of the process, of which none may be released during the call.
  explicit DeviceAccess(Stream& stream);
  /// Errors of the release are logged.
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;

 private:
  Stream& stream_;
  std::vector<ObjectState*> objects_;
};

}  // namespace beeline::hpe
