// SPDX-License-Identifier: Apache-2.0
#include "hpe/files/gds.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "core/fork.hpp"

namespace beeline::hpe::detail {

namespace {

// The interface of libcufile, as in NVIDIA's cufile.h of CUDA 13 (cuFile API reference).
struct CuFileError {
  int error;       // 0: success
  int cuda_error;  // of the driver
};
struct CuFileDescription {
  int type = 1;  // a descriptor of Linux
  union {
    int descriptor;
    void* handle;
  } file = {};
  const void* operations = nullptr;
};
struct CuFileFunctions {
  CuFileError (*open)() = nullptr;
  CuFileError (*add)(void** handle, CuFileDescription* description) = nullptr;
  void (*remove)(void* handle) = nullptr;
  ssize_t (*read)(void* handle, void* memory, std::size_t bytes, off_t offset, off_t memory_offset) = nullptr;
  ssize_t (*write)(void* handle, const void* memory, std::size_t bytes, off_t offset, off_t memory_offset) = nullptr;
};

template <class Function>
bool find_in_cufile(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

struct CuFile {
  CuFileFunctions functions;
  std::string reason;  ///< why it is not used

  CuFile() : reason(open_library()) {}
  static const CuFile& of_process() {
    static constinit beeline::detail::ProcessValue<const CuFile> library;
    return library.get([] { return CuFile(); });
  }

 private:
  std::string open_library() {
    // Without this module of the kernel the library would copy through host memory, as this one does.
    if (::access("/proc/driver/nvidia-fs", F_OK) != 0) return "the kernel has no module nvidia-fs";
    void* const library = ::dlopen("libcufile.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return fmt::format("libcufile was not found ({})", ::dlerror());
    const bool is_whole = find_in_cufile(library, "cuFileDriverOpen", functions.open) &&
                          find_in_cufile(library, "cuFileHandleRegister", functions.add) &&
                          find_in_cufile(library, "cuFileHandleDeregister", functions.remove) &&
                          find_in_cufile(library, "cuFileRead", functions.read) &&
                          find_in_cufile(library, "cuFileWrite", functions.write);
    if (!is_whole) return "libcufile lacks some functions";
    const int error = functions.open().error;
    return error == 0 ? "" : fmt::format("cuFileDriverOpen failed with error {}", error);
  }
};

/// A file that libcufile knows.
class CuFileHandle {
 public:
  explicit CuFileHandle(int descriptor) {
    CuFileDescription description;
    description.file.descriptor = descriptor;
    if (const int error = CuFile::of_process().functions.add(&handle_, &description).error; error != 0) {
      handle_ = nullptr;
      log(LogLevel::info, fmt::format("libcufile refuses a file with error {}", error));
    }
  }
  ~CuFileHandle() {
    if (handle_ != nullptr) CuFile::of_process().functions.remove(handle_);
  }
  CuFileHandle(const CuFileHandle&) = delete;
  CuFileHandle& operator=(const CuFileHandle&) = delete;
  [[nodiscard]] bool is_known() const { return handle_ != nullptr; }

  [[nodiscard]] std::int64_t carry_out(const BlockCall& call) const {
    if (call.kind != BlockCall::Kind::read && call.kind != BlockCall::Kind::write) return carry_out_call(call);
    const CuFileFunctions& cufile = CuFile::of_process().functions;
    const auto offset = static_cast<off_t>(call.offset);
    const ssize_t moved = call.kind == BlockCall::Kind::read
                              ? cufile.read(handle_, call.memory, call.bytes, offset, 0)
                              : cufile.write(handle_, call.memory, call.bytes, offset, 0);
    if (moved >= 0) return moved;
    return moved == -1 && errno != 0 ? -errno : -EIO;  // other values are errors of the library
  }

 private:
  void* handle_ = nullptr;
};

}  // namespace

const std::string& no_gds_reason() { return CuFile::of_process().reason; }

std::unique_ptr<BlockIo> make_gds_io(const OpenFile& file, unsigned calls) {
  const auto handle = std::make_shared<CuFileHandle>(file.direct());
  if (!handle->is_known()) return nullptr;
  return make_thread_io(calls, [handle](const BlockCall& call) { return handle->carry_out(call); });
}

}  // namespace beeline::hpe::detail
