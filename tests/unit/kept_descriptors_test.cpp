// SPDX-License-Identifier: Apache-2.0
#include "memory/kept_descriptors.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace beeline {

namespace {

constexpr std::byte memory[2]{};

/// While it exists, this process can open no further descriptor.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    EXPECT_EQ(0, ::getrlimit(RLIMIT_NOFILE, &before_));
    const int next = ::memfd_create("next", 0);  // the lowest free one
    ::close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    EXPECT_EQ(0, ::setrlimit(RLIMIT_NOFILE, &none));
  }
  ~NoMoreDescriptors() { EXPECT_EQ(0, ::setrlimit(RLIMIT_NOFILE, &before_)); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

std::string refusal(const KeptDescriptors& kept) {
  try {
    static_cast<void>(kept.copy_of(memory));
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(Status::no_resource, error.code());
    return error.what();
  }
}

TEST(KeptDescriptors, AreOfTheSameFile) {
  KeptDescriptors kept;
  struct stat first {
  }, copy{};
  {
    const FileDescriptor file(::memfd_create("memory", 0));
    ASSERT_EQ(0, ::fstat(file.get(), &first));
    kept.keep(memory, file.get());
  }
  const FileDescriptor again = kept.copy_of(memory);
  ASSERT_EQ(0, ::fstat(again.get(), &copy));
  EXPECT_EQ(first.st_ino, copy.st_ino);
  EXPECT_FALSE(kept.copy_of(memory + 1)) << "nothing was kept for it";
  kept.forget(memory);
  EXPECT_FALSE(kept.copy_of(memory));
}

/// A failed copy of a descriptor is reported when the copy is asked for: the memory is useful without it.
TEST(KeptDescriptors, ThatCouldNotBeCopiedSayWhy) {
  KeptDescriptors kept;
  const FileDescriptor file(::memfd_create("memory", 0));
  {
    const NoMoreDescriptors none;
    kept.keep(memory, file.get());
  }
  EXPECT_NE(std::string::npos, refusal(kept).find("could not be copied as it came: Too many open files"))
      << refusal(kept);
  kept.keep(memory, file.get());
  EXPECT_EQ("", refusal(kept));
  const NoMoreDescriptors none;
  EXPECT_NE(std::string::npos, refusal(kept).find("could not be copied again: Too many open files")) << refusal(kept);
}

}  // namespace

}  // namespace beeline
