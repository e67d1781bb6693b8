// SPDX-License-Identifier: Apache-2.0
/// @file
/// The file in which rank 0 publishes its address to ranks of its host: who may own it, and when it is trusted.
#include "runtime/rendezvous_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "bootstrap_worlds.hpp"
#include "tests/support/child_process.hpp"

namespace beeline::tests {

namespace {

using detail::Deadline;
using detail::look_for_publication;
using detail::RendezvousFile;
namespace fs = std::filesystem;

const detail::Publication place = {"127.0.0.1:4711", "secret"};

class RendezvousFiles : public ::testing::Test {
 protected:
  RendezvousFiles() {
    std::string pattern = (fs::temp_directory_path() / "beeline-test-").string() + std::string(6, 'X');
    root = ::mkdtemp(pattern.data());
    ::setenv("TMPDIR", root.c_str(), 1);
    ::unsetenv("XDG_RUNTIME_DIR");
    folder = root / ("beeline-" + std::to_string(::geteuid()));
  }
  ~RendezvousFiles() override {
    ::unsetenv("TMPDIR");
    fs::remove_all(root);
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
  [[nodiscard]] fs::path only_file() const { return fs::directory_iterator(folder)->path(); }
  static RendezvousFile publish(const std::string& job) { return {job, place, Deadline(generous_ns)}; }

  fs::path root, folder;
};

TEST_F(RendezvousFiles, AreForOneJobAndOneUserAndGoWithRankZero) {
  EXPECT_FALSE(look_for_publication("job 1").found);
  {
    const RendezvousFile first = publish("job 1"), second = publish("job 2");
    const detail::PublicationLook look = look_for_publication("job 1");
    ASSERT_TRUE(look.found) << look.why_not;
    EXPECT_EQ(place.address, look.publication.address);
    EXPECT_EQ(place.token, look.publication.token);
    EXPECT_FALSE(look_for_publication("job 3").found);
    EXPECT_EQ(2u, files());
    EXPECT_EQ(fs::perms(0700), fs::status(folder).permissions());
    EXPECT_EQ(fs::perms(0600), fs::status(only_file()).permissions());
  }
  EXPECT_EQ(0u, files());
}

TEST_F(RendezvousFiles, ASecondRankZeroIsRefusedWhileTheFirstLives) {
  const RendezvousFile first = publish("job");
  const Error error = error_of([] { publish("job"); });
  EXPECT_EQ(error.code(), Status::invalid_argument);
  EXPECT_TRUE(mentions(error, "process " + std::to_string(::getpid()) + " is rank 0 of this job")) << error.what();
  EXPECT_TRUE(look_for_publication("job").found) << "the first is not disturbed";
}

TEST_F(RendezvousFiles, MayBeLookedForWhileTheyAreMade) {
  publish("job");  // makes the folder
  std::atomic<bool> is_over = false;
  int found = 0;
  std::thread looker([&] {
    while (!is_over) found += look_for_publication("job").found ? 1 : 0;
  });
  for (int repeat = 0; repeat < 2000; ++repeat) EXPECT_NO_THROW(publish("job"));
  {
    const RendezvousFile last = publish("job");
    is_over = true;
    looker.join();
    EXPECT_TRUE(look_for_publication("job").found) << "after " << found << " finds";
  }
  EXPECT_EQ(0u, files());
}

TEST_F(RendezvousFiles, OfARestartedJobOnSeveralHostsStaysWhenTheFormerRankZeroEnds) {
  const char* const home = std::getenv("HOME");
  const std::optional<std::string> before = home == nullptr ? std::nullopt : std::optional<std::string>(home);
  ::setenv("HOME", root.c_str(), 1);
  constexpr auto readers = detail::Readers::several_hosts;
  {
    const detail::Publication next = {"127.0.0.1:4712", "another secret"};
    auto former = std::make_unique<RendezvousFile>("job", place, Deadline(generous_ns), readers);
    const RendezvousFile successor("job", next, Deadline(generous_ns), readers);
    former.reset();
    const detail::PublicationLook look = look_for_publication("job", readers);
    EXPECT_TRUE(look.found) << look.why_not;
    EXPECT_EQ(next.address, look.publication.address);
  }
  EXPECT_FALSE(look_for_publication("job", readers).found);
  before ? ::setenv("HOME", before->c_str(), 1) : ::unsetenv("HOME");
}

TEST_F(RendezvousFiles, AFileThatAKilledRankZeroLeftIsNotBelievedAndReplaced) {
  beeline_test::ChildProcess killed([](const std::string&) {
    const RendezvousFile file = publish("job");
    ::kill(::getpid(), SIGKILL);
    return std::string();
  });
  killed.tell("");
  while (!killed.read_more()) continue;
  ASSERT_EQ(1u, files());
  const detail::PublicationLook look = look_for_publication("job");
  EXPECT_FALSE(look.found);
  EXPECT_NE(std::string::npos, look.why_not.find("was left by a process that has ended")) << look.why_not;
  const RendezvousFile next = publish("job");
  EXPECT_TRUE(look_for_publication("job").found);
}

TEST_F(RendezvousFiles, WhatOthersCanReadOrWriteIsNotTrusted) {
  const RendezvousFile file = publish("job");
  fs::permissions(only_file(), fs::perms(0644));
  EXPECT_TRUE(mentions(error_of([] { (void)look_for_publication("job"); }), "open to other users (mode 644)"));
  fs::permissions(folder, fs::perms(0755));
  EXPECT_TRUE(mentions(error_of([] { (void)look_for_publication("job"); }), "open to other users (mode 755)"));
  EXPECT_TRUE(mentions(error_of([] { publish("other"); }), "open to other users (mode 755)"));
}

TEST_F(RendezvousFiles, AnotherUsersFolderIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms(0700));
  ASSERT_EQ(0, ::chown(folder.c_str(), 12345, 12345));
  EXPECT_TRUE(mentions(error_of([] { publish("job"); }), "belongs to user 12345"));
  EXPECT_TRUE(mentions(error_of([] { publish("job"); }), "set TMPDIR"));
  ::setenv("XDG_RUNTIME_DIR", root.c_str(), 1);
  const RendezvousFile file = publish("job");
  EXPECT_TRUE(look_for_publication("job").found);
  EXPECT_TRUE(fs::exists(root / "beeline")) << "the user's own folder is taken in its place";
  ::unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(RendezvousFiles, LinksAreNotFollowed) {
  fs::create_directory(root / "elsewhere");
  fs::create_directory_symlink(root / "elsewhere", folder);
  EXPECT_EQ(error_of([] { publish("job"); }).code(), Status::invalid_argument);
}

}  // namespace

}  // namespace beeline::tests
