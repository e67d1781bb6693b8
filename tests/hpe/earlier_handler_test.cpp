// SPDX-License-Identifier: Apache-2.0
// Handlers of SIGSEGV that a program had before its objects.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>

#include "beeline/hpe/object.hpp"
#include "tests/hpe/mapping.hpp"
#include "tests/hpe/object_cases.hpp"

namespace beeline_test::earlier_handlers {

namespace {

using namespace beeline::hpe;

void say_once(int) { static_cast<void>(!::write(STDERR_FILENO, "said", 4)); }

/// A handler for one fault (SA_RESETHAND), as programs have that print a trace: the repeated fault ends the process.
TEST(EarlierHandlers, ForOneFaultAreCalledOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::alarm(60);  // ends what would repeat the fault for ever
        struct sigaction once {};
        once.sa_handler = &say_once;
        once.sa_flags = static_cast<int>(SA_RESETHAND);
        ::sigaction(SIGSEGV, &once, nullptr);
        Object<char> object(4 * block, small_blocks());
        object[5] = 1;
        const Mapping page(block, PROT_NONE);
        *static_cast<volatile std::byte*>(page.start()) = std::byte{1};
      },
      testing::KilledBySignal(SIGSEGV), SaidOnce("said"));
}

TEST(EarlierHandlers, ThatIgnoreKeepIgnoring) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::signal(SIGSEGV, SIG_IGN);
        Object<char> object(4 * block, small_blocks());
        object[5] = 1;
        ::raise(SIGSEGV);
        object[block] = 1;  // ours is still in front
        std::exit(object[5] + object[block]);
      },
      testing::ExitedWithCode(2), "");
}

}  // namespace

}  // namespace beeline_test::earlier_handlers
